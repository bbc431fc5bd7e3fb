"""The audit log: who asked for what and what came of it, as one audit.k8s.io/v1 Event per line.

    request ─▶ answered ─▶ policy ─▶ [ pending entries ] ─▶ a few times a second, on a thread: encode, append ─▶ file

The event loop only notes what it has at hand, so a slow disk delays the log and not the requests. If the disk is so
slow that too many entries, or bytes of them, pile up, or refuses, entries are lost: that is logged, with their number.
The stage RequestReceived is noted with the answer, when it is known who asked for what.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import Any

import msgspec

from dray.api.meta import Status
from dray.process.http import Answer, LongResponse, Request, Response
from dray.process.logs import printable_json
from dray.server.observers.audit_file import AuditFile, Rotation
from dray.server.observers.audit_policy import (
    DEFAULT,
    NOTHING,
    AuditLevel,
    AuditPolicy,
    AuditStage,
    WantedAudit,
    wanted_of,
)
from dray.server.observers.handling import Handling, SilentObserver
from dray.server.routes import Route
from dray.server.security.identity import Identity

FLUSH_SECONDS = 0.25
MAX_PENDING = 100_000
MAX_PENDING_BYTES = 64 * 1024 * 1024
LARGEST_OBJECT = 1024 * 1024
"""Objects that are larger are left out, and that is noted: a large list would keep the interpreter busy for long."""
TRUNCATED = "audit.k8s.io/truncated"

log = logging.getLogger(__name__)


class _Entry(msgspec.Struct, gc=False):
    """What is noted of a request. `body` is kept only where the answer tells more: failures and new objects."""

    id: str
    stage: AuditStage
    request: Request
    caller: Identity | None
    sender: Identity | None
    route: Route | None
    code: int
    received: float
    at: float
    body: bytes = b""
    annotations: Mapping[str, str] | None = None
    wanted: WantedAudit = NOTHING
    answer: bytes = b""
    """What was answered, if that is to be told."""


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
    """Writes what a policy wants to have of every request to a file (an `Observer`)."""

    def __init__(self, path: Path, policy: AuditPolicy = DEFAULT, rotation: Rotation = Rotation()) -> None:  # noqa: B008 - immutable
        self._path = path
        self._policy = policy
        self._rotation = rotation
        self._file: AuditFile | None = None
        self._pending: list[_Entry] = []
        self._pending_bytes = 0
        self._lost = 0
        self._flusher: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Opens the file for appending, made (0600) if absent, and begins to write. Raises OSError."""
        self._file = AuditFile(self._path, self._rotation)
        self._flusher = asyncio.get_running_loop().create_task(self._flush_often(self._file))

    async def close(self) -> None:
        """Writes what is left, and closes the file. Idempotent."""
        if self._flusher is not None:
            self._flusher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._flusher
        if self._file is not None:
            await self._flush(self._file)
            self._file.close()
            self._file = None

    def answered(self, handling: Handling, answer: Answer) -> None:
        """Notes the answer, or that a stream has begun."""
        wanted = self._wanted(handling)
        if wanted.level is AuditLevel.NONE:
            return
        if AuditStage.REQUEST_RECEIVED not in wanted.omit_stages:
            self._note(handling, wanted, AuditStage.REQUEST_RECEIVED, 0)
        if not isinstance(answer, Response):
            self._note(handling, wanted, AuditStage.RESPONSE_STARTED, answer.code)
            return
        if isinstance(answer, LongResponse) and wanted.level is AuditLevel.REQUEST_RESPONSE:
            handling.annotations = {**(handling.annotations or {}), TRUNCATED: "true"}  # it is never there as a whole
        self._note(handling, wanted, AuditStage.RESPONSE_COMPLETE, answer.code, answer.body)

    def ended(self, handling: Handling) -> None:
        """Notes the end of a stream."""
        wanted = self._wanted(handling)
        if wanted.level is not AuditLevel.NONE:
            self._note(handling, wanted, AuditStage.RESPONSE_COMPLETE, 200)

    def _wanted(self, handling: Handling) -> WantedAudit:
        request, route = handling.request, handling.route
        verb = route.verb if route is not None else request.method.lower()
        return wanted_of(self._policy, handling.sender or handling.caller, verb, route, request.path)

    def _note(self, handling: Handling, wanted: WantedAudit, stage: AuditStage, code: int, body: bytes = b"") -> None:
        if stage in wanted.omit_stages:
            return
        request, sent = handling.request, b""
        if wanted.level is not AuditLevel.METADATA and stage is not AuditStage.REQUEST_RECEIVED:
            sent = request.body
        shown = body if wanted.level is AuditLevel.REQUEST_RESPONSE else b""
        agent = request.header("user-agent")
        told = body if code >= 400 or code == 201 else b""
        # All that strangers can make long: the address is there as it was sent, and as path and names.
        size = len(sent) + len(shown) + len(told) + 3 * len(request.uri) + len(agent)
        if len(self._pending) >= MAX_PENDING or self._pending_bytes + size > MAX_PENDING_BYTES:
            self._lost += 1
            return
        self._pending_bytes += size
        entry = _Entry(
            id=handling.id,
            stage=stage,
            # Bodies may be megabytes, and headers many; mostly nobody will look at them.
            request=msgspec.structs.replace(request, body=sent, headers={"user-agent": agent}, query={}),
            caller=handling.caller,
            sender=handling.sender,
            route=handling.route,
            code=code,
            received=handling.received,
            at=handling.received if stage is AuditStage.REQUEST_RECEIVED else time(),
            body=told,
            annotations=handling.annotations,
            wanted=wanted,
            answer=shown,
        )
        self._pending.append(entry)

    async def _flush_often(self, file: AuditFile) -> None:
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            await self._flush(file)

    async def _flush(self, file: AuditFile) -> None:
        entries, self._pending, self._pending_bytes = self._pending, [], 0
        lost, self._lost = self._lost, 0
        if entries:
            writing = asyncio.get_running_loop().run_in_executor(None, _append, file, entries)
            try:
                lost += await asyncio.shield(writing)
            except asyncio.CancelledError:
                await writing
                raise
            except OSError as error:
                lost += len(entries)
                log.error("audit log %s: %s", self._path, error.strerror)
        if lost:
            log.error("audit log %s: %d entries are lost", self._path, lost)


