"""The log of requests: one line for each, for debugging."""

from __future__ import annotations

import logging
from time import perf_counter

from dray.process.http import Answer
from dray.server.observers.handling import Handling, SilentObserver

log = logging.getLogger(__name__)


class RequestLog(SilentObserver):
    """Logs every request (an `Observer`)."""

    def answered(self, handling: Handling, answer: Answer) -> None:
        """One line for an answer, or for the start of a stream."""
        self._write(handling, {"code": answer.code, "ms": _milliseconds(handling)})

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
