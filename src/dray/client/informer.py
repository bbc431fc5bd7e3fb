"""A local copy of all objects of a kind, kept current by list and watch.

Handlers see every change once, in order, as (old, new), where None means "was not there" or "is gone". They are plain
functions: they note what is to be done and return. A broken watch is resumed where it was; when the server cannot go
back that far, a fresh list is compared with the copy, and handlers see only what differs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from typing import Any, Generic, TypeVar, cast

from dray.api.backoff import Backoff
from dray.api.meta import Object
from dray.api.registry import Kind
from dray.api.status import ApiError
from dray.client.interface import Client, WatchExpired

T = TypeVar("T", bound=Object)
Handler = Callable[[T | None, T | None], None]
IndexFunction = Callable[[T], Sequence[Hashable]]
Sleep = Callable[[float], Awaitable[None]]

BACKOFF = Backoff(first=0.05, longest=10.0)
LISTED_AT_ONCE = 8
WATCHED_AT_ONCE = 32
"""Objects that handlers hear of before others get a turn of the loop. Those of a first list may take a quarter of a
millisecond each, and several informers list at the same time."""

log = logging.getLogger(__name__)


_Where = tuple[str, str]
"""Namespace and name; an `ObjectName` is one."""


class Informer(Generic[T]):
    """The copy. Reading it is synchronous and never waits."""

    def __init__(self, client: Client, kind: Kind, *, namespace: str = "", fields: str = "", sleep: Sleep) -> None:
        """`sleep` is the clock's: an awaitable that ends after so many seconds."""
        self.kind = kind
        self._client = client
        self.namespace = namespace
        self._fields = fields
        self._sleep = sleep
        self._objects: dict[_Where, T] = {}
        self._handlers: list[Handler[T]] = []
        self._indexes: dict[str, tuple[IndexFunction[T], dict[Hashable, dict[_Where, T]]]] = {}
        self._synced = asyncio.Event()
        self._revision = ""
        """How far list and watch have told us; what a write answers with may be ahead of it."""
        self.last_error: str = ""

    def on_change(self, handler: Handler[T]) -> None:
        """Registers a handler; it is told of everything that is there already."""
        self._handlers.append(handler)
        for obj in list(self._objects.values()):
            handler(None, obj)

    async def inform(self, handler: Handler[T]) -> None:
        """Registers a handler, and tells it of what is there already, a few objects at a time.

        For whoever begins to listen while others wait for the loop. It sees every change once, in order, as others do:
        an object that it has not been told of yet is told as it is when its turn comes.
        """
        untold = dict.fromkeys(self._objects)

        def hear(old: T | None, new: T | None) -> None:
            place = _place(cast(T, old if new is None else new))
            if place not in untold:
                handler(old, new)
            elif new is None:
                del untold[place]

        turns = _Turns(LISTED_AT_ONCE)
        self._handlers.append(hear)
        try:
            for place in list(untold):
                if place in untold:
                    del untold[place]
                    handler(None, self._objects[place])
                    if turns.is_over():
                        await asyncio.sleep(0)
            self._handlers.append(handler)
        finally:
            self._handlers.remove(hear)

    def ignore(self, handler: Handler[T]) -> None:
        """Takes a handler back: it hears of nothing any more."""
        self._handlers.remove(handler)

    def add_index(self, name: str, function: IndexFunction[T]) -> None:
        """Keeps objects by keys that `function` finds in them."""
        table: dict[Hashable, dict[_Where, T]] = {}
        self._indexes[name] = (function, table)
        for place, obj in self._objects.items():
            for key in function(obj):
                table.setdefault(key, {})[place] = obj

    def get(self, namespace: str, name: str) -> T | None:
        """An object, None if it is not there."""
        return self._objects.get((namespace, name))

    def __iter__(self) -> Iterator[T]:
        return iter(list(self._objects.values()))

    def __len__(self) -> int:
        return len(self._objects)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing: asked for every pod by all who look for workloads that it may be of."""
        return not self._objects

    def by_index(self, name: str, key: Hashable) -> list[T]:
        """The objects under a key of an index."""
        return list(self._indexes[name][1].get(key, {}).values())

    @property
    def has_synced(self) -> bool:
        """Whether everything has been listed once."""
        return self._synced.is_set()

    async def synced(self) -> None:
        """Waits until everything has been listed once."""
        await self._synced.wait()

    def put(self, obj: T) -> None:
        """Notes a newer version that a write answered with, so that the writer sees its own write at once.

        The answer may come late: an object that the watch should have shown by now, and that is not there, is gone.
        """
        put_together((self, obj))

    async def run(self) -> None:
        """Lists and watches until cancelled, through errors, disconnects and restarts of the server.

        A watch that told nothing before it ended is a failure: who may list and not watch, or is behind somebody who
        cuts watches off, asks less and less often.
        """
        pauses = BACKOFF.pauses()
        revision = ""
        while True:
            begun, is_broken = revision, True
            try:
                if not revision:
                    begun = revision = await self._list()
                await self._watch(revision)
                is_broken = False
            except WatchExpired:
                revision = ""
            except (ApiError, OSError, TimeoutError) as error:
                self._note_failure(error, "watch" if revision else "list")
                code = error.code if isinstance(error, ApiError) else 0
                if code == 404:
                    # The server does not know this kind: there are none of it, until it does.
                    revision = ""
                    self._synced.set()
                    await self._sleep(BACKOFF.longest)
                    continue
                if code == 410:
                    revision = ""
            has_heard = begun != "" and self._revision != begun
            if revision:
                revision = self._revision
            if has_heard:
                pauses.reset()
            if is_broken or not has_heard:
                await self._sleep(pauses.next())

    def _note_failure(self, error: Exception, what: str) -> None:
        """Says what is new. That a watch is broken off is an everyday matter, that it is refused is not."""
        is_news, self.last_error = str(error) != self.last_error, str(error)
        is_ordinary = what == "watch" and not isinstance(error, ApiError)
        is_known = isinstance(error, ApiError) and error.code in (404, 410)
        if is_news and not is_ordinary and not is_known:
            log.warning("cannot %s %s: %s; it is tried again", what, self.kind.resource, error)

    async def _list(self) -> str:
        """A few objects at a time; what writes answer with meanwhile is newer than the list, and stays."""
        listing = await self._client.list(self.kind, self.namespace, fields=self._fields)
        items = cast(Sequence[T], listing.items)
        was_restored = self._is_behind(listing.revision)
        ahead = set() if was_restored else self._ahead_of(listing.revision)
        self._revision = listing.revision
        turns = _Turns(LISTED_AT_ONCE)
        fresh = set(map(_place, items)) if self._objects else set()
        for place in [place for place in self._objects if place not in fresh and place not in ahead]:
            self._remove(place)
            if turns.is_over():
                await asyncio.sleep(0)
        for obj in items:
            place = _place(obj)
            current = self._objects.get(place)
            if current is None or (
                place not in ahead
                and current.metadata.resource_version != obj.metadata.resource_version
                and (was_restored or _is_later(obj.metadata.resource_version, current.metadata.resource_version))
            ):
                self._set(place, current, obj)
                if turns.is_over():
                    await asyncio.sleep(0)
        self._synced.set()
        self.last_error = ""
        return listing.revision

    def _is_behind(self, revision: str) -> bool:
        """Whether a list is older than what the watch has told: the server was restored, and the list alone counts."""
        return bool(self._revision) and _is_later(self._revision, revision)

    def _ahead_of(self, revision: str) -> set[_Where]:
        """The objects that writes have answered with since a list was made; the watch is going to tell of them."""
        return {place for place, obj in self._objects.items() if _is_later(obj.metadata.resource_version, revision)}

    async def _watch(self, revision: str) -> None:
        """Follows the watch until it ends. How far it came is in `_revision`, also after an error."""
        self._revision = revision
        turns = _Turns(WATCHED_AT_ONCE)
        async for event in self._client.watch(self.kind, self.namespace, revision=revision, fields=self._fields):
            obj: T = event.object  # type: ignore[assignment]  # of the kind that was asked for
            place = _place(obj)
            if event.type == "DELETED":
                self._remove(place, obj)
            elif event.type in ("ADDED", "MODIFIED"):
                current = self._objects.get(place)
                known = current.metadata.resource_version if current is not None else ""
                # In one process, what a write answered with is the very object that its event has.
                if current is not obj and _is_later(obj.metadata.resource_version, known):
                    self._set(place, current, obj)
            self._revision = obj.metadata.resource_version or self._revision
            if turns.is_over():
                await asyncio.sleep(0)

    def _set(self, place: _Where, old: T | None, obj: T) -> None:
        self._tell(self._keep(place, old, obj), obj)

    def _keep(self, place: _Where, old: T | None, obj: T) -> T | None:
        """Takes an object in; what handlers are to be told was there before."""
        if old is not None and old.metadata.uid != obj.metadata.uid:
            # Nobody told that it went before another of its name came: handlers may keep things by uid.
            self._remove(place)
            old = None
        self._objects[place] = obj
        self._reindex(place, old, obj)
        return old

    def _tell(self, old: T | None, obj: T) -> None:
        for handler in self._handlers:
            handler(old, obj)

    def _take_newer(self, obj: T) -> tuple[T | None] | None:
        """Takes an object in if it is newer than what is known; what was there before, None if it is not."""
        place = _place(obj)
        current = self._objects.get(place)
        known = self._revision if current is None else current.metadata.resource_version
        if not _is_later(obj.metadata.resource_version, known):
            return None
        return (self._keep(place, current, obj),)

    def _remove(self, place: _Where, last: T | None = None) -> None:
        old = self._objects.pop(place, None)
        if old is None:
            return
        if last is not None and last.metadata.uid != old.metadata.uid:
            self._objects[place] = old  # a delete of an earlier object of that name
            return
        self._reindex(place, old, None)
        for handler in self._handlers:
            handler(last or old, None)

    def _reindex(self, place: _Where, old: T | None, new: T | None) -> None:
        for function, table in self._indexes.values():
            after = function(new) if new is not None else ()
            if old is not None and (before := function(old)) != after:
                for key in before:
                    if key not in after and key in table:
                        table[key].pop(place, None)
                        if not table[key]:
                            del table[key]
            if new is not None:
                for key in after:
                    table.setdefault(key, {})[place] = new


def put_together(*written: tuple[Informer[Any], Any]) -> None:
    """Notes what one write answered with, as `put` does: the handlers of each object find all of them there."""
    news = [(informer, informer._take_newer(obj), obj) for informer, obj in written]
    for informer, taken, obj in news:
        if taken is not None:
            informer._tell(taken[0], obj)


class _Turns:
    """Counts what handlers have heard of. By number, not by time: a day of the simulation can be lived again."""

    __slots__ = ("_at_once", "_count")

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._count = 0

    def is_over(self) -> bool:
        """One more; whether others should get a turn of the loop now."""
        self._count += 1
        return self._count % self._at_once == 0


def _place(obj: Object) -> _Where:
    """Where an object is, as `ObjectName` without its cost: every event of every informer comes by here."""
    meta = obj.metadata
    return meta.namespace, meta.name


def _is_later(revision: str, known: str) -> bool:
    """Whether a revision is later. Kubernetes' are numbers that grow; anything else is taken as later if it differs."""
    if len(revision) == len(known):
        return revision > known if revision.isdigit() else revision != known
    if revision.isdigit() and known.isdigit():
        return int(revision) > int(known)
    return revision != known
