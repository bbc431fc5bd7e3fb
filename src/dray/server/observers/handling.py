"""What is known of a request while it is answered, and those who want to hear of it: metrics, audit log, logs."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Protocol

import msgspec

from dray.process.http import Answer, Request
from dray.server.routes import Route
from dray.server.security.identity import Identity

LONGEST_ID = 64


class Handling(msgspec.Struct):
    """One request on its way; `caller` and `route` are filled in as they become known.

    `started` is on the monotonic clock, `received` on the wall clock, both in seconds. `sender` is who really sent
    the request, where that is somebody else than the caller (impersonation).
    """

    request: Request
    started: float
    received: float
    caller: Identity | None = None
    sender: Identity | None = None
    route: Route | None = None
    annotations: Mapping[str, str] | None = None
    """What admission wants the audit log to have."""
    _id: str = ""

    @property
    def id(self) -> str:
        """What ties the traces of one request together: the client's own `Audit-Id`, or a new one."""
        if not self._id:
            self._id = self.request.header("audit-id")[:LONGEST_ID] or str(uuid.uuid4())
        return self._id


class Observer(Protocol):
    """Hears of every request. Runs on the event loop between requests: it must be quick and must not fail."""

    def began(self, handling: Handling) -> None:
        """A request has been read; nothing is known of it yet."""
        ...

    def answered(self, handling: Handling, answer: Answer) -> None:
        """The answer is made; a stream has only begun."""
        ...

    def sent(self, route: Route, events: int) -> None:
        """A watch sends events."""
        ...

    def ended(self, handling: Handling) -> None:
        """A stream is over."""
        ...


class SilentObserver:
    """Hears everything and does nothing; observers override what they care about."""

    def began(self, handling: Handling) -> None:
        """A request has been read."""

    def answered(self, handling: Handling, answer: Answer) -> None:
        """The answer is made."""

    def sent(self, route: Route, events: int) -> None:
        """A watch sends events."""

    def ended(self, handling: Handling) -> None:
        """A stream is over."""
