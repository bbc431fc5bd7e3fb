"""Whose request is next: callers share the event loop fairly, however many connections each of them has.

    request ─▶ enter ─┬─ nobody waits, this turn has room ─▶ goes on
                      └─ waits in its caller's queue, by kind ─▶ let go on, a few in each turn of the loop:
                                first what the cluster lives on, then whoever has used least

One turn of the loop starts only a few requests, by what those of their callers usually take, so a caller with many
connections waits for itself. Too many of one caller are refused with 429 and told to come again. The control plane's
own components, the leases of nodes and health checks are never refused. A few of each of these go first, not all that
one of them may bring: a node that renews its lease without end takes no more than its share, and in every turn somebody
else goes on, too.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from dray.server import errors
from dray.server.routes import Route
from dray.server.security.identity import MASTERS, NODES, Identity

TURN_SECONDS = 0.002
"""What the requests that are started in one turn of the loop may take, by estimate."""
MOST_OF_VITAL = 4
"""So many times that goes to what the cluster lives on, if there is so much of it."""
FIRST_ESTIMATE = 0.0003
LEARNING = 0.1
MOST_RUNNING = 256
MOST_WAITING = 512
"""Of one caller."""
MOST_FIRST = 8
"""Requests of one caller that wait before all others, for the cluster lives on them; more of them wait in its queue."""
RETRY_AFTER_SECONDS = 1
MOST_IDLE_FLOWS = 4096

_SYSTEM = ("system:kube-", "system:apiserver", "system:serviceaccount:kube-system:")
_VITAL_FOR_NODES = frozenset({"leases.coordination.k8s.io", "nodes"})


class Flow:
    """The requests of one caller."""

    __slots__ = ("_fairness", "estimate", "first", "kinds", "name", "running", "used", "waiting")

    def __init__(self, fairness: Fairness, name: str) -> None:
        self._fairness = fairness
        self.name = name
        self.running = 0
        self.waiting = 0
        self.first = 0
        """How many wait before all others."""
        self.used = 0.0
        """What has been used, in seconds of estimates; the least is next."""
        self.estimate = FIRST_ESTIMATE
        self.kinds: dict[str, deque[asyncio.Future[None]]] = {}
        """Those that wait, by the kind of object they are about, which take turns."""

    def add(self, kind: str, waiter: asyncio.Future[None]) -> None:
        """One more waits."""
        self.kinds.setdefault(kind, deque()).append(waiter)
        self.waiting += 1

    def next(self) -> asyncio.Future[None]:
        """Takes out the one whose turn it is: the first of the kind that has waited for longest."""
        kind, waiters = next(iter(self.kinds.items()))
        waiter = waiters.popleft()
        del self.kinds[kind]
        if waiters:
            self.kinds[kind] = waiters  # behind the other kinds
        self.waiting -= 1
        return waiter

    def step_out(self) -> None:
        """A request waits for somebody else, and keeps none of its caller's others waiting; `step_in` must follow."""
        self.running -= 1
        self._fairness.go_on()

    def step_in(self) -> None:
        """A request goes on that has waited for somebody else."""
        self.running += 1


