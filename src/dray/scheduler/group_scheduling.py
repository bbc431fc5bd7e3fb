"""Groups of pods: one attempt for all that wait, in slices, and what comes of it written down.

One group is decided on at a time, and nothing is held for one that waits: no two groups have half of what each needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator, Sequence
from typing import Any, Final, Protocol, TypeVar
from weakref import WeakValueDictionary

from msgspec.structs import replace

from dray.allocator import Options
from dray.api.conditions import find_condition, with_condition
from dray.api.generated.scheduling import PodGroup
from dray.api.kinds import POD_GROUPS
from dray.api.meta import Condition
from dray.api.pod_groups import INITIALLY_SCHEDULED, is_group, min_count
from dray.api.recent import Newest
from dray.api.references import ObjectName, full_name
from dray.api.resource import ResourceClaim
from dray.api.status import ApiError
from dray.client import Client
from dray.client.calls import find
from dray.process.clock import Clock, as_time
from dray.reconcile import EventRecorder
from dray.scheduler.binding import Binder, DevicesNotReady, VolumesNotBound
from dray.scheduler.group_binding import GroupBinder, Placed
from dray.scheduler.messages import MAX_TOLD, RETELL_SECONDS
from dray.scheduler.queue import SchedulingQueue
from dray.scheduling import text
from dray.scheduling.cause import Cause
from dray.scheduling.cluster import Cluster
from dray.scheduling.decide import Chosen
from dray.scheduling.gang_preemption import find_gang_victims
from dray.scheduling.gangs import Together, decide_group
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.reasons import Verdict
from dray.scheduling.refusal import GroupPreempts, Refused

T = TypeVar("T")

AT_ONCE: Final = 20
"""How many pods of a group are dealt with before others get the loop."""
SLICE_SECONDS: Final = 0.005
"""After which others get the loop while a group is decided on."""
TRIES: Final = 3
"""How often a decision is made again because pods or nodes went while it was made."""
UNANSWERED_SECONDS: Final = 30.0
"""How long what was stored for a pod without a node is left alone: its binding may still be on its way."""
MANY: Final = 100
"""With so many members a group is decided on in turns with pods that are quicker."""
UNSCHEDULABLE: Final = "Unschedulable"


class Host(Protocol):
    """The scheduler around it."""

    cluster: Cluster
    queue: SchedulingQueue
    options: Options

    def begin_turn(self, namespace: str) -> None:
        """A slice of work for a namespace begins."""
        ...

    def refuse(self, info: PodInfo, refused: Refused) -> None:
        """A pod has no node, and is told why."""
        ...

    def note_bound(self, info: PodInfo, node: str) -> None:
        """A pod has a node."""
        ...

    def note_claims(self, claims: Sequence[ResourceClaim]) -> None:
        """Claims as they are stored now."""
        ...

    def put_off(self, group: ObjectName) -> None:
        """A group knows something that is no longer so, and is told anew later."""
        ...

    def preempt_for_group(self, plan: GroupPreempts) -> None:
        """Makes others go for a group."""
        ...

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Does work in a task of its own."""
        ...


