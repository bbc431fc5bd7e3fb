"""Watches: the changes of a resource as a stream of lines, from a revision on, without gap or duplicate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from dray.api import codec
from dray.api.meta import Object, ObjectMeta
from dray.api.tenants import tenant
from dray.api.wire import MEDIA_TYPE
from dray.process.http.writing import turns
from dray.server import errors
from dray.server.beside import LARGE, MANY
from dray.server.bodies.options import ListOptions
from dray.server.engine import Call, Engine
from dray.server.portions import EVENTS, portions
from dray.server.protobuf import write
from dray.server.verbs import reads
from dray.store import Event, EventType, Expired, Record, StorageError, StoreError, Watcher

BOOKMARK_SECONDS = 60.0
DEFAULT_SECONDS = 45 * 60
PROTOBUF_AT_ONCE = 20
"""Events from which on they are written beside the loop in protobuf: each takes a tenth of a millisecond."""
INITIAL_EVENTS_END = "k8s.io/initial-events-end"

Sent = Callable[[int], None]
"""Hears how many events go out."""


class Form(Protocol):
    """How the client wants to see objects."""

    content_type: str
    in_protobuf: bool

    def render(self, record: Record) -> bytes:
        """One object."""
        ...

    def is_ready(self, record: Record) -> bool:
        """Whether that is no work."""
        ...

    def bookmark(self, meta: ObjectMeta) -> bytes:
        """An object that tells of nothing but its metadata."""
        ...


def _size(record: Record) -> int:
    return record.size


def _size_of_event(event: Event) -> int:
    return event.record.size


def line(kind: bytes, data: bytes) -> bytes:
    """One event as it goes over the wire."""
    return b'{"type":"%b","object":%b}\n' % (kind, data)


class Watch:
    """One client's watch. `chunks` yields bytes until the client's time is over or the watch cannot go on."""

    def __init__(
        self, engine: Engine, call: Call, options: ListOptions, form: Form, sent: Sent = lambda _: None
    ) -> None:
        """Raises ApiError for selectors that cannot be."""
        self._engine = engine
        self._call = call
        self._options = options
        self._render = form.render
        self._form = form
        self._sent = sent
        self._frame: Callable[[bytes, bytes], bytes] = write.frame if form.in_protobuf else line
        self._at_once = PROTOBUF_AT_ONCE if form.in_protobuf else MANY
        self.content_type = f"{MEDIA_TYPE};stream=watch" if form.in_protobuf else form.content_type
        self._test = reads.matcher(call, options)
        self._name = call.route.name
        if self._name and any(
            one.field == "metadata.name" and not one.negated and one.value != self._name
            for one in options.field_selector.requirements
        ):
            raise errors.bad_request("fieldSelector metadata.name doesn't match requested name")

    async def chunks(self) -> AsyncIterator[bytes]:
        """The stream, in pieces of many events when there are many."""
        store, options = self._engine.store, self._options
        initial = self._wants_initial_events()
        if store.is_shared:
            try:
                await self._see()
            except StorageError as error:
                yield self._error(errors.storage(error))
                return
        if options.revision is not None and options.revision > store.revision:
            # A revision of another life of the server: only a fresh list can help.
            expired = errors.expired(f"too large resource version: {options.revision}")
            yield self._error(reads.too_new(options.revision, store.revision) if initial else expired)
            return
        start = store.revision if initial else (options.revision or store.revision)
        if initial:
            async for chunk in self._initial_events():
                yield chunk
        try:
            watcher = store.watch(self._call.route.kind.storage.resource, start, self._call.route.namespace or None)
        except Expired as error:
            yield self._error(errors.expired(f"too old resource version: {start} ({error})"))
            return
        except StorageError as error:
            yield self._error(errors.storage(error))
            return
        with watcher:
            async for chunk in self._follow(watcher):
                yield chunk

    async def _see(self) -> None:
        """Waits for the state that the client starts from. Raises StorageError."""
        asked, store = self._options.revision, self._engine.store
        store.check_whole()
        if asked is None or asked > store.revision:
            await store.catch_up()

    def _wants_initial_events(self) -> bool:
        if self._options.send_initial_events is not None:
            return self._options.send_initial_events
        return not self._options.revision

    async def _initial_events(self) -> AsyncIterator[bytes]:
        route = self._call.route
        listing = self._engine.store.list(route.kind.storage.resource, route.namespace or None)
        records = listing.records
        for some in portions(records, _size):
            if route.kind.converts and self._engine.conversions is not None:
                some = await self._engine.conversions.records(route.kind, some)
            are_many = len(records) > self._at_once or not all(map(self._form.is_ready, some))
            await self._turn(sum(map(_size, some)))
            count, chunk = await self._engine.beside(self._call, self._added, some) if are_many else self._added(some)
            if count:
                self._sent(count)
                yield chunk
        if self._options.send_initial_events and self._options.bookmarks:
            yield self._frame(b"BOOKMARK", self._bookmark(listing.revision, {INITIAL_EVENTS_END: "true"}))

    async def _turn(self, size: int) -> None:
        """Waits until this watch is next: many hear of the same change, and each has it put into words."""
        await turns.next(tenant(self._call.caller.user), size)

    def _added(self, records: list[Record]) -> tuple[int, bytes]:
        """How many of some records the client should see, and the events that tell of them."""
        lines = [self._frame(b"ADDED", self._render(record)) for record in records if self._selects(record.obj)]
        return len(lines), b"".join(lines)

    async def _follow(self, watcher: Watcher) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        end = loop.time() + (self._options.timeout_seconds or DEFAULT_SECONDS)
        sent = watcher.revision
        while (left := end - loop.time()) > 0:
            try:
                events = await watcher.next(min(left, BOOKMARK_SECONDS), EVENTS)
            except StoreError as error:
                yield self._error(errors.expired(str(error)))
                return
            for some in portions(events, _size_of_event) if len(events) > 1 else (events,):
                await self._turn(sum(map(_size_of_event, some)))
                lines = await self._told(some)
                if lines:
                    self._sent(len(lines))
                    sent = watcher.revision
                    yield b"".join(lines)
            if not events and self._options.bookmarks and watcher.revision > sent:
                sent = watcher.revision
                self._sent(1)
                yield self._frame(b"BOOKMARK", self._bookmark(watcher.revision, {}))

    async def _told(self, events: list[Event]) -> list[bytes]:
        """Events in the version that the client asked for, as they go over the wire."""
        kind = self._call.route.kind
        if kind.converts and self._engine.conversions is not None:
            events = await self._engine.conversions.events(kind, events)
        return await self._lines(events)

    async def _lines(self, events: list[Event]) -> list[bytes]:
        """Events as they go over the wire. What is ready in JSON is work in protobuf: much of it is done beside, as is
        what is made of large objects in any form."""
        if self._form.in_protobuf:
            size = sum(event.record.size for event in events)
            if len(events) > self._at_once or size > LARGE:
                return await self._engine.beside(self._call, self._lines_now, events)
        if not all(self._form.is_ready(event.record) for event in events):
            return await self._engine.beside(self._call, self._lines_now, events)
        return self._lines_now(events)

    def _lines_now(self, events: list[Event]) -> list[bytes]:
        return [found for event in events if (found := self._line(event)) is not None]

    def _error(self, error: errors.ApiError) -> bytes:
        """A failure inside a stream that has begun."""
        return self._frame(b"ERROR", codec.encode(error.status))

    def _line(self, event: Event) -> bytes | None:
        """An event as the client should see it: what enters its selection is added, what leaves it is deleted."""
        if self._test is None and not self._name:
            return self._frame(event.type.value.encode(), self._render(event.record))
        before = event.previous is not None and self._selects(event.previous.obj)
        after = event.type is not EventType.DELETED and self._selects(event.record.obj)
        if after:
            return self._frame(b"MODIFIED" if before else b"ADDED", self._render(event.record))
        return self._frame(b"DELETED", self._render(event.record)) if before else None

    def _selects(self, obj: Object) -> bool:
        if self._name and obj.metadata.name != self._name:
            return False
        return self._test is None or self._test(obj)

    def _bookmark(self, revision: int, annotations: dict[str, str]) -> bytes:
        return self._form.bookmark(ObjectMeta(resource_version=str(revision), annotations=annotations))