class Fairness:
    """Lets requests go on. One per server, on one event loop."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], object] | None = None) -> None:
        self._call_soon = call_soon or (lambda callback: asyncio.get_running_loop().call_soon(callback))
        self._flows: dict[str, Flow] = {}
        self._vital: deque[tuple[Flow, asyncio.Future[None]]] = deque()
        self._queued: dict[str, Flow] = {}
        self._spent = 0.0
        self._floor = 0.0
        self._turning = False
        self.refused = 0

    @property
    def waiting(self) -> int:
        """How many requests wait for their turn."""
        return len(self._vital) + sum(flow.waiting for flow in self._queued.values())

    def flow(self, caller: str) -> Flow:
        """The flow of a caller, made when first asked for."""
        found = self._flows.get(caller)
        if found is None:
            if len(self._flows) >= MOST_IDLE_FLOWS:
                self._forget_idle()
            found = self._flows[caller] = Flow(self, caller)
            found.used = self._floor
        return found

    def _forget_idle(self) -> None:
        self._flows = {name: flow for name, flow in self._flows.items() if flow.running or flow.waiting or flow.first}

    def try_enter(self, flow: Flow) -> bool:
        """True if a request may go on at once; `leave` must follow. Otherwise it has to `wait`."""
        if not self._turning:
            self._keep_turning()
        if self._queued or self._vital or self._spent >= TURN_SECONDS or flow.running >= MOST_RUNNING:
            return False
        self._let_in(flow)
        return True

    async def wait(self, flow: Flow, kind: str, *, vital: bool, refusable: bool = True) -> None:
        """Waits for the turn of a request; `leave` must follow. Raises ApiError (429) if too many wait already."""
        waiter = asyncio.get_running_loop().create_future()
        if vital and flow.first < MOST_FIRST:
            flow.first += 1
            self._vital.append((flow, waiter))
        elif refusable and not vital and flow.waiting >= MOST_WAITING:
            self.refused += 1
            message = f"too many requests of {flow.name} wait to be answered; try again later"
            raise errors.too_many_requests(message, RETRY_AFTER_SECONDS)
        else:
            if not flow.waiting:
                flow.used = max(flow.used, self._floor)  # who was away has saved nothing up
                self._queued[flow.name] = flow
            flow.add(kind, waiter)
        self._keep_turning()
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.leave(flow, flow.estimate)  # let in and cancelled in the same turn
            raise

    def leave(self, flow: Flow, seconds: float) -> None:
        """A request is answered; it kept the loop busy for so long, as far as is known."""
        flow.running -= 1
        flow.estimate += LEARNING * (seconds - flow.estimate)
        if self._queued:
            self._keep_turning()

    def go_on(self) -> None:
        """Somebody takes up less: perhaps others that wait can go on."""
        if self._queued:
            self._keep_turning()

    def _let_in(self, flow: Flow) -> None:
        flow.running += 1
        flow.used += flow.estimate
        self._spent += flow.estimate

    def _keep_turning(self) -> None:
        if not self._turning:
            self._turning = True
            self._call_soon(self._turn)

    def _turn(self) -> None:
        """A new turn of the loop: the next few go on."""
        self._turning = False
        self._spent = 0.0
        if not self._queued and not self._vital:
            return
        while self._vital and self._spent < MOST_OF_VITAL * TURN_SECONDS:
            flow, waiter = self._vital.popleft()
            flow.first -= 1
            self._release(flow, waiter)
        is_next = True  # somebody is, whatever goes first
        while is_next or self._spent < TURN_SECONDS:
            is_next = False
            ready = [flow for flow in self._queued.values() if flow.running < MOST_RUNNING]
            if not ready:
                break
            flow = min(ready, key=_by_use)
            self._floor = max(self._floor, flow.used)
            waiter = flow.next()
            if not flow.waiting:
                del self._queued[flow.name]
            self._release(flow, waiter)
        if self._vital or any(flow.running < MOST_RUNNING for flow in self._queued.values()):
            self._keep_turning()

    def _release(self, flow: Flow, waiter: asyncio.Future[None]) -> None:
        if not waiter.done():  # else its client is gone
            self._let_in(flow)
            waiter.set_result(None)


def _by_use(flow: Flow) -> float:
    return flow.used


def is_vital(caller: Identity, route: Route | None) -> bool:
    """Whether the cluster lives on this: its own components, and signs of life of nodes."""
    if NODES in caller.groups:
        return route is not None and route.kind.resource in _VITAL_FOR_NODES
    return caller.user.startswith(_SYSTEM)


def may_be_refused(caller: Identity, route: Route | None) -> bool:
    """Health checks and admins wait, but are never sent away: admins may have come because of the crowd."""
    return route is not None and MASTERS not in caller.groups
