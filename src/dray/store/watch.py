"""Watchers: a position in a resource's event log, and a wake-up when there is more to read.

Nothing is queued per watcher. A batch of writes wakes each waiting watcher once, and each then takes a slice of
the shared log. One that does not read is cut off (`Slow`) when the log drops events it has not seen.
"""

from __future__ import annotations

import asyncio
from types import TracebackType

from dray.store.errors import Closed, Slow, StoreError
from dray.store.log import EventLog
from dray.store.records import Event

WAKE_SECONDS = 100e-6
"""What waking one watcher is worth waiting for: a reader's task, its encoding and its socket cost about half of
this. Wake-ups of a resource keep this distance times its watchers, so that they never eat a whole core."""

WAKE_SECONDS_MOST = 0.020
"""However many watchers there are, nobody waits longer than this for a wake-up."""


class Progress:
    """The store's visible revision, shared with the watchers so that an idle one can still send a bookmark."""

    __slots__ = ("revision",)

    def __init__(self, revision: int) -> None:
        self.revision = revision


class Watcher:
    """One reader of one resource's events, in revision order, without gap or duplicate.

    Use it from the event loop's thread, by one task at a time::

        with store.watch("pods", listing.revision) as watcher:
            while True:
                events = await watcher.next(timeout=60)   # [] after a quiet minute: time for a bookmark
                send(events, watcher.revision)
    """

    __slots__ = ("_ended", "_floor", "_group", "_log", "_position", "_progress", "_waiter", "namespace", "revision")

    def __init__(self, group: WatcherGroup, from_revision: int, namespace: str | None) -> None:
        self.namespace = namespace
        self.revision = from_revision
        """Every event up to here was handed out (or does not concern this watcher): good for a bookmark."""
        self._group = group
        self._log = group.log
        self._progress = group.progress
        self._position = group.log.position_after(from_revision)
        # A client may resume from a revision that is still to come: older events must not reach it.
        self._floor = from_revision if from_revision > group.progress.revision else 0
        self._waiter: asyncio.Future[None] | None = None
        self._ended: StoreError | None = None

    def read(self, limit: int | None = None) -> list[Event]:
        """What is there now, perhaps nothing. Raises `Slow` or `Closed` when the watch has ended."""
        if self._ended is not None:
            raise self._ended
        events = self._log.since(self._position, limit)
        self._position += len(events)
        if self._position == self._log.end:
            self.revision = max(self.revision, self._progress.revision)
        elif events:
            self.revision = max(self.revision, events[-1].record.revision)
        if self._floor:
            events = [event for event in events if event.record.revision > self._floor]
        namespace = self.namespace
        if namespace is not None:
            events = [event for event in events if event.record.key[1] == namespace]
        return events

    async def next(self, timeout: float | None = None, limit: int | None = None) -> list[Event]:
        """Wait for events and return them; `[]` when none came within `timeout` seconds."""
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        while True:
            events = self.read(limit)
            if events or (deadline is not None and loop.time() >= deadline):
                return events
            await self._wait(loop, deadline)

    def close(self) -> None:
        """Stop watching; a pending `next` raises `Closed`."""
        self.end(Closed("the watch was closed"))

    def end(self, reason: StoreError) -> None:
        """End the watch for `reason`, which the reader gets from its next `read`."""
        if self._ended is None:
            self._ended = reason
            self._group.remove(self)
            self.wake()

    def wake(self) -> None:
        """Let a waiting `next` look again."""
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    @property
    def is_current(self) -> bool:
        """Whether everything was read that there is: the cheapest question that can be asked before each use."""
        log = self._log
        return self._position == log.first + len(log.events) and self._ended is None

    @property
    def behind(self) -> bool:
        """Whether events that this watcher has not read are gone."""
        return self._position < self._log.first

    async def _wait(self, loop: asyncio.AbstractEventLoop, deadline: float | None) -> None:
        if self._position < self._log.end:
            return
        timer = None if deadline is None else loop.call_at(deadline, self.wake)
        self._waiter = loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def __enter__(self) -> Watcher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class WatcherGroup:
    """The watchers of one resource: wakes them, spaced out when they are many, and cuts off the stalled."""

    __slots__ = ("_members", "_timer", "_woken_at", "log", "progress", "resource")

    def __init__(self, resource: str, log: EventLog, progress: Progress) -> None:
        self.resource = resource
        self.log = log
        self.progress = progress
        # A dict keeps the order of arrival, so that a simulation wakes in the same order every time.
        self._members: dict[Watcher, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._woken_at = float("-inf")

    def __len__(self) -> int:
        return len(self._members)

    def add(self, from_revision: int, namespace: str | None) -> Watcher:
        watcher = Watcher(self, from_revision, namespace)
        self._members[watcher] = None
        return watcher

    def remove(self, watcher: Watcher) -> None:
        self._members.pop(watcher, None)

    def notify(self, loop: asyncio.AbstractEventLoop) -> None:
        """The log has grown: wake the readers now or, after a recent wake-up, a little later, all together."""
        if not self._members or self._timer is not None:
            return
        distance = min(WAKE_SECONDS * len(self._members), WAKE_SECONDS_MOST)
        due = self._woken_at + distance
        if loop.time() >= due:
            self._wake(loop)
        else:
            self._timer = loop.call_at(due, self._wake, loop)

    def cut_off_stalled(self) -> None:
        """The log has dropped events: end the watchers that had not read them."""
        for watcher in [member for member in self._members if member.behind]:
            watcher.end(Slow(self.resource, watcher.revision))

    def end_all(self, reason: StoreError) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for watcher in list(self._members):
            watcher.end(reason)

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        self._woken_at = loop.time()
        for watcher in self._members:
            watcher.wake()
