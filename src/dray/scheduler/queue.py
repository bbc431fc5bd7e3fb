"""Which pod is next: by priority; of several namespaces each in its turn, and in a namespace by age. Pods that do not
fit wait until something changes that may help.

add ─▶ active ─▶ pop ─▶ (decided) ─▶ removed
        ▲  ▲              │ refused
        │  │              ├── it does not fit ──▶ unschedulable ──┐
        │  └──────────────┼──────────────────────────────────────┤ an event that may help, or five minutes
        │                 └── an error ──▶ backoff ◀─────────────┘ the event comes before the pod's time
        └────────────────────────────────────┘ its time has come

Ten thousand pods of a namespace that are tried again and again are as many turns of that namespace, and no other waits
for them. One of whose pods too much is being written already has none until there is room.

A pod whose decision takes longer than a turn is not among the others from then on, whatever its priority: every other
turn begins with one of those, each namespace in its turn, so that nobody waits for all that they ask for.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import OrderedDict
from collections.abc import Callable, Iterable

import msgspec

from dray.api.backoff import Backoff
from dray.api.references import ObjectName
from dray.process.clock import Clock
from dray.reconcile.timers import Timers
from dray.scheduling.cause import Cause
from dray.scheduling.pod_info import PodInfo

BACKOFF = Backoff(first=1.0, longest=10.0)
LONGEST_WAIT = 300.0


class _Entry(msgspec.Struct):
    info: PodInfo
    added: float
    attempts: int = 0
    causes: Cause = Cause.NOTHING
    retry_at: float = 0.0
    is_slow: bool = False
    """Whether its last decision was not finished in its turn."""


class SchedulingQueue:
    """The pods that have no node yet."""

    def __init__(
        self, clock: Clock, *, hints: bool = True, goes_first: Callable[[PodInfo], bool] | None = None
    ) -> None:
        """Without `hints`, events wake all that wait for their kind, and none of them before its time (4381-120).

        Whoever `goes_first` does so, whatever its priority and age.
        """
        self.has_room: Callable[[str], bool] = lambda _namespace: True
        """Whether pods of a namespace may be decided on now."""
        self._goes_first = goes_first
        self._clock = clock
        self._hints = hints
        self._entries: dict[ObjectName, _Entry] = {}
        self._active: dict[str, list[tuple[bool, int, float, int, ObjectName]]] = {}
        """By namespace, the next pod first."""
        self._heads: list[tuple[bool, int, int, float, str]] = []
        """How important the first pod of a namespace is, when that had its last turn, and since when the pod is there.

        Old ones are passed over.
        """
        self._turns: dict[str, int] = {}
        """When a namespace with active pods had its last turn."""
        self._turn = 0
        self._full: set[str] = set()
        """Namespaces that have no turn, since there is no room for more of their pods."""
        self._queued: set[ObjectName] = set()
        self._slow: dict[str, OrderedDict[ObjectName, None]] = {}
        """Of those that are queued, the slow ones, by namespace."""
        self._slow_is_next = False
        # In the order in which they began to wait, so that they are tried again in the same order every time.
        self._waiting: dict[ObjectName, None] = {}
        self._waiting_for: dict[Cause, dict[ObjectName, None]] = {cause: {} for cause in Cause}
        # Those of them that are going to be tried again soon, whatever happens.
        self._backing_off: set[ObjectName] = set()
        self._in_hand: set[ObjectName] = set()
        self._missed: set[ObjectName] = set()
        self._users: dict[ObjectName, dict[ObjectName, None]] = {}
        self._count = 0
        self._wake = asyncio.Event()
        self._timers = Timers(clock, self._on_due)

    def __len__(self) -> int:
        return len(self._entries)

    def sizes(self) -> dict[str, int]:
        """How many pods are where, for metrics."""
        return {
            "active": len(self._queued),
            "backoff": len(self._backing_off),
            "unschedulable": len(self._waiting) - len(self._backing_off),
            "in flight": len(self._in_hand),
        }

    @property
    def has_active(self) -> bool:
        """Whether there are pods to be decided on now."""
        return bool(self._queued)

    def is_backing_off(self, key: ObjectName) -> bool:
        """Whether a pod that was refused is going to be tried again soon, whatever happens."""
        return key in self._backing_off

    def waiting(self) -> list[PodInfo]:
        """The pods that do not fit now."""
        return [self._entries[key].info for key in self._waiting]

    def get(self, key: ObjectName) -> PodInfo | None:
        """A pod as it is known here."""
        entry = self._entries.get(key)
        return None if entry is None else entry.info

    def put(self, info: PodInfo, *, changed: bool, waits_for: Cause = Cause.NOTHING) -> None:
        """A pod is new, or has changed in a way that may make it fit (`changed`).

        A new one need not be tried before one of the causes that it `waits_for` happens.
        """
        key = info.name
        entry = self._entries.get(key)
        if entry is not None:
            self._unlink(entry.info)
        for claim in info.claims:
            self._users.setdefault(claim, {})[key] = None
        if entry is None:
            now = self._clock.monotonic()
            self._entries[key] = _Entry(info, now, causes=waits_for)
            if waits_for:
                self._start_waiting(key, waits_for)
                self._timers.set(key, now + LONGEST_WAIT)
            else:
                self._activate(key)
            return
        entry.info = info
        if changed:
            self._revive(key, entry, at_once=True)

    def remove(self, key: ObjectName) -> None:
        """A pod is gone, or has a node."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        self._unlink(entry.info)
        self._unqueue(key)
        self._stop_waiting(key)
        self._in_hand.discard(key)
        self._missed.discard(key)

    async def pop(self) -> PodInfo:
        """The next pod to decide on; follow up with `refuse` or `remove`."""
        while True:
            key = self._next()
            if key is not None:
                self._unqueue(key)
                self._in_hand.add(key)
                entry = self._entries[key]
                entry.attempts += 1
                return entry.info
            self._wake.clear()
            await self._wake.wait()

    def begin_turn(self, *, slow_first: bool) -> None:
        """Others had the loop. If `slow_first`, it begins with a pod whose decision takes long, if there is one."""
        self._slow_is_next = slow_first

    def room(self) -> None:
        """There is room for pods of some namespace again."""
        for namespace in [one for one in self._full if self.has_room(one)]:
            self._full.discard(namespace)
            self._offer(namespace)
        if self._slow:
            self._wake.set()

    def _next(self) -> ObjectName | None:
        if self._slow and self._slow_is_next:
            self._slow_is_next = False
            if (slow := self._next_slow()) is not None:
                return slow
        while self._heads:
            is_later, rank, turn, _, namespace = heapq.heappop(self._heads)
            waiting = self._active.get(namespace)
            if waiting is None or (is_later, rank, turn) != (*waiting[0][:2], self._turns.get(namespace, 0)):
                continue
            if not self.has_room(namespace):
                self._full.add(namespace)
                continue
            key = heapq.heappop(waiting)[4]
            if is_next := key in self._queued and not self._entries[key].is_slow:
                self._turn += 1
                self._turns[namespace] = self._turn
            if waiting:
                self._offer(namespace)
            else:
                del self._active[namespace]
            if is_next:
                return key
        self._turns = {one: turn for one, turn in self._turns.items() if one in self._active}
        return self._next_slow() if self._slow else None

    def _offer(self, namespace: str) -> None:
        """The first pod of a namespace may be next, if it has one."""
        waiting = self._active.get(namespace)
        if waiting is not None:
            is_later, rank, added, _, _ = waiting[0]
            heapq.heappush(self._heads, (is_later, rank, self._turns.get(namespace, 0), added, namespace))
            self._wake.set()

    def _next_slow(self) -> ObjectName | None:
        namespace = next(filter(self.has_room, self._slow), None)
        if namespace is None:
            return None
        keys = self._slow.pop(namespace)
        self._slow[namespace] = keys  # behind the others
        return next(iter(keys))

    def _unqueue(self, key: ObjectName) -> None:
        self._queued.discard(key)
        slow = self._slow.get(key.namespace)
        if slow is not None:
            slow.pop(key, None)
            if not slow:
                del self._slow[key.namespace]

    def take(self, keys: Iterable[ObjectName]) -> list[PodInfo]:
        """Those of the pods that are here and nobody has in hand, whatever they wait for, as if they were popped."""
        taken = []
        for key in keys:
            entry = self._entries.get(key)
            if entry is None or key in self._in_hand:
                continue
            self._unqueue(key)
            self._stop_waiting(key)
            self._in_hand.add(key)
            entry.attempts += 1
            taken.append(entry.info)
        return taken

    def put_aside(self, key: ObjectName) -> bool:
        """A pod that was popped takes long: it is not among the others any more. False if it was not."""
        entry = self._entries[key]
        if entry.is_slow:
            return False
        entry.is_slow = True
        entry.attempts -= 1
        self._in_hand.discard(key)
        self._activate(key)
        return True

    def refuse(self, key: ObjectName, causes: Cause, *, is_slow: bool = False) -> None:
        """A pod does not fit until one of `causes` changes. One that `is_slow` only needs more turns."""
        entry = self._entries.get(key)
        self._in_hand.discard(key)
        if entry is None:
            return
        entry.causes = causes
        entry.is_slow = is_slow
        now = self._clock.monotonic()
        entry.retry_at = now + BACKOFF.after(max(entry.attempts, 1))
        self._start_waiting(key, causes)
        if key in self._missed:
            # Something happened while the pod was being decided on: the decision may be out of date.
            self._missed.discard(key)
            self._revive(key, entry, at_once=False)
        elif Cause.ERROR in causes:
            self._back_off(key, entry)
        else:
            self._timers.set(key, now + LONGEST_WAIT)

    def wake_one(self, members: Iterable[ObjectName]) -> None:
        """Of a group the first pod that waits for others of it, or is in hand, is tried again: all are with it."""
        for key in members:
            if key in self._in_hand or key in self._waiting_for[Cause.GROUP]:
                self._revive(key, self._entries[key], at_once=self._hints)
                return

    def happened(
        self, cause: Cause, concerns: Callable[[PodInfo], bool] | None = None, *, at_once: bool = True
    ) -> None:
        """Something changed: pods that wait for it, and that it `concerns`, are tried again."""
        if not self._entries:
            return
        if not self._hints:
            concerns, at_once = None, False
        for key in [key for single in cause for key in self._waiting_for[single]]:
            entry = self._entries[key]
            if key in self._waiting and (concerns is None or concerns(entry.info)):
                self._revive(key, entry, at_once=at_once)
        if cause is not Cause.POD_CAME:  # that happens all the time, and no pod in hand was refused for want of it
            self._missed.update(self._in_hand)

    def look_again(self, key: ObjectName) -> None:
        """What a pod was told may be out of date; if it waits, it is tried again, whatever it waits for."""
        entry = self._entries.get(key)
        if entry is not None and key in self._waiting and key not in self._backing_off:
            self._revive(key, entry, at_once=True)

    def claim_changed(self, claim: ObjectName, owners: Iterable[str], is_ready: Callable[[PodInfo], bool]) -> None:
        """A claim changed: the pods that name it, and those it was made for, are tried again at once if they can."""
        if not self._entries:
            return
        for key in [*self._users.get(claim, ()), *[ObjectName(claim.namespace, owner) for owner in owners]]:
            entry = self._entries.get(key)
            if entry is None:
                continue
            if key in self._in_hand or (entry.causes & Cause.CLAIM and is_ready(entry.info)):
                self._revive(key, entry, at_once=self._hints)

    def _unlink(self, info: PodInfo) -> None:
        for claim in info.claims:
            users = self._users.get(claim)
            if users is not None:
                users.pop(info.name, None)
                if not users:
                    del self._users[claim]

    def _revive(self, key: ObjectName, entry: _Entry, *, at_once: bool) -> None:
        if key in self._in_hand:
            self._missed.add(key)
        elif key in self._waiting:
            # What an error left behind, and what was taken back then, is heard of, too: it must not end the pause.
            may_jump = at_once and Cause.ERROR not in entry.causes
            if may_jump or entry.retry_at <= self._clock.monotonic():
                self._activate(key)
            else:
                self._back_off(key, entry)

    def _back_off(self, key: ObjectName, entry: _Entry) -> None:
        """The pod is tried again when its time has come; further events change nothing about that."""
        if key not in self._backing_off:
            self._backing_off.add(key)
            self._timers.set(key, entry.retry_at)

    def _start_waiting(self, key: ObjectName, causes: Cause) -> None:
        self._waiting[key] = None
        for cause in causes:
            self._waiting_for[cause][key] = None

    def _stop_waiting(self, key: ObjectName) -> None:
        if key in self._waiting:
            del self._waiting[key]
            for waiting in self._waiting_for.values():
                waiting.pop(key, None)
        self._backing_off.discard(key)

    def _activate(self, key: ObjectName) -> None:
        if key in self._queued:
            return
        self._stop_waiting(key)
        entry = self._entries[key]
        self._queued.add(key)
        self._wake.set()
        if entry.is_slow:
            self._slow.setdefault(key.namespace, OrderedDict())[key] = None
            return
        self._count += 1
        priority = entry.info.pod.spec.priority or 0
        is_later = self._goes_first is None or not self._goes_first(entry.info)
        waiting = self._active.setdefault(key.namespace, [])
        heapq.heappush(waiting, (is_later, -priority, entry.added, self._count, key))
        if waiting[0][4] is key and key.namespace not in self._full:
            self._offer(key.namespace)

    def _on_due(self, key: ObjectName, _moment: float) -> None:
        if key in self._waiting:
            self._activate(key)

    def close(self) -> None:
        """Nobody is tried again just because it is time."""
        self._timers.close()
