"""Pods that have no node are told why, and what stands in their way is let go of."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from random import Random
from typing import Any

from dray.api.conditions import POD_SCHEDULED, find_condition
from dray.api.extended_resources import is_for_extended
from dray.api.generated.core import Pod, PodCondition
from dray.api.references import ObjectName
from dray.api.resource import ResourceClaim
from dray.api.status import ApiError
from dray.client import Client
from dray.client.calls import patch_pod_status
from dray.process.clock import as_time
from dray.reconcile import Controller, EventRecorder
from dray.scheduler.binding import Binder
from dray.scheduler.group_scheduling import GroupScheduler
from dray.scheduler.messages import RETELL_SECONDS
from dray.scheduler.preemptor import Preemptor
from dray.scheduler.state import State
from dray.scheduling.device_readiness import find_unready
from dray.scheduling.pod_info import PodInfo, read_pod
from dray.scheduling.reasons import DeviceFailed, GroupReason, Verdict
from dray.scheduling.refusal import GroupPreempts, Ineligible, Preempts, Refused

RETOLD_AT_ONCE = 50
"""Pods that are looked at again at a time only so that what they were told is so."""
TOLD_AT_ONCE = 64
"""Pods of one namespace that are told at a time."""
MANY_UNTOLD = 1000
QUIET_SECONDS = 1.0
UNANSWERED_SECONDS = 30.0


class Refusals:
    """Writes down why pods wait."""

    def __init__(
        self,
        state: State,
        client: Client,
        binder: Binder,
        recorder: EventRecorder,
        preemptor: Preemptor,
        groups: GroupScheduler,
        *,
        start: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        """`start` does work in a task of its own."""
        self._state = state
        self._cluster = state.cluster
        self._queue = state.queue
        self._clock = state.clock
        self._client = client
        self._binder = binder
        self._recorder = recorder
        self._preemptor = preemptor
        self._groups = groups
        self._start = start
        self._quiet: deque[tuple[float, PodInfo, Refused]] = deque()
        self._untold: dict[ObjectName, Callable[[], Coroutine[Any, Any, None]]] = {}
        """How each pod is told what it does not know yet, in turns of their namespaces."""
        self._telling: Controller[ObjectName] = Controller(
            "refused-pods", self._tell_next, state.clock, workers=TOLD_AT_ONCE
        )

    async def run(self) -> None:
        """Tells until cancelled."""
        await self._telling.run()

    def tell_soon(self, info: PodInfo, refused: Refused) -> None:
        """Says why a pod waits, instead of what it was to be told before."""
        self._put(info.name, partial(self.tell, info, refused))

    def _put(self, name: ObjectName, tell: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if len(self._untold) > MANY_UNTOLD + 2 * len(self._queue):
            self._untold = {one: told for one, told in self._untold.items() if self._queue.get(one) is not None}
        self._untold[name] = tell
        self._telling.queue.add(name)

    async def _tell_next(self, name: ObjectName) -> None:
        tell = self._untold.pop(name, None)
        if tell is not None:
            with contextlib.suppress(ApiError, OSError, TimeoutError):  # the next attempt will tell again
                await tell()

    def tell_later(self, info: PodInfo, refused: Refused) -> None:
        """Says why a pod waits only if it still does after a while: mostly what it waits for is on its way."""
        self._quiet.append((self._clock.monotonic() + QUIET_SECONDS, info, refused))
        if len(self._quiet) == 1:
            self._start(self._tell_of_quiet())

    async def _tell_of_quiet(self) -> None:
        while self._quiet:
            due, _, _ = self._quiet[0]
            wait = due - self._clock.monotonic()
            await (self._clock.sleep(wait) if wait > 0 else asyncio.sleep(0))
            for _ in range(min(RETOLD_AT_ONCE, len(self._quiet))):
                due, info, refused = self._quiet[0]
                if due > self._clock.monotonic():
                    break
                self._quiet.popleft()
                self._put(info.name, partial(self._tell_quiet, info.pod, refused))

    async def _tell_quiet(self, pod: Pod, refused: Refused) -> None:
        """What it waits for now: of a group there may be more pods than a while ago."""
        current = self._still_waiting(pod, refused)
        if current is None:
            return
        info = read_pod(current)
        problem = self._state.group_problem(info)
        if isinstance(refused.why, GroupReason) and problem is not None:
            refused = Refused(problem)
        if info.group is not None and self._state.uses_groups:
            await self._groups.tell(info.group, refused)
        await self.tell(info, refused)

    def _still_waiting(self, pod: Pod, refused: Refused) -> Pod | None:
        """The pod as it is now, if it still waits for the same."""
        current = self._state.pods.get(pod.metadata.namespace, pod.metadata.name)
        if current is None or current.metadata.uid != pod.metadata.uid or not self._state.is_ours(current):
            return None
        if isinstance(refused.why, GroupReason):
            return current if self._state.group_problem(read_pod(current)) is not None else None
        return current if self._cluster.claims_of(current).problem == refused.why else None

    async def _deallocate(self, pod: Pod, claim: ResourceClaim) -> None:
        """Lets go of a claim that is in the way (4381-113).

        One that is reserved for the pod was left behind by a binding that was not answered: it may still be on its way.
        The reservation goes first: nobody clears the allocation of a claim that is reserved (4381-95).
        """
        if claim.status.reserved_for and not isinstance(find_unready(claim), DeviceFailed):
            await self._clock.sleep(UNANSWERED_SECONDS)
            current = self._state.pods.get(pod.metadata.namespace, pod.metadata.name)
            if current is None or not self._state.is_ours(current):
                return
        if claim.status.reserved_for:
            claim = await self._binder.unreserve(claim, pod)
        if claim.status.reserved_for:
            return
        if is_for_extended(claim):
            await self._binder.discard(claim)
        else:
            await self._binder.deallocate(claim)

    async def keep_true(self) -> None:
        """Pods that wait are looked at again after things changed, although that may not help them: what they were told
        may no longer be so. A few at a time: there may be many. Those whose turn was put off come first."""
        left: deque[ObjectName] = deque()
        seen = 0
        while True:
            await self._clock.sleep(RETELL_SECONDS)
            if not left:
                round_ = dict.fromkeys(self._state.put_off)
                self._state.put_off.clear()
                if self._state.changes != seen:
                    seen = self._state.changes
                    round_ |= dict.fromkeys(info.name for info in self._queue.waiting())
                left.extend(round_)
            for _ in range(min(len(left), RETOLD_AT_ONCE)):
                self._queue.look_again(left.popleft())

    async def tell(self, info: PodInfo, refused: Refused) -> None:
        """Says in the pod's status and in an event why it waits, and does about it what can be done."""
        pod = info.pod
        if refused.unused_claims:
            # Seeded, so that the same history is the same choice (4381-113).
            chance = Random(f"{pod.metadata.uid}/{self._state.decided}")  # noqa: S311  # it guards nothing
            await self._deallocate(pod, chance.choice(refused.unused_claims))
            return
        if isinstance(refused.preemption, Preempts):
            # Before it is told, which may fail. If this does, what was promised is taken back, and decided anew soon.
            self._state.put_off[info.name] = None
            await self._preemptor.carry_out(info, refused.preemption)
            self._state.put_off.pop(info.name, None)
        await self._say_why(info, refused)
        if pod.status.nominated_node_name and not isinstance(refused.preemption, Preempts | Ineligible | GroupPreempts):
            self._cluster.nominations.drop(pod.metadata.uid)
            await self._preemptor.nominate(pod, "")

    async def _say_why(self, info: PodInfo, refused: Refused) -> None:
        pod = info.pod
        known = find_condition(pod.status.conditions, POD_SCHEDULED)
        message = self._state.messages.tell(info, refused)
        same = known is not None and (known.status, known.reason) == ("False", refused.verdict)
        knows = known.message if known is not None and same else ""
        if not self._state.messages.is_news(info, refused, knows, message):
            if knows != message:
                self._state.put_off[info.name] = None
            return
        condition = _condition(known, refused.verdict.value, message, self._clock.now())
        if not await patch_pod_status(self._client, pod, {"conditions": [condition]}):
            return
        if refused.verdict is not Verdict.GATED:
            await self._recorder.warning(pod, "FailedScheduling", message)


def _condition(known: PodCondition | None, reason: str, message: str, now: float) -> dict[str, Any]:
    condition = {"type": POD_SCHEDULED, "status": "False", "reason": reason, "message": message}
    if known is None or known.status != "False":
        condition["lastTransitionTime"] = str(as_time(now))
    return condition
