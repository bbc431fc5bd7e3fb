"""A queue of keys to look at: each at most once at a time, soon, at a given time, or later after failures.

Namespaces take turns, and only so many keys of one are worked on at a time: what is written there may take as long as
a webhook likes, and there may be any number of objects. Keys without a namespace are together, too.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from dray.api.backoff import Backoff
from dray.process.clock import Clock
from dray.reconcile.timers import Timers

K = TypeVar("K", bound=Hashable)

RETRY = Backoff(first=0.005, longest=60.0)

MANY_FAILURES = 5
FAILING_SECONDS = 1.0
"""A key that has failed so often is looked at once in so many seconds, whatever happens meanwhile."""


class WorkQueue(Generic[K]):
    """Keys, not events: however often a key is added, it is handed out once, and again if added meanwhile.

    add ─▶ waiting ─▶ get ─▶ processing ─▶ done
             ▲                    │ added again meanwhile
             └────────────────────┘
    """

    def __init__(self, name: str, clock: Clock, most: int | None = None) -> None:
        """Of one namespace, so many keys are handed out at a time at `most`; by default, any number."""
        self.name = name
        self._clock = clock
        self._most = most
        # By namespace, and since when each key waits. The first of a plain dict is searched for.
        self._waiting: dict[str, OrderedDict[K, float]] = {}
        self._next: OrderedDict[str, None] = OrderedDict()
        """Namespaces of which a key may be handed out, in the order of their turns."""
        self._busy: dict[str, int] = {}
        """How many keys of a namespace are being worked on."""
        self._processing: dict[K, float] = {}
        self._again: set[K] = set()
        self._later = Timers(clock, self._on_due)
        self._due: dict[K, float] = {}
        self._failures: dict[K, int] = {}
        self._idle: deque[asyncio.Future[None]] = deque()
        self.adds = 0
        self.retries = 0
        self.on_wait: Callable[[float], None] | None = None
        """Hears of each key how many seconds it waited before it was handed out."""
        self.on_shortage: Callable[[], None] | None = None
        """Hears of a key that may be handed out while nobody waits for one."""

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    @property
    def processing(self) -> int:
        """How many keys are being worked on."""
        return len(self._processing)

    def working_seconds(self) -> list[float]:
        """For how long each key that is being worked on has been."""
        now = self._clock.monotonic()
        return [now - since for since in self._processing.values()]

    @property
    def idle(self) -> bool:
        """Whether nothing waits (now) and nothing is being worked on."""
        return not self._waiting and not self._processing

    def add(self, key: K) -> None:
        """Look at this key soon; if it keeps failing, not at once: what changes may be our own doing."""
        self.adds += 1
        if self._failures.get(key, 0) >= MANY_FAILURES:
            self.add_after(key, FAILING_SECONDS)
        else:
            self._add_now(key)

    def _add_now(self, key: K) -> None:
        if key in self._processing:
            self._again.add(key)
            return
        namespace = _namespace(key)
        waiting = self._waiting.get(namespace)
        if waiting is None:
            waiting = self._waiting[namespace] = OrderedDict()
        if key not in waiting:
            waiting[key] = self._clock.monotonic()
            self._offer(namespace)

    def _offer(self, namespace: str) -> None:
        """A key of a namespace waits: somebody may work on it, unless enough of its keys are worked on."""
        if self._most is None or self._busy.get(namespace, 0) < self._most:
            self._next[namespace] = None
            self._wake_one()

    def add_at(self, key: K, moment: float) -> None:
        """Look at this key at a time of the monotonic clock; of several such times the earliest counts."""
        due = self._due.get(key)
        if due is not None and due <= moment:
            return
        self._due[key] = moment
        self._later.set(key, moment)

    def add_after(self, key: K, seconds: float) -> None:
        """Look at this key after some seconds."""
        if seconds <= 0:
            self.add(key)
        else:
            self.add_at(key, self._clock.monotonic() + seconds)

    def retry(self, key: K) -> float:
        """Look at this key again after a failure, later with each one; returns after how many seconds."""
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        self.retries += 1
        delay = RETRY.after(failures)
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """The key succeeded: its failures no longer count."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """The next key; call `done` with it afterwards."""
        while not self._next:
            await self._sleep()
        namespace, _ = self._next.popitem(last=False)
        waiting = self._waiting[namespace]
        key, since = waiting.popitem(last=False)
        busy = self._busy[namespace] = self._busy.get(namespace, 0) + 1
        if not waiting:
            del self._waiting[namespace]
        elif self._most is None or busy < self._most:
            self._next[namespace] = None  # behind the others
        now = self._clock.monotonic()
        self._processing[key] = now
        if self.on_wait is not None:
            self.on_wait(now - since)
        return key

    async def _sleep(self) -> None:
        """Waits until there may be work for this worker; each key wakes one worker, not all of them."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._idle.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and self._next:
                self._wake_one()  # the key that woke this one is for another now
            raise

    def _wake_one(self) -> None:
        while self._idle:
            waiter = self._idle.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        if self.on_shortage is not None:
            self.on_shortage()

    def done(self, key: K) -> None:
        """The work on a key has ended, well or not."""
        self._end(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def put_off(self, key: K, seconds: float) -> None:
        """A key that was handed out was not looked at: it is handed out again after some seconds."""
        self._end(key)
        self._again.discard(key)
        self.add_at(key, self._clock.monotonic() + seconds)

    def _end(self, key: K) -> None:
        if self._processing.pop(key, None) is None:
            return
        namespace = _namespace(key)
        busy = self._busy[namespace] - 1
        if busy:
            self._busy[namespace] = busy
        else:
            del self._busy[namespace]
        if namespace in self._waiting and namespace not in self._next:
            self._offer(namespace)

    def reopen(self) -> None:
        """After `close`: what is to be looked at later is."""
        self._later.reopen()

    def close(self) -> None:
        """Nothing that is planned for later comes until it is opened again."""
        self._later.close()

    def _on_due(self, key: K, moment: float) -> None:
        if self._due.get(key) == moment:
            del self._due[key]
            self._add_now(key)


def _namespace(key: Hashable) -> str:
    return getattr(key, "namespace", "")