def _append(file: AuditFile, entries: list[_Entry]) -> int:
    """Appends entries; how many could not be told: one that makes trouble takes no others with it."""
    lines = [line for line in map(_line, entries) if line is not None]
    file.append(lines)
    return len(entries) - len(lines)


def _line(entry: _Entry) -> bytes | None:
    try:
        return printable_json(msgspec.json.encode(event(entry)).decode()).encode() + b"\n"
    except Exception:
        log.exception("audit log: request %s cannot be told", entry.id)
        return None


def event(entry: _Entry) -> dict[str, Any]:
    """An entry as an Event of audit.k8s.io/v1."""
    request, route = entry.request, entry.route
    found: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": entry.wanted.level,
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
    if entry.stage != AuditStage.REQUEST_RECEIVED:
        found["responseStatus"] = _response_status(entry)
    found["requestReceivedTimestamp"] = _micro_time(entry.received)
    found["stageTimestamp"] = _micro_time(entry.at)
    annotations = dict(entry.annotations or {})
    if route is not None:
        for name, body in (("requestObject", request.body), ("responseObject", entry.answer)):
            if len(body) > LARGEST_OBJECT:
                annotations[TRUNCATED] = "true"
            elif body and (written := _object(body, without_managers=entry.wanted.omit_managed_fields)) is not None:
                found[name] = written
    if annotations:
        found["annotations"] = annotations
    return found


def _object(body: bytes, *, without_managers: bool) -> msgspec.Raw | dict[str, Any] | None:
    """A body in one line; None for one that is no JSON."""
    try:
        body.decode()
        if without_managers:
            return _without_managers(msgspec.json.decode(body, type=dict[str, msgspec.Raw]))
        return msgspec.Raw(msgspec.json.format(body, indent=-1))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _without_managers(found: dict[str, Any]) -> dict[str, Any]:
    """An object, or a list of them, without `managedFields`."""
    if "metadata" in found:
        metadata = msgspec.json.decode(found["metadata"], type=dict[str, Any] | None)
        (metadata or {}).pop("managedFields", None)
        found["metadata"] = metadata
    if "items" in found:
        items = msgspec.json.decode(found["items"], type=list[dict[str, msgspec.Raw]] | None)
        found["items"] = [_without_managers(item) for item in items or ()]
    return {name: _in_one_line(value) for name, value in found.items()}


def _in_one_line(value: Any) -> Any:
    return msgspec.Raw(msgspec.json.format(bytes(value), indent=-1)) if isinstance(value, msgspec.Raw) else value


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
