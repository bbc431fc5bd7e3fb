"""Logs of the server: lines for people, or one JSON object per line for programs, on standard error."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from time import perf_counter

import msgspec

from dray.server.handling import Handling, SilentObserver
from dray.server.http import Answer, Stream

REQUESTS_FROM = 1
"""The verbosity from which every request is logged."""

log = logging.getLogger(__name__)

_LEVELS = {logging.DEBUG: "debug", logging.INFO: "info", logging.WARNING: "warning", logging.ERROR: "error"}


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _fields(record: logging.LogRecord) -> dict[str, object]:
    """What was given as `extra={"fields": {...}}`."""
    fields = getattr(record, "fields", None)
    return fields if isinstance(fields, dict) else {}


class TextFormatter(logging.Formatter):
    """`time level message name=value …`, with the traceback below it if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, or more with a traceback."""
        level = _LEVELS.get(record.levelno, record.levelname.lower())
        # What clients send must not be able to look like another line.
        message = record.getMessage().replace("\n", "\\n").replace("\r", "\\r")
        line = f"{_time(record)} {level:7} {message}"
        for name, value in _fields(record).items():
            line += f" {name}={msgspec.json.encode(value).decode() if isinstance(value, str) else value}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class JsonFormatter(logging.Formatter):
    """One JSON object per line: ts, level, logger, msg, the fields, and the traceback as `error`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line in any case."""
        level = _LEVELS.get(record.levelno, record.levelname.lower())
        entry = {"ts": _time(record), "level": level, "logger": record.name, "msg": record.getMessage()}
        entry |= _fields(record)  # type: ignore[arg-type]
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(entry, enc_hook=str).decode()


def configure(*, json: bool = False, verbosity: int = 0) -> None:
    """Sends the logs of this process to standard error, replacing what was configured before."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if json else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if verbosity >= REQUESTS_FROM else logging.INFO)
    logging.getLogger("asyncio").setLevel(logging.WARNING)


class RequestLog(SilentObserver):
    """Logs every request (an `Observer`)."""

    def answered(self, handling: Handling, answer: Answer) -> None:
        """One line for an answer, or for the start of a stream."""
        code = 200 if isinstance(answer, Stream) else answer.code
        self._write(handling, {"code": code, "ms": _milliseconds(handling)})

    def ended(self, handling: Handling) -> None:
        """One line for the end of a stream."""
        self._write(handling, {"ended": True, "ms": _milliseconds(handling)})

    def _write(self, handling: Handling, outcome: dict[str, object]) -> None:
        request = handling.request
        user = handling.caller.user if handling.caller is not None else ""
        fields = {**outcome, "user": user, "agent": request.header("user-agent"), "from": request.peer.address}
        log.debug("%s %s", request.method, request.uri, extra={"fields": fields})


def _milliseconds(handling: Handling) -> float:
    return round((perf_counter() - handling.started) * 1000, 2)
