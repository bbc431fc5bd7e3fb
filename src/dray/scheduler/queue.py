"""Which pod is next: by priority, then by age. Pods that do not fit wait until something changes that may help.

add ─▶ active ─▶ pop ─▶ (decided)
         ▲                 │ refused
         │ event that may help, or five minutes
         └── backoff ◀── unschedulable
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Iterable
from enum import Flag, auto

import msgspec

from dray.reconcile.clock import Clock
from dray.scheduler.pod_info import PodInfo

FIRST_BACKOFF = 1.0
LONGEST_BACKOFF = 10.0
LONGEST_WAIT = 300.0

PodKey = tuple[str, str]


class Cause(Flag):
    """What a pod waits for: the kinds of change that may make it fit."""

    NOTHING = 0
    NODE = auto()
    POD_GONE = auto()
    DEVICES = auto()
    CLAIM = auto()
    CLASS = auto()
    ERROR = auto()
    """Something went wrong: try again whatever happens."""


class _Entry(msgspec.Struct):
    info: PodInfo
    added: float
    attempts: int = 0
    causes: Cause = Cause.NOTHING
    retry_at: float = 0.0


class SchedulingQueue:
    """The pods that have no node yet."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: dict[PodKey, _Entry] = {}
        self._active: list[tuple[int, float, int, PodKey]] = []
        self._queued: set[PodKey] = set()
        # In the order in which they began to wait, so that they are tried again in the same order every time.
        self._waiting: dict[PodKey, None] = {}
        self._in_hand: set[PodKey] = set()
        self._missed: set[PodKey] = set()
        self._users: dict[tuple[str, str], dict[PodKey, None]] = {}
        self._count = 0
        self._wake = asyncio.Event()
        self._timers: list[tuple[float, int, PodKey]] = []
        self._timer: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def sizes(self) -> dict[str, int]:
        """How many pods are where, for metrics."""
        return {"active": len(self._queued), "unschedulable": len(self._waiting), "in flight": len(self._in_hand)}

    def waiting(self) -> list[PodInfo]:
        """The pods that do not fit now."""
        return [self._entries[key].info for key in self._waiting]

    def get(self, key: PodKey) -> PodInfo | None:
        """A pod as it is known here."""
        entry = self._entries.get(key)
        return None if entry is None else entry.info

    def put(self, info: PodInfo, *, changed: bool, waits_for: Cause = Cause.NOTHING) -> None:
        """A pod is new, or has changed in a way that may make it fit (`changed`).

        A new one need not be tried before one of the causes that it `waits_for` happens.
        """
        key = info.key
        entry = self._entries.get(key)
        if entry is not None:
            self._unlink(entry.info)
        for claim in info.claims:
            self._users.setdefault(claim, {})[key] = None
        if entry is None:
            now = self._clock.monotonic()
            self._entries[key] = _Entry(info, now, causes=waits_for)
            if waits_for:
                self._waiting[key] = None
                self._schedule(key, now + LONGEST_WAIT)
            else:
                self._activate(key)
            return
        entry.info = info
        if changed:
            self._revive(key, entry, at_once=True)

    def remove(self, key: PodKey) -> None:
        """A pod is gone, or has a node."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._unlink(entry.info)
        self._queued.discard(key)
        self._waiting.pop(key, None)
        self._in_hand.discard(key)

    async def pop(self) -> PodInfo:
        """The next pod to decide on; follow up with `refuse`, `give_back` or `remove`."""
        while True:
            while self._active:
                key = heapq.heappop(self._active)[3]
                if key in self._queued:
                    self._queued.discard(key)
                    self._in_hand.add(key)
                    entry = self._entries[key]
                    entry.attempts += 1
                    return entry.info
            self._wake.clear()
            await self._wake.wait()

    def refuse(self, key: PodKey, causes: Cause) -> None:
        """A pod does not fit until one of `causes` changes."""
        entry = self._entries.get(key)
        self._in_hand.discard(key)
        if entry is None:
            return
        entry.causes = causes
        backoff = min(FIRST_BACKOFF * 2 ** min(entry.attempts - 1, 10), LONGEST_BACKOFF)
        now = self._clock.monotonic()
        entry.retry_at = now + backoff
        self._waiting[key] = None
        if key in self._missed:
            # Something happened while the pod was being decided on: the decision may be out of date.
            self._missed.discard(key)
            self._revive(key, entry, at_once=False)
        else:
            self._schedule(key, entry.retry_at if Cause.ERROR in causes else now + LONGEST_WAIT)

    def happened(
        self, cause: Cause, concerns: Callable[[PodInfo], bool] | None = None, *, at_once: bool = True
    ) -> None:
        """Something changed: pods that wait for it, and that it `concerns`, are tried again."""
        for key in list(self._waiting):
            entry = self._entries[key]
            if entry.causes & cause and (concerns is None or concerns(entry.info)):
                self._revive(key, entry, at_once=at_once)
        self._missed.update(self._in_hand)

    def claim_changed(
        self, namespace: str, name: str, owners: Iterable[str], is_ready: Callable[[PodInfo], bool]
    ) -> None:
        """A claim changed: the pods that name it, and those it was made for, are tried again at once if they can."""
        for key in [*self._users.get((namespace, name), ()), *[(namespace, owner) for owner in owners]]:
            entry = self._entries.get(key)
            if entry is None:
                continue
            if key in self._in_hand or (entry.causes & Cause.CLAIM and is_ready(entry.info)):
                self._revive(key, entry, at_once=True)

    def _unlink(self, info: PodInfo) -> None:
        for claim in info.claims:
            users = self._users.get(claim)
            if users is not None:
                users.pop(info.key, None)
                if not users:
                    del self._users[claim]

    def _revive(self, key: PodKey, entry: _Entry, *, at_once: bool) -> None:
        if key in self._in_hand:
            self._missed.add(key)
        elif key in self._waiting:
            if at_once or entry.retry_at <= self._clock.monotonic():
                self._waiting.pop(key, None)
                self._activate(key)
            else:
                self._schedule(key, entry.retry_at)

    def _activate(self, key: PodKey) -> None:
        if key in self._queued:
            return
        entry = self._entries[key]
        self._queued.add(key)
        self._count += 1
        priority = entry.info.pod.spec.priority or 0
        heapq.heappush(self._active, (-priority, entry.added, self._count, key))
        self._wake.set()

    def _schedule(self, key: PodKey, moment: float) -> None:
        self._count += 1
        heapq.heappush(self._timers, (moment, self._count, key))
        if self._timers[0][2] == key and self._timers[0][0] == moment:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = asyncio.get_running_loop().create_task(self._wait())

    async def _wait(self) -> None:
        while self._timers:
            moment, _, key = self._timers[0]
            left = moment - self._clock.monotonic()
            if left > 0:
                await self._clock.sleep(left)
                continue
            heapq.heappop(self._timers)
            if key in self._waiting:
                self._waiting.pop(key, None)
                self._activate(key)
        self._timer = None

    def close(self) -> None:
        """Stops the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