class GroupScheduler:
    """Decides on groups and stores what was decided."""

    def __init__(self, host: Host, client: Client, clock: Clock, binder: Binder, recorder: EventRecorder) -> None:
        """`host` is the scheduler around it, which writes through the `client`."""
        self._host = host
        self._client = client
        self._clock = clock
        self._binder = GroupBinder(client, clock, binder)
        self._recorder = recorder
        self._letting_go: set[ObjectName] = set()
        self._storing = WeakValueDictionary[ObjectName, asyncio.Lock]()
        """For as long as somebody writes what was decided for a group, or waits to."""
        self._told: Newest[ObjectName, tuple[float, str]] = Newest(MAX_TOLD)
        """When a group was told what."""

    def takes_long(self, name: ObjectName) -> bool:
        """Whether others should have a turn before a group."""
        return len(self._host.cluster.groups.members(name)) >= MANY

    async def schedule(self, first: PodInfo) -> None:
        """Decides on all waiting pods of the group of one of them, which is in hand."""
        name = first.group
        assert name is not None
        cluster, queue = self._host.cluster, self._host.queue
        members = [ObjectName.of(pod) for pod in cluster.groups.members(name).values() if not pod.spec.node_name]
        taken = {info.name: info for info in (first, *queue.take(key for key in members if key != first.name))}
        waiting = [taken[key] for key in members if key in taken] or [first]
        answer = await self._decide(name, waiting)
        if isinstance(answer, Together):
            for number, (pod, chosen) in enumerate(answer.chosen, 1):
                cluster.assume(pod, chosen.node, chosen.allocations)
                if number % AT_ONCE == 0:
                    await asyncio.sleep(0)  # nobody else decides meanwhile
            self._host.start(self._store(name, answer.chosen))
            await self._refuse(answer.left_out)
            return
        answer = await self._in_slices(name, find_gang_victims(cluster, name, waiting, self._host.options, answer))
        if isinstance(answer.preemption, GroupPreempts):
            self._host.preempt_for_group(answer.preemption)
        if not answer.passes_soon:
            self._host.start(self.tell(name, answer))
        if answer.verdict is not Verdict.DEVICES_NOT_READY:
            self._host.start(self._let_go(name, waiting))  # also of one that waits for pods that may never come
        await self._refuse([(pod, answer) for pod in waiting])

    async def _refuse(self, refusals: Sequence[tuple[PodInfo, Refused]]) -> None:
        for number, (pod, refused) in enumerate(refusals, 1):
            # Claims that are in the way are let go of for all pods of the group at once.
            self._host.refuse(pod, replace(refused, unused_claims=()))
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)

    async def _decide(self, name: ObjectName, waiting: list[PodInfo]) -> Together | Refused:
        """The decision, made again if somebody went meanwhile."""
        cluster = self._host.cluster
        answer: Together | Refused = await self._in_slices(
            name, decide_group(cluster, name, waiting, self._host.options)
        )
        for _ in range(TRIES):
            if not isinstance(answer, Together) or all(self._stands(*one) for one in answer.chosen):
                break
            still = [pod for pod in waiting if self._host.queue.get(pod.name) is not None]
            answer = await self._in_slices(name, decide_group(cluster, name, still, self._host.options))
        return answer

    def _stands(self, pod: PodInfo, chosen: Chosen) -> bool:
        """Whether a pod still waits, and its node is there."""
        known = self._host.queue.get(pod.name)
        is_same = known is not None and known.pod.metadata.uid == pod.pod.metadata.uid
        return is_same and self._host.cluster.nodes.get(chosen.node) is not None

    async def _in_slices(self, name: ObjectName, deciding: Generator[None, None, T]) -> T:
        """What comes of work that hands over now and then; others get the loop in between."""
        try:
            while True:
                self._host.begin_turn(name.namespace)
                ends_at = self._clock.monotonic() + SLICE_SECONDS
                while self._clock.monotonic() < ends_at:
                    next(deciding)
                await asyncio.sleep(0)
        except StopIteration as done:
            answer: T = done.value
            return answer
        finally:
            deciding.close()

    # Writing

    async def _store(self, name: ObjectName, placed: Placed) -> None:
        """All claims, then all pods. Who was decided on later counts on those before, and is stored when they are."""
        lock = self._storing.setdefault(name, asyncio.Lock())
        async with lock:
            await self._store_next(name, placed)

    async def _store_next(self, name: ObjectName, placed: Placed) -> None:
        group = self._host.cluster.groups.get(name)
        causes = Cause.ERROR | Cause.CLAIM | Cause.DEVICES
        try:
            await self._binder.bind_volumes(placed)
            self._host.note_claims(await self._binder.reserve(placed, group))
        except DevicesNotReady as unready:
            self._host.note_claims(unready.claims)
            self._take_back(placed, Cause.CLAIM)
            return
        except VolumesNotBound:
            self._take_back(placed, Cause.VOLUME | Cause.NODE)
            return
        except (ApiError, OSError, TimeoutError) as error:
            self._take_back(placed, causes)
            if group is not None and not (isinstance(error, ApiError) and error.code in (404, 409)):
                await self._recorder.warning(group, "FailedScheduling", f"binding rejected: {error}")
            return
        if group is None or not self._suffice(name, group, placed):
            self._take_back(placed, causes)
            return
        failures = await self._binder.bind(placed, group)
        failed = {pod.name for pod, _, _ in failures}
        for pod, chosen in placed:
            if pod.name not in failed:
                self._host.note_bound(pod, chosen.node)
        self._take_back([(pod, chosen) for pod, chosen, _ in failures], causes)
        if len(failures) < len(placed):
            await self._say(group, "True", "Scheduled", "")

    def _suffice(self, name: ObjectName, group: PodGroup, placed: Placed) -> bool:
        """Whether there are still enough pods: while their claims were written some may have gone, or come anew, and
        others that were decided on before them may have got nothing."""
        cluster = self._host.cluster
        standing = sum(self._stands(*one) for one in placed)
        others = cluster.groups.number_placed(name) - sum(
            cluster.placed(pod.pod.metadata.uid) is not None for pod, _ in placed
        )
        return others + standing >= min_count(group)

    def _take_back(self, placed: Placed, causes: Cause) -> None:
        for pod, chosen in placed:
            self._host.cluster.take_back(pod, chosen.allocations)
            self._host.queue.refuse(pod.name, causes)

    async def _let_go(self, name: ObjectName, waiting: Sequence[PodInfo]) -> None:
        """Lets go of devices that earlier attempts left behind: pods that wait for their group hold none, and neither
        do those that come too late to one that runs.

        Another scheduler may be about to bind pods with them. It is given time before they are taken off the claims,
        and before the devices are cleared; if a pod has a node by then, the claim controller reserves its claims again.
        """
        if name in self._letting_go or not self._held_in_vain(name, waiting):
            return
        self._letting_go.add(name)
        try:
            for let_go in (self._binder.unreserve, self._binder.deallocate):
                await self._clock.sleep(UNANSWERED_SECONDS)
                left = [pod for pod in waiting if self._host.cluster.placed(pod.pod.metadata.uid) is None]
                held = self._held_in_vain(name, left)
                await let_go(held, [pod.pod for pod in left], self._group_without_nodes(name))
        except (ApiError, OSError, TimeoutError):
            pass  # the next attempt will try again
        finally:
            self._letting_go.discard(name)

    def _group_without_nodes(self, name: ObjectName) -> PodGroup | None:
        """The group, unless pods of it run: what is kept for all of them is theirs."""
        cluster = self._host.cluster
        return None if cluster.groups.number_placed(name) else cluster.groups.get(name)

    def _held_in_vain(self, name: ObjectName, waiting: Sequence[PodInfo]) -> list[ResourceClaim]:
        """Claims that have devices, and that nobody uses but pods of the group that wait, or all of it."""
        cluster, group = self._host.cluster, self._group_without_nodes(name)
        uids = {pod.pod.metadata.uid for pod in waiting}
        held: dict[str, ResourceClaim] = {}
        for pod in waiting:
            for claim_name in pod.claims:
                claim = cluster.claims.get(claim_name)
                if claim is None or claim.status.allocation is None or cluster.is_in_flight(claim):
                    continue
                if all(
                    user.uid in uids or (is_group(user) and group is not None and user.uid == group.metadata.uid)
                    for user in claim.status.reserved_for
                ):
                    held[full_name(claim)] = claim
        return list(held.values())

    # Telling

    async def tell(self, name: ObjectName, refused: Refused) -> None:
        """Says in the group's status and in an event what it lacks. Raises ApiError, OSError."""
        group = self._host.cluster.groups.get(name)
        if group is not None:
            reason = UNSCHEDULABLE if refused.verdict is Verdict.UNSCHEDULABLE else "SchedulerError"
            await self._say(group, "False", reason, text.tell(refused))

    async def _say(self, group: PodGroup, status: str, reason: str, message: str) -> None:
        name = ObjectName.of(group)
        known = find_condition(group.status.conditions, INITIALLY_SCHEDULED)
        if known is not None and known.status == "True":
            return  # once it was, it stays so, whatever becomes of its pods
        if known is not None and (known.status, known.reason) == (status, reason):
            at, told = self._told.get(name, (-RETELL_SECONDS, ""))
            is_soon = self._clock.monotonic() - at < RETELL_SECONDS
            if known.message == message:
                return
            if is_soon and told == known.message:
                self._host.put_off(name)
                return
        self._told.keep(name, (self._clock.monotonic(), message))
        condition = Condition(
            type=INITIALLY_SCHEDULED,
            status=status,
            reason=reason,
            message=message,
            observed_generation=group.metadata.generation,
            last_transition_time=as_time(self._clock.now()),
        )
        if await self._write(group, condition):
            if status == "True":
                await self._recorder.normal(group, "Scheduled", "The pods of the group have nodes.")
            else:
                await self._recorder.warning(group, "FailedScheduling", message)

    async def _write(self, group: PodGroup, condition: Condition) -> bool:
        for current in (group, None):
            if current is None:
                meta = group.metadata
                current = await find(self._client, POD_GROUPS, meta.namespace, meta.name, PodGroup)
                if current is None or current.metadata.uid != meta.uid:
                    return False
            conditions = with_condition(current.status.conditions, condition)
            if conditions is current.status.conditions:
                return False
            try:
                status = replace(current.status, conditions=conditions)
                await self._client.update(replace(current, status=status), subresource="status")
                return True
            except ApiError as error:
                if error.code not in (404, 409):
                    raise
        return False
