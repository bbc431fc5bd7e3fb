"""The shell around decisions: decides on pod after pod, and stores what was decided."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Sequence
from time import perf_counter
from typing import Any

from prometheus_client import CollectorRegistry

from dray.allocator import Options
from dray.api.generated.core import Pod
from dray.api.references import ObjectName
from dray.api.resource import ResourceClaim
from dray.api.status import ApiError
from dray.api.well_known import DEFAULT_SCHEDULER
from dray.client import Client
from dray.reconcile import Clock, EventRecorder, Informers
from dray.scheduler.announcements import Announcements
from dray.scheduler.binding import Binder, DevicesNotReady, VolumesNotBound
from dray.scheduler.changes import TURN_SECONDS, Changes
from dray.scheduler.first_places import FirstPlaces, Placement
from dray.scheduler.group_scheduling import GroupScheduler
from dray.scheduler.metrics import SchedulerMetrics
from dray.scheduler.preemptor import Preemptor
from dray.scheduler.refusals import Refusals
from dray.scheduler.slots import Slots
from dray.scheduler.state import State
from dray.scheduler.trace import ERROR, PROGRESS_FROM, Trace
from dray.scheduling.cause import Cause
from dray.scheduling.decide import Chosen, decide
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.preemption import find_victims
from dray.scheduling.refusal import GroupPreempts, Preempts, Refused

FILTER_SECONDS = 10.0
MAX_BINDING = 1024
"""Decisions that are being written at a time; half of them of one namespace."""
BUSY_TASKS = 10
"""With more bindings than that under way, the news of earlier ones waits."""
DECISIONS_PER_TURN = 20
DEVICES_JUDGED = 500
"""How many devices a decision judges to find those on which a new selector fails: less than two milliseconds."""
SUSPECTS_ASKED = 20
"""How many nodes with such devices a decision asks whether the search gets there."""


class Scheduler:
    """Schedules the pods that name it. Several may run at once: what they write is guarded by versions."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        name: str = DEFAULT_SCHEDULER,
        informers: Informers | None = None,
        filter_seconds: float = FILTER_SECONDS,
        disabled_gates: frozenset[str] = frozenset(),
        metrics: SchedulerMetrics | None = None,
        verbosity: int = 0,
    ) -> None:
        """`informers` are those of the process, if others use them too; whoever made them runs them.

        `filter_seconds` limits the search for devices on one node (4381-106); features can be turned off.

        Attempts are counted in `metrics`, and told in the log with a `verbosity` of 4 or more (4381-222).
        """
        self._runs_informers = informers is None
        limit = None if "DRASchedulerFilterTimeout" in disabled_gates else filter_seconds
        self._state = State(
            name,
            clock,
            informers or Informers(client, clock),
            metrics or SchedulerMetrics(CollectorRegistry(), name),
            disabled_gates,
            limit,
        )
        self.name = name
        self.cluster = self._state.cluster
        self.queue = self._state.queue
        self._metrics = self._state.metrics
        self._verbosity = verbosity
        self._clock = clock
        self._binder = Binder(client, clock)
        self._recorder = EventRecorder(client, name, clock)
        self._preemptor = Preemptor(client, clock, self.cluster, self._recorder, name)
        self._groups = GroupScheduler(self, client, clock, self._binder, self._recorder)
        self._refusals = Refusals(
            self._state, client, self._binder, self._recorder, self._preemptor, self._groups, start=self._start
        )
        self._announcements = Announcements(self._recorder, clock, self._is_busy)
        self.options = Options(
            max_seconds=limit,
            clock=clock.monotonic,
            devices_judged=DEVICES_JUDGED,
            suspects_asked=SUSPECTS_ASKED,
            aside=self._state.aside,
        )
        self._changes = Changes(self._state, self._refusals.tell_later, seconds=limit)
        self._places = FirstPlaces(
            self._state, self._changes, self.options, self._announcements, self._trace, self._start
        )
        self._is_ready = False
        self.has_begun = False
        """Whether it was started ever."""
        self._tasks: dict[asyncio.Task[None], None] = {}
        """In the order in which they were started: a set would be in another one in every process."""
        self._slots = Slots(MAX_BINDING, self.queue.room)
        self.queue.has_room = self._slots.has_room
        self._bound = 0

    @property
    def bound(self) -> int:
        """How many pods got a node."""
        return self._bound + self._places.bound

    @property
    def problem(self) -> str:
        """Why it cannot schedule now; empty if it can."""
        return self._changes.problem

    async def run(self) -> None:
        """Schedules until cancelled. Once: what is heard again would count twice."""
        self.has_begun = True
        self._start(self._announcements.run())
        self._start(self._refusals.run())
        self._start(self._refusals.keep_true())
        self._start(self._changes.selector_work.run())
        self._start(self._changes.search_work.run())
        if self._runs_informers:
            self._start(self._state.informers.run())
        try:
            await self._changes.watch()
            self._is_ready = True
            await self._loop()
        finally:
            self._is_ready = False
            self.queue.close()
            self._changes.stop()
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            for task in tasks:
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    def place(self, pod: Pod, claims: Sequence[ResourceClaim]) -> Placement | None:
        """A node for a pod that is about to be stored with these claims; None if it is decided on once it is."""
        return self._places.place(pod, claims) if self._is_ready else None

    def _is_busy(self) -> bool:
        return len(self._tasks) + self._places.under_way > BUSY_TASKS

    # Decisions

    async def _loop(self) -> None:
        slow_first = False
        while True:
            ends_at = self._clock.monotonic() + TURN_SECONDS
            slow_first = not slow_first
            self.queue.begin_turn(slow_first=slow_first)
            for _ in range(DECISIONS_PER_TURN):
                info = await self.queue.pop()
                if info.group is not None and self._state.uses_groups:
                    if not self._groups.takes_long(info.group) or not self.queue.put_aside(info.name):
                        await self._groups.schedule(info)
                        ends_at = self._clock.monotonic() + TURN_SECONDS
                    continue
                self._schedule_one(info)
                if self._clock.monotonic() > ends_at:
                    break
            await asyncio.sleep(0)

    def _schedule_one(self, info: PodInfo) -> None:
        """Decides, and leaves the writing to a task of its own."""
        self._state.decided += 1
        started = perf_counter()
        trace = self._trace(info, started)
        self._changes.begin_turn(info.pod.metadata.namespace)
        answer = decide(self.cluster, info, self.options, trace)
        self._changes.end_turn()
        if isinstance(answer, Chosen):
            if trace is not None:
                trace.done("Filter", detail=f"node {answer.node}")
            self.cluster.assume(info, answer.node, answer.allocations)
            if trace is not None:
                trace.done("Reserve")
            self._slots.take(info.name.namespace)
            self._start(self._written(info.name.namespace, self._bind(info, answer, trace)))
        else:
            if not answer.unused_claims:
                answer = find_victims(self.cluster, info, self.options, answer)
            if isinstance(answer.preemption, Preempts):
                self._preemptor.promise(info, answer.preemption)
            if trace is not None:
                trace.refused(answer)
            self._refuse(info, answer)
        self._metrics.attempted(_result(answer), perf_counter() - started)

    def _refuse(self, info: PodInfo, answer: Refused) -> None:
        """A pod has no node, and is told so."""
        self.queue.refuse(info.name, answer.causes, is_slow=answer.needs_more_turns)
        self._metrics.refused(info.name, answer)
        if answer.passes_soon:
            self._refusals.tell_later(info, answer)
        elif isinstance(answer.preemption, Preempts):
            self.start(self._refusals.tell(info, answer))
        else:
            self._refusals.tell_soon(info, answer)

    # What scheduling of groups asks for

    def begin_turn(self, namespace: str) -> None:
        """A slice of work for a namespace begins."""
        self._changes.begin_turn(namespace)
        self._changes.end_turn()

    def refuse(self, info: PodInfo, refused: Refused) -> None:
        """A pod of a group has no node, and is told why."""
        self._state.decided += 1
        self._metrics.attempted(_result(refused), 0.0)
        self._refuse(info, refused)

    def put_off(self, group: ObjectName) -> None:
        """A group is told anew with the first of its pods that waits."""
        members = self.cluster.groups.members(group).values()
        first = next((ObjectName.of(pod) for pod in members if not pod.spec.node_name), None)
        if first is not None:
            self._state.put_off[first] = None

    def preempt_for_group(self, plan: GroupPreempts) -> None:
        """Makes others go for a group."""
        self._preemptor.promise_group(plan)
        self.start(self._preemptor.carry_out_group(plan))

    def note_bound(self, info: PodInfo, node: str) -> None:
        """A pod of a group has a node."""
        self._state.decided += 1
        self._bound += 1
        self._announcements.bound(info.pod, node)

    def note_claims(self, claims: Sequence[ResourceClaim]) -> None:
        """Claims as they are stored now."""
        self._state.note_claims(claims)

    def _trace(self, info: PodInfo, now: float) -> Trace | None:
        """Follows the attempt if the log wants to know, or if it is its turn to be measured."""
        is_measured = self._metrics.wants_trace(now)
        if not is_measured and self._verbosity < PROGRESS_FROM:
            return None
        return Trace(info, perf_counter, self._metrics if is_measured else None, self._verbosity)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Does work in a task of its own; if the server does not answer, the next attempt will do it."""

        async def guarded() -> None:
            with contextlib.suppress(ApiError, OSError, TimeoutError):
                await work

        self._start(guarded())

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    async def _written(self, namespace: str, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except (ApiError, OSError, TimeoutError):
            pass  # What was not written will be tried again with the next attempt.
        finally:
            self._slots.give_back(namespace)

    async def _bind(self, info: PodInfo, chosen: Chosen, trace: Trace | None) -> None:
        pod = info.pod
        try:
            claims = await self._binder.bind(pod, chosen, trace)
        except DevicesNotReady as waiting:
            self._state.note_claims(waiting.claims)  # what was stored counts before what was in flight is taken back
            self.cluster.take_back(info, chosen.allocations)
            self.queue.refuse(info.name, Cause.CLAIM)
            return
        except VolumesNotBound:
            self.cluster.take_back(info, chosen.allocations)
            self.queue.refuse(info.name, Cause.VOLUME | Cause.NODE)
            return
        except (ApiError, OSError, TimeoutError) as error:
            self._metrics.failed()
            if trace is not None:
                trace.done("Unreserve", ERROR, str(error))
            self.cluster.take_back(info, chosen.allocations)
            self.queue.refuse(info.name, Cause.ERROR | Cause.CLAIM | Cause.DEVICES)
            if not (isinstance(error, ApiError) and error.code in (404, 409)):
                await self._recorder.warning(pod, "FailedScheduling", f"binding rejected: {error}")
            return
        self._bound += 1
        if trace is not None:
            trace.done("Bind")
            trace.ended(f"bound to {chosen.node}")
        self._state.note_claims(claims)
        self._announcements.bound(pod, chosen.node)


def _result(answer: Chosen | Refused) -> str:
    """The result of a decision, as metrics call it."""
    if isinstance(answer, Chosen):
        return "scheduled"
    return "error" if Cause.ERROR in answer.causes else "unschedulable"
