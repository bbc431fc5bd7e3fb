"""The shell around decisions: feeds the cluster from informers, decides on pod after pod, stores what was decided."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Coroutine, Sequence
from random import Random
from time import perf_counter
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry

from dray import cel
from dray.allocator import Options
from dray.api.extended_resources import is_for_extended
from dray.api.generated.core import Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodCondition
from dray.api.generated.policy import PodDisruptionBudget
from dray.api.generated.scheduling import PodGroup
from dray.api.generated.storage import StorageClass
from dray.api.kinds import (
    BUDGETS,
    CLAIMS,
    CLASSES,
    NAMESPACES,
    NODES,
    PATCHES,
    POD_GROUPS,
    PODS,
    RULES,
    SLICES,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
)
from dray.api.meta import Object
from dray.api.pods import is_active, is_finished
from dray.api.references import ObjectName
from dray.api.resource import DeviceClass, ResourceClaim
from dray.api.status import ApiError
from dray.client import Client, Informer, PatchFormat
from dray.client.informer import Handler
from dray.process.clock import as_time
from dray.reconcile import Clock, EventRecorder, Informers
from dray.reconcile.selector_work import SelectorWork
from dray.scheduler.announcements import Announcements
from dray.scheduler.binding import Binder, DevicesNotReady, VolumesNotBound
from dray.scheduler.group_scheduling import GroupScheduler
from dray.scheduler.messages import RETELL_SECONDS, Messages
from dray.scheduler.metrics import SchedulerMetrics
from dray.scheduler.preemptor import Preemptor
from dray.scheduler.queue import SchedulingQueue
from dray.scheduler.trace import ERROR, PROGRESS_FROM, Trace
from dray.scheduling.cause import Cause
from dray.scheduling.cluster import Cluster
from dray.scheduling.decide import Chosen, decide, refuse_at_once
from dray.scheduling.device_readiness import find_unready
from dray.scheduling.gangs import find_problem
from dray.scheduling.pod_info import PodInfo, read_pod
from dray.scheduling.preemption import find_victims
from dray.scheduling.reasons import DeviceFailed, GroupReason, Verdict
from dray.scheduling.refusal import GroupPreempts, Ineligible, Preempts, Refused
from dray.tracker import Remove, Upsert

T = TypeVar("T", bound=Object)

DEFAULT_NAME = "default-scheduler"
FILTER_SECONDS = 10.0
MAX_BINDING = 512
RETOLD_AT_ONCE = 50
"""Pods that are looked at again at a time only so that what they were told is so."""
BUSY_TASKS = 10
"""With more bindings than that under way, the news of earlier ones waits."""
DECISIONS_PER_TURN = 20
DEVICES_JUDGED = 500
"""How many devices a decision judges to find those on which a new selector fails: less than two milliseconds."""
SUSPECTS_ASKED = 20
"""How many nodes with such devices a decision asks whether the search gets there."""
TURN_SECONDS = 0.01
"""After which others get the loop."""
QUIET_SECONDS = 1.0
UNANSWERED_SECONDS = 30.0


class Scheduler:
    """Schedules the pods that name it. Several may run at once: what they write is guarded by versions."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        name: str = DEFAULT_NAME,
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
        self.name = name
        self._backlog = cel.Backlog(clock.monotonic)
        self.cluster = Cluster(
            claims="DynamicResourceAllocation" not in disabled_gates,
            extended="DRAExtendedResource" not in disabled_gates,
            taints="DRADeviceTaints" not in disabled_gates,
            taint_rules="DRADeviceTaintRules" not in disabled_gates,
            patches="DRAAdminControlledDeviceAttributes" not in disabled_gates,
            backlog=self._backlog,
        )
        self._uses_groups = "GenericWorkload" not in disabled_gates
        self.queue = SchedulingQueue(
            clock,
            hints="SchedulerQueueingHints" not in disabled_gates,
            goes_first=self.cluster.is_half_placed if self._uses_groups else None,
        )
        self._messages = Messages(self.cluster, clock)
        self._metrics = metrics or SchedulerMetrics(CollectorRegistry(), name)
        self._metrics.follow(self.queue)
        self._verbosity = verbosity
        self._client = client
        self._clock = clock
        self._binder = Binder(client, clock)
        self._recorder = EventRecorder(client, name, clock)
        self._preemptor = Preemptor(client, clock, self.cluster, self._recorder, name)
        self._group_scheduler = GroupScheduler(self, client, clock, self._binder, self._recorder)
        self._announcements = Announcements(self._recorder, clock, lambda: len(self._tasks) > BUSY_TASKS)
        limit = None if "DRASchedulerFilterTimeout" in disabled_gates else filter_seconds
        self.options = Options(
            max_seconds=limit,
            clock=clock.monotonic,
            devices_judged=DEVICES_JUDGED,
            suspects_asked=SUSPECTS_ASKED,
        )
        self._selector_work = SelectorWork(self._backlog, clock, self._on_selectors, seconds=limit)
        self._informers = informers or Informers(client, clock)
        self._runs_informers = informers is None
        self._pods = self._informers.of(PODS, Pod)
        self._claims = self._informers.of(CLAIMS, ResourceClaim)
        self._watched: list[tuple[Informer[Any], Handler[Any]]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._binding = asyncio.Semaphore(MAX_BINDING)
        self._quiet: deque[tuple[float, PodInfo, Refused]] = deque()
        self._changes = 0
        """Counts what happened to nodes, devices, claims and pods, also what helps nobody who waits."""
        self.decided = 0
        self.bound = 0

    @property
    def problem(self) -> str:
        """Why it cannot schedule now; empty if it can."""
        for informer, _ in self._watched:
            if not informer.has_synced:
                why = f": {informer.last_error}" if informer.last_error else ""
                return f"waiting for {informer.kind.resource}{why}"
        return ""

    async def run(self) -> None:
        """Schedules until cancelled."""
        self._watch(self._informers.of(NAMESPACES, Namespace), self._on_namespace)
        volumes = self.cluster.volumes
        self._watch(self._informers.of(STORAGE_CLASSES, StorageClass), self._waking(volumes.set_class))
        self._watch(self._informers.of(VOLUMES, PersistentVolume), self._waking(volumes.set_volume))
        self._watch(self._informers.of(VOLUME_CLAIMS, PersistentVolumeClaim), self._waking(volumes.set_claim))
        self._watch(self._informers.of(BUDGETS, PodDisruptionBudget), self.cluster.budgets.change)
        if self._uses_groups:
            self._watch(self._informers.of(POD_GROUPS, PodGroup), self._on_group)
        self._watch(self._informers.of(NODES, Node), self._on_node)
        self._watch(self._informers.of(CLASSES, DeviceClass), self._on_class)
        for kind in (SLICES, RULES, PATCHES):
            self._watch(self._informers.of(kind, Object), self._on_devices)
        self._watch(self._claims, self._on_claim)
        self._watch(self._pods, self._on_pod)
        self._start(self._announcements.run())
        self._start(self._keep_messages_true())
        self._start(self._selector_work.run())
        if self._runs_informers:
            self._start(self._informers.run())
        try:
            for informer, _ in self._watched:
                await informer.synced()
            await self._loop()
        finally:
            self.queue.close()
            for informer, handler in self._watched:
                informer.ignore(handler)
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            for task in tasks:
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    def _watch(self, informer: Informer[T], handler: Handler[T]) -> None:
        self._watched.append((informer, handler))
        informer.on_change(handler)

    # Events

    def _on_node(self, old: Node | None, new: Node | None) -> None:
        self.cluster.set_node(old, new)
        if new is None:
            self._changes += 1
        elif old is None or _node_changed(old, new):
            self._changes += 1
            self.queue.happened(Cause.NODE)

    def _waking(self, handler: Handler[T]) -> Handler[T]:
        """A handler that wakes pods that wait for volumes."""

        def handle(old: T | None, new: T | None) -> None:
            handler(old, new)
            self.queue.happened(Cause.VOLUME)

        return handle

    def _on_namespace(self, old: Namespace | None, new: Namespace | None) -> None:
        known = new if new is not None else old
        assert known is not None
        if old is None or new is None or old.metadata.labels != new.metadata.labels:
            self.cluster.set_namespace(known.metadata.name, new.metadata.labels if new is not None else None)
            self.queue.happened(Cause.POD_GONE | Cause.POD_CAME, _has_terms)

    def _on_class(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        known = new if new is not None else old
        assert known is not None
        self.cluster.set_class(known.metadata.name, new)
        self._backlog.begin_turn("", TURN_SECONDS)
        self.cluster.track(Upsert(known) if new is not None else Remove.of(known))
        self.queue.happened(Cause.CLASS)
        self._selector_work.look()

    def _on_devices(self, old: Any, new: Any) -> None:
        self._backlog.begin_turn("", TURN_SECONDS)
        if self.cluster.track(Upsert(new) if new is not None else Remove.of(old)):
            self._changes += 1
            self._messages.forget()
            # A compromised node may flood us with slices: pods are tried again, but not before their time (4381-186).
            self.queue.happened(Cause.DEVICES, _has_claims, at_once=old is None or new is None)
        self._selector_work.look()

    def _on_selectors(self) -> None:
        """Selectors that take long were evaluated, on some devices."""
        self._backlog.begin_turn("", TURN_SECONDS)
        if self.cluster.resume():
            self._messages.forget()
            self.queue.happened(Cause.DEVICES, _has_claims)
        self.queue.happened(Cause.SELECTORS)
        self._selector_work.look()

    def _on_claim(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        self.cluster.set_claim(old, new)
        known = new if new is not None else old
        assert known is not None
        released = (
            old is not None and old.status.allocation is not None and (new is None or new.status.allocation is None)
        )
        if released:
            self.queue.happened(Cause.DEVICES, _has_claims)
        if (old.status.allocation if old is not None else None) != (new.status.allocation if new is not None else None):
            self._changes += 1
        owners = [owner.name for owner in known.metadata.owner_references if owner.kind == "Pod"]
        self.queue.claim_changed(ObjectName.of(known), owners, self._has_its_claims)

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        pod = new if new is not None else old
        assert pod is not None
        key = ObjectName.of(pod)
        self.cluster.set_pod(new, pod.metadata.uid)
        if new is None or not self._is_ours(new):
            self.queue.remove(key)
            self._tell_others(old, new)
            return
        known = self.queue.get(key)
        info = read_pod(new, known)
        if known is None and new.status.nominated_node_name:
            self.cluster.nominations.set(info, new.status.nominated_node_name)
        missing = self._not_yet(info) if known is None else None
        if missing is None:
            self.queue.put(info, changed=old is not None and _pod_changed(old, new))
            if known is None and info.group is not None:
                self._wake_group(info.group)
        else:
            self.queue.put(info, changed=False, waits_for=missing.causes)
            self._metrics.refused(key, missing)
            self._tell_later(info, missing)

    def _tell_others(self, old: Pod | None, new: Pod | None) -> None:
        """Pods that wait are tried again if another one left its node, or came to one and they speak of it."""
        self._changes += 1
        if old is not None and old.spec.node_name and (new is None or is_finished(new)):
            self.queue.happened(Cause.POD_GONE)
        elif new is not None and new.spec.node_name and not is_finished(new):
            if old is None or not old.spec.node_name:
                self.queue.happened(Cause.POD_CAME, lambda info: self.cluster.speaks_of(info, new))
            elif old.metadata.labels != new.metadata.labels or _is_leaving(old) != _is_leaving(new):
                self.queue.happened(Cause.POD_GONE | Cause.POD_CAME, _has_terms)

    def _on_group(self, old: PodGroup | None, new: PodGroup | None) -> None:
        self.cluster.groups.set(old, new)
        known = new if new is not None else old
        assert known is not None
        if old is None or new is None or old.spec != new.spec:
            self._changes += 1
            self._wake_group(ObjectName.of(known))

    def _wake_group(self, name: ObjectName) -> None:
        """Pods of a group are tried again if there are enough of them now."""
        if find_problem(self.cluster, name) is None:
            self.queue.happened(Cause.GROUP, lambda info: info.group == name)

    def _not_yet(self, info: PodInfo) -> Refused | None:
        """Why a new pod need not be tried yet: claims that are going to be made for it, or others of its group, are
        not there."""
        if refuse_at_once(info) is not None:
            return None
        found = self.cluster.claims_of(info.pod)
        if found.problem is not None and not found.are_made:
            return Refused(found.problem)
        problem = self._group_problem(info)
        return None if problem is None else Refused(problem)

    def _group_problem(self, info: PodInfo) -> GroupReason | None:
        return find_problem(self.cluster, info.group) if info.group is not None and self._uses_groups else None

    def _has_its_claims(self, info: PodInfo) -> bool:
        """Whether all claims of a pod have been made; otherwise it comes again when its status names them."""
        return self.cluster.claims_of(info.pod).are_made

    def _is_ours(self, pod: Pod) -> bool:
        return not pod.spec.node_name and is_active(pod) and (pod.spec.scheduler_name or DEFAULT_NAME) == self.name

    # Decisions

    async def _loop(self) -> None:
        while True:
            ends_at = self._clock.monotonic() + TURN_SECONDS
            for _ in range(DECISIONS_PER_TURN):
                info = await self.queue.pop()
                if info.group is not None and self._uses_groups:
                    await self._group_scheduler.schedule(info)
                    continue
                await self._binding.acquire()
                self._schedule_one(info)
                if self._clock.monotonic() > ends_at:
                    break
            await asyncio.sleep(0)

    def _schedule_one(self, info: PodInfo) -> None:
        """Decides, and leaves the writing to a task of its own."""
        self.decided += 1
        started = perf_counter()
        trace = self._trace(info, started)
        self._backlog.begin_turn(info.pod.metadata.namespace, TURN_SECONDS)
        answer = decide(self.cluster, info, self.options, trace)
        self._selector_work.look()
        if isinstance(answer, Chosen):
            if trace is not None:
                trace.done("Filter", detail=f"node {answer.node}")
            self.cluster.assume(info, answer.node, answer.allocations)
            if trace is not None:
                trace.done("Reserve")
            self._spawn(self._bind(info, answer, trace))
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
        self.queue.refuse(info.name, answer.causes)
        self._metrics.refused(info.name, answer)
        if answer.passes_soon:
            self._binding.release()
            self._tell_later(info, answer)
        else:
            self._spawn(self._tell(info, answer))

    # What scheduling of groups asks for

    def begin_turn(self, namespace: str) -> None:
        """A slice of work for a namespace begins."""
        self._backlog.begin_turn(namespace, TURN_SECONDS)
        self._selector_work.look()

    async def refuse(self, info: PodInfo, refused: Refused) -> None:
        """A pod of a group has no node, and is told why."""
        self.decided += 1
        self._metrics.attempted(_result(refused), 0.0)
        await self._binding.acquire()
        self._refuse(info, refused)

    def preempt_for_group(self, plan: GroupPreempts) -> None:
        """Makes others go for a group."""
        self._preemptor.promise_group(plan)
        self.start(self._preemptor.carry_out_group(plan))

    def note_bound(self, info: PodInfo, node: str) -> None:
        """A pod of a group has a node."""
        self.decided += 1
        self.bound += 1
        self._announcements.bound(info.pod, node)

    def note_claims(self, claims: Sequence[ResourceClaim]) -> None:
        """Claims as they are stored now."""
        for claim in claims:
            self._claims.put(claim)

    def _trace(self, info: PodInfo, now: float) -> Trace | None:
        """Follows the attempt if the log wants to know, or if it is its turn to be measured."""
        is_measured = self._metrics.wants_trace(now)
        if not is_measured and self._verbosity < PROGRESS_FROM:
            return None
        return Trace(info, perf_counter, self._metrics if is_measured else None, self._verbosity)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Starts writing what was decided; there is room for `MAX_BINDING` of those at a time."""
        self._start(self._guarded(work))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Does work in a task of its own; if the server does not answer, the next attempt will do it."""

        async def guarded() -> None:
            with contextlib.suppress(ApiError, OSError, TimeoutError):
                await work

        self._start(guarded())

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except (ApiError, OSError, TimeoutError):
            pass  # What was not written will be tried again with the next attempt.
        finally:
            self._binding.release()

    async def _bind(self, info: PodInfo, chosen: Chosen, trace: Trace | None) -> None:
        pod = info.pod
        try:
            claims = await self._binder.bind(pod, chosen, trace)
        except DevicesNotReady as waiting:
            for claim in waiting.claims:
                self._claims.put(claim)  # what was stored counts before what was in flight is taken back
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
        self.bound += 1
        if trace is not None:
            trace.done("Bind")
            trace.ended(f"bound to {chosen.node}")
        for claim in claims:
            self._claims.put(claim)
        self._announcements.bound(pod, chosen.node)

    def _tell_later(self, info: PodInfo, refused: Refused) -> None:
        """Says why a pod waits only if it still does after a while: mostly what it waits for is on its way."""
        self._quiet.append((self._clock.monotonic() + QUIET_SECONDS, info, refused))
        if len(self._quiet) == 1:
            self._start(self._tell_of_quiet())

    async def _tell_of_quiet(self) -> None:
        while self._quiet:
            due, info, refused = self._quiet[0]
            wait = due - self._clock.monotonic()
            if wait > 0:
                await self._clock.sleep(wait)
            current = self._still_waiting(info.pod, refused)
            if current is not None:
                with contextlib.suppress(ApiError, OSError, TimeoutError):  # the next attempt will tell again
                    await self._tell_quiet(read_pod(current), refused)
            self._quiet.popleft()

    async def _tell_quiet(self, info: PodInfo, refused: Refused) -> None:
        """What it waits for now: of a group there may be more pods than a while ago."""
        problem = self._group_problem(info)
        if isinstance(refused.why, GroupReason) and problem is not None:
            refused = Refused(problem)
        if info.group is not None and self._uses_groups:
            await self._group_scheduler.tell(info.group, refused)
        await self._tell(info, refused)

    def _still_waiting(self, pod: Pod, refused: Refused) -> Pod | None:
        """The pod as it is now, if it still waits for the same."""
        current = self._pods.get(pod.metadata.namespace, pod.metadata.name)
        if current is None or current.metadata.uid != pod.metadata.uid or not self._is_ours(current):
            return None
        if isinstance(refused.why, GroupReason):
            return current if self._group_problem(read_pod(current)) is not None else None
        return current if self.cluster.claims_of(current).problem == refused.why else None

    async def _deallocate(self, pod: Pod, claim: ResourceClaim) -> None:
        """Lets go of a claim that is in the way (4381-113).

        One that is reserved for the pod was left behind by a binding that was not answered: it may still be on its way.
        The reservation goes first: nobody clears the allocation of a claim that is reserved (4381-95).
        """
        if claim.status.reserved_for and not isinstance(find_unready(claim), DeviceFailed):
            await self._clock.sleep(UNANSWERED_SECONDS)
            current = self._pods.get(pod.metadata.namespace, pod.metadata.name)
            if current is None or not self._is_ours(current):
                return
        if claim.status.reserved_for:
            claim = await self._binder.unreserve(claim, pod)
        if claim.status.reserved_for:
            return
        if is_for_extended(claim):
            await self._binder.discard(claim)
        else:
            await self._binder.deallocate(claim)

    async def _keep_messages_true(self) -> None:
        """Pods that wait are looked at again after things changed, although that may not help them: what they were told
        may no longer be so. A few at a time: there may be many."""
        left: deque[ObjectName] = deque()
        seen = 0
        while True:
            await self._clock.sleep(RETELL_SECONDS)
            if not left and self._changes != seen:
                seen = self._changes
                left.extend(info.name for info in self.queue.waiting())
            for _ in range(min(len(left), RETOLD_AT_ONCE)):
                self.queue.look_again(left.popleft())

    async def _tell(self, info: PodInfo, refused: Refused) -> None:
        """Says in the pod's status and in an event why it waits, and does about it what can be done."""
        pod = info.pod
        if refused.unused_claims:
            # Seeded, so that the same history is the same choice (4381-113).
            chance = Random(f"{pod.metadata.uid}/{self.decided}")  # noqa: S311  # it guards nothing
            await self._deallocate(pod, chance.choice(refused.unused_claims))
            return
        await self._say_why(info, refused)
        if isinstance(refused.preemption, Preempts):
            await self._preemptor.carry_out(info, refused.preemption)
        elif pod.status.nominated_node_name and not isinstance(refused.preemption, Ineligible | GroupPreempts):
            self.cluster.nominations.drop(pod.metadata.uid)
            await self._preemptor.nominate(pod, "")

    async def _say_why(self, info: PodInfo, refused: Refused) -> None:
        pod = info.pod
        known = next((one for one in pod.status.conditions if one.type == "PodScheduled"), None)
        message = self._messages.tell(info, refused)
        same = known is not None and (known.status, known.reason) == ("False", refused.verdict)
        if not self._messages.is_news(info, refused, known.message if known is not None and same else "", message):
            return
        condition = _condition(known, refused.verdict.value, message, self._clock.now())
        patch = {"status": {"conditions": [condition]}}
        await self._client.patch(
            PODS, pod.metadata.namespace, pod.metadata.name, patch, format=PatchFormat.STRATEGIC, subresource="status"
        )
        if refused.verdict is not Verdict.GATED:
            await self._recorder.warning(pod, "FailedScheduling", message)


def _condition(known: PodCondition | None, reason: str, message: str, now: float) -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    if known is None or known.status != "False":
        condition["lastTransitionTime"] = str(as_time(now))
    return condition


def _result(answer: Chosen | Refused) -> str:
    """The result of a decision, as metrics call it."""
    if isinstance(answer, Chosen):
        return "scheduled"
    return "error" if Cause.ERROR in answer.causes else "unschedulable"


def _has_claims(pod: PodInfo) -> bool:
    return pod.wants_devices


def _has_terms(pod: PodInfo) -> bool:
    return pod.terms is not None


def _is_leaving(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


def _node_changed(old: Node, new: Node) -> bool:
    """Whether a node changed in what decides about pods; heartbeats do not count."""
    return (
        old.spec != new.spec
        or old.metadata.labels != new.metadata.labels
        or old.status.allocatable != new.status.allocatable
    )


def _pod_changed(old: Pod, new: Pod) -> bool:
    """Whether a pod changed in what decides about it; our own condition in its status does not count."""
    return (
        (old.spec is not new.spec and old.spec != new.spec)
        or old.metadata.labels != new.metadata.labels
        or old.status.resource_claim_statuses != new.status.resource_claim_statuses
    )
