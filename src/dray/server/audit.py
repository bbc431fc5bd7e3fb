"""The audit log: who asked for what and what came of it, as one audit.k8s.io/v1 Event per line.

    request ─▶ answered ─▶ [ pending entries ] ─▶ a few times a second, on a thread: encode, append, flush ─▶ file

The event loop only notes what it has at hand, so a slow disk delays the log and not the requests. If the disk is so
slow that too many entries pile up, or refuses, entries are lost: that is logged, with their number.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import Any

import msgspec

from dray.api.meta import Status
from dray.server.handling import Handling, SilentObserver
from dray.server.http import Answer, Request, Stream
from dray.server.routes import Route
from dray.server.security.identity import Identity

FLUSH_SECONDS = 0.25
MAX_PENDING = 100_000

log = logging.getLogger(__name__)


class _Entry(msgspec.Struct, gc=False):
    """What is noted of a request. `body` is kept only where the answer tells more: failures and new objects."""

    id: str
    stage: str
    request: Request
    caller: Identity | None
    sender: Identity | None
    route: Route | None
    code: int
    received: float
    at: float
    body: bytes = b""


class _Named(msgspec.Struct):
    name: str = ""
    uid: str = ""
    resource_version: str = msgspec.field(default="", name="resourceVersion")


class _Created(msgspec.Struct):
    """What is read of a new object: what the path did not tell."""

    metadata: _Named = msgspec.field(default_factory=_Named)


_read_created = msgspec.json.Decoder(_Created).decode
_read_status = msgspec.json.Decoder(Status).decode


class AuditLog(SilentObserver):
    """Writes every request to a file (an `Observer`). Health checks and metrics scrapes are left out."""

    def __init__(self, path: Path) -> None:
        """Opens the file for appending, made (0600) if absent. Raises OSError."""
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._pending: list[_Entry] = []
        self._lost = 0
        self._flusher: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to write what is noted."""
        self._flusher = asyncio.get_running_loop().create_task(self._flush_often())

    async def close(self) -> None:
        """Writes what is left, and closes the file."""
        if self._flusher is not None:
            self._flusher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._flusher
        await self._flush()
        os.close(self._file)

    def answered(self, handling: Handling, answer: Answer) -> None:
        """Notes the answer, or that a stream has begun."""
        if handling.route is None and _is_routine(handling.request.path):
            return
        if isinstance(answer, Stream):
            self._note(handling, "ResponseStarted", 200, b"")
            return
        tells = answer.code >= 400 or answer.code == 201
        self._note(handling, "ResponseComplete", answer.code, answer.body if tells else b"")

    def ended(self, handling: Handling) -> None:
        """Notes the end of a stream."""
        self._note(handling, "ResponseComplete", 200, b"")

    def _note(self, handling: Handling, stage: str, code: int, body: bytes) -> None:
        if len(self._pending) >= MAX_PENDING:
            self._lost += 1
            return
        # The body of the request may be megabytes, and nobody will look at it.
        request = msgspec.structs.replace(handling.request, body=b"")
        sender, caller, route = handling.sender, handling.caller, handling.route
        entry = _Entry(handling.id, stage, request, caller, sender, route, code, handling.received, time(), body)
        self._pending.append(entry)

    async def _flush_often(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            await self._flush()

    async def _flush(self) -> None:
        entries, self._pending = self._pending, []
        lost, self._lost = self._lost, 0
        if entries:
            writing = asyncio.get_running_loop().run_in_executor(None, self._append, entries)
            try:
                await asyncio.shield(writing)
            except asyncio.CancelledError:
                await writing
                raise
            except OSError as error:
                lost += len(entries)
                log.error("audit log %s: %s", self._path, error.strerror)
        if lost:
            log.error("audit log %s: %d entries are lost", self._path, lost)

    def _append(self, entries: list[_Entry]) -> None:
        data = memoryview(b"".join(msgspec.json.encode(event(entry)) + b"\n" for entry in entries))
        while data:
            data = data[os.write(self._file, data) :]


def _is_routine(path: str) -> bool:
    return path.startswith(("/livez", "/readyz", "/healthz", "/metrics"))


def event(entry: _Entry) -> dict[str, Any]:
    """An entry as an Event of audit.k8s.io/v1, level Metadata."""
    request, route = entry.request, entry.route
    found: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": entry.id,
        "stage": entry.stage,
        "requestURI": request.uri,
        "verb": route.verb if route is not None else request.method.lower(),
        "user": _user(entry.sender or entry.caller),
        "sourceIPs": [request.peer.address],
        "userAgent": request.header("user-agent"),
    }
    if entry.sender is not None and entry.caller is not None and entry.sender != entry.caller:
        found["impersonatedUser"] = _user(entry.caller)
    if route is not None:
        found["objectRef"] = _object_ref(route, entry)
    found["responseStatus"] = _response_status(entry)
    found["requestReceivedTimestamp"] = _micro_time(entry.received)
    found["stageTimestamp"] = _micro_time(entry.at)
    return found


def _user(identity: Identity | None) -> dict[str, Any]:
    if identity is None:
        return {}
    user: dict[str, Any] = {"username": identity.user, "groups": identity.groups}
    if identity.uid:
        user["uid"] = identity.uid
    if identity.extra:
        user["extra"] = identity.extra
    return user


def _object_ref(route: Route, entry: _Entry) -> dict[str, str]:
    created = _Named()
    if entry.code == 201:
        with contextlib.suppress(msgspec.DecodeError):
            created = _read_created(entry.body).metadata
    reference = {
        "resource": route.kind.plural,
        "namespace": route.namespace,
        "name": route.name or created.name,
        "uid": created.uid,
        "apiGroup": route.kind.group,
        "apiVersion": route.version,
        "resourceVersion": created.resource_version,
        "subresource": route.subresource,
    }
    return {name: value for name, value in reference.items() if value}


def _response_status(entry: _Entry) -> dict[str, Any]:
    status: dict[str, Any] = {"metadata": {}, "code": entry.code}
    if entry.code >= 400:
        with contextlib.suppress(msgspec.DecodeError):
            told = _read_status(entry.body)
            status |= {"status": told.status, "reason": told.reason, "message": told.message}
    return status


def _micro_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
