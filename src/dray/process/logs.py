"""Logs of a process: lines for people, or one JSON object per line for programs, on standard error."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime

import msgspec

from dray.api.visible import visible

REQUESTS_FROM = 1
"""The verbosity from which every request is logged, and all else that is for debugging."""

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
        # What clients send must not be able to look like another line, or do something to the terminal.
        line = f"{_time(record)} {level:7} {visible(record.getMessage())}"
        for name, value in _fields(record).items():
            shown = msgspec.json.encode(value).decode() if isinstance(value, str) else str(value)
            line += f" {name}={visible(shown)}"
        if record.exc_info:
            line += "\n" + "\n".join(map(visible, self.formatException(record.exc_info).split("\n")))
        return line


class JsonFormatter(logging.Formatter):
    """One JSON object per line: ts, level, logger, msg, the fields, and the traceback as `error`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line in any case."""
        level = _LEVELS.get(record.levelno, record.levelname.lower())
        entry: dict[str, object] = {
            "ts": _time(record),
            "level": level,
            "logger": record.name,
            "msg": record.getMessage(),
        }
        entry |= _fields(record)
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return printable_json(msgspec.json.encode(entry, enc_hook=str).decode())


def printable_json(line: str) -> str:
    """The same JSON with every character written out that does not print.

    JSON itself writes out the oldest control characters only; others may end up on a terminal, too.
    """
    return line if line.isprintable() else "".join(char if char.isprintable() else _escaped(char) for char in line)


def _escaped(char: str) -> str:
    """A character as JSON writes it out; those beyond 16 bits are two."""
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def configure(*, json: bool = False, verbosity: int = 0) -> None:
    """Sends the logs of this process to standard error, replacing what was configured before."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if json else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if verbosity >= REQUESTS_FROM else logging.INFO)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
