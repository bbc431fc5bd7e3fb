"""The shell around decisions: feeds the cluster from informers, decides on pod after pod, stores what was decided."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Coroutine
from time import perf_counter
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry

from dray.allocator import Options
from dray.api.generated.core import Node, Pod, PodCondition
from dray.api.meta import Object
from dray.api.registry import by_kind
from dray.api.resource import DeviceClass, ResourceClaim
from dray.api.status import ApiError
from dray.client import Client, Informer, PatchFormat
from dray.client.informer import Handler
from dray.reconcile import Clock, EventRecorder, Informers
from dray.reconcile.clock import as_time
from dray.scheduler.announcements import Announcements
from dray.scheduler.binding import Binder, DevicesNotReady
from dray.scheduler.claims import NOT_CREATED, find_claims
from dray.scheduler.cluster import Cluster
from dray.scheduler.decide import Chosen, Refused, decide, refuse_without_claims
from dray.scheduler.device_readiness import find_unready
from dray.scheduler.messages import Messages
from dray.scheduler.metrics import SchedulerMetrics
from dray.scheduler.pod_info import PodInfo, read_pod
from dray.scheduler.queue import Cause, SchedulingQueue
from dray.scheduler.trace import ERROR, PROGRESS_FROM, Trace
from dray.tracker import Remove, Upsert

RESOURCE = "resource.k8s.io/v1"
PODS = by_kind("v1", "Pod")
NODES = by_kind("v1", "Node")
CLAIMS = by_kind(RESOURCE, "ResourceClaim")
CLASSES = by_kind(RESOURCE, "DeviceClass")
SLICES = by_kind(RESOURCE, "ResourceSlice")
RULES = by_kind(RESOURCE, "DeviceTaintRule")
PATCHES = by_kind("resource.k8s.io/v1alpha3", "ResourceSlicePatch")

T = TypeVar("T", bound=Object)

DEFAULT_NAME = "default-scheduler"
FILTER_SECONDS = 10.0
MAX_BINDING = 512
BUSY_TASKS = 10
"""With more bindings than that under way, the news of earlier ones waits."""
DECISIONS_PER_TURN = 20
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
        self.cluster = Cluster(
            taints="DRADeviceTaints" not in disabled_gates,
            taint_rules="DRADeviceTaintRules" not in disabled_gates,
            patches="DRAAdminControlledDeviceAttributes" not in disabled_gates,
        )
        self.queue = SchedulingQueue(clock)
        self._messages = Messages(self.cluster, clock)
        self._metrics = metrics or SchedulerMetrics(CollectorRegistry(), name)
        self._metrics.follow(self.queue)
        self._verbosity = verbosity
        self._client = client
        self._clock = clock
        self._binder = Binder(client, clock)
        self._recorder = EventRecorder(client, name, clock)
        self._announcements = Announcements(self._recorder, clock, lambda: len(self._tasks) > BUSY_TASKS)
        limit = None if "DRASchedulerFilterTimeout" in disabled_gates else filter_seconds
        self.options = Options(max_seconds=limit, clock=clock.monotonic)
        self._informers = informers or Informers(client, clock)
        self._runs_informers = informers is None
        self._pods = self._informers.of(PODS, Pod)
        self._claims = self._informers.of(CLAIMS, ResourceClaim)
        self._watched: list[tuple[Informer[Any], Handler[Any]]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._binding = asyncio.Semaphore(MAX_BINDING)
        self._quiet: deque[tuple[float, PodInfo, Refused]] = deque()
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
        self._watch(self._informers.of(NODES, Node), self._on_node)
        self._watch(self._informers.of(CLASSES, DeviceClass), self._on_class)
        for kind in (SLICES, RULES, PATCHES):
            self._watch(self._informers.of(kind, Object), self._on_devices)
        self._watch(self._claims, self._on_claim)
        self._watch(self._pods, self._on_pod)
        self._start(self._announcements.run())
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
        if new is not None and (old is None or _node_changed(old, new)):
            self.queue.happened(Cause.NODE)

    def _on_class(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        known = new if new is not None else old
        assert known is not None
        self.cluster.set_class(known.metadata.name, new)
        self.cluster.track(Upsert(known) if new is not None else Remove.of(known))
        self.queue.happened(Cause.CLASS)

    def _on_devices(self, old: Any, new: Any) -> None:
        if self.cluster.track(Upsert(new) if new is not None else Remove.of(old)):
            self._messages.forget()
            # A compromised node may flood us with slices: pods are tried again, but not before their time (4381-186).
            self.queue.happened(Cause.DEVICES, _has_claims, at_once=old is None or new is None)

    def _on_claim(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        self.cluster.set_claim(old, new)
        known = new if new is not None else old
        assert known is not None
        released = (
            old is not None and old.status.allocation is not None and (new is None or new.status.allocation is None)
        )
        if released:
            self.queue.happened(Cause.DEVICES, _has_claims)
        owners = [owner.name for owner in known.metadata.owner_references if owner.kind == "Pod"]
        self.queue.claim_changed(known.metadata.namespace, known.metadata.name, owners, self._has_its_claims)

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        pod = new if new is not None else old
        assert pod is not None
        key = (pod.metadata.namespace, pod.metadata.name)
        self.cluster.set_pod(new, pod.metadata.uid)
        if new is None or not self._is_ours(new):
            self.queue.remove(key)
            left = (
                old is not None and old.spec.node_name and (new is None or new.status.phase in ("Succeeded", "Failed"))
            )
            if left:
                self.queue.happened(Cause.POD_GONE)
            return
        known = self.queue.get(key)
        info = read_pod(new, known)
        missing = self._missing_claims(info) if known is None else None
        if missing is None:
            self.queue.put(info, changed=old is not None and _pod_changed(old, new))
        else:
            self.queue.put(info, changed=False, waits_for=missing.causes)
            self._metrics.refused(key, missing)
            self._tell_later(info, missing)

    def _missing_claims(self, info: PodInfo) -> Refused | None:
        """Why a new pod need not be tried yet: claims that are going to be made for it are not there."""
        if info.unsupported or info.pod.spec.scheduling_gates:
            return None
        refused = refuse_without_claims(find_claims(info.pod, self.cluster.find_claim))
        return refused if refused is not None and refused.quiet else None

    def _has_its_claims(self, info: PodInfo) -> bool:
        """Whether all claims of a pod have been made; otherwise it comes again when its status names them."""
        return not find_claims(info.pod, self.cluster.find_claim).problem.startswith(NOT_CREATED)

    def _is_ours(self, pod: Pod) -> bool:
        return (
            not pod.spec.node_name
            and pod.metadata.deletion_timestamp is None
            and pod.status.phase not in ("Succeeded", "Failed")
            and (pod.spec.scheduler_name or DEFAULT_NAME) == self.name
        )

    # Decisions

    async def _loop(self) -> None:
        while True:
            for _ in range(DECISIONS_PER_TURN):
                info = await self.queue.pop()
                await self._binding.acquire()
                self._schedule_one(info)
            await asyncio.sleep(0)

    def _schedule_one(self, info: PodInfo) -> None:
        """Decides, and leaves the writing to a task of its own."""
        self.decided += 1
        started = perf_counter()
        trace = self._trace(info, started)
        answer = decide(self.cluster, info, self.options, trace)
        if isinstance(answer, Chosen):
            if trace is not None:
                trace.done("Filter", detail=f"node {answer.node}")
            self.cluster.assume(info, answer.node, answer.allocations)
            if trace is not None:
                trace.done("Reserve")
            self._spawn(self._bind(info, answer, trace))
        else:
            self.queue.refuse(info.key, answer.causes)
            self._metrics.refused(info.key, answer)
            if trace is not None:
                trace.refused(answer)
            if answer.quiet:
                self._binding.release()
                self._tell_later(info, answer)
            else:
                self._spawn(self._tell(info, answer))
        self._metrics.attempted(_result(answer), perf_counter() - started)

    def _trace(self, info: PodInfo, now: float) -> Trace | None:
        """Follows the attempt if the log wants to know, or if it is its turn to be measured."""
        is_measured = self._metrics.wants_trace(now)
        if not is_measured and self._verbosity < PROGRESS_FROM:
            return None
        return Trace(info, perf_counter, self._metrics if is_measured else None, self._verbosity)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Starts writing what was decided; there is room for `MAX_BINDING` of those at a time."""
        self._start(self._guarded(work))

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
            self.queue.refuse(info.key, Cause.CLAIM)
            return
        except (ApiError, OSError, TimeoutError) as error:
            self._metrics.failed()
            if trace is not None:
                trace.done("Unreserve", ERROR, str(error))
            self.cluster.take_back(info, chosen.allocations)
            self.queue.refuse(info.key, Cause.ERROR | Cause.CLAIM | Cause.DEVICES)
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
                    await self._tell(read_pod(current), refused)
            self._quiet.popleft()

    def _still_waiting(self, pod: Pod, refused: Refused) -> Pod | None:
        """The pod as it is now, if it still waits for the same."""
        current = self._pods.get(pod.metadata.namespace, pod.metadata.name)
        if current is None or current.metadata.uid != pod.metadata.uid or not self._is_ours(current):
            return None
        return current if find_claims(current, self.cluster.find_claim).problem == refused.message else None

    async def _deallocate(self, pod: Pod, claim: ResourceClaim) -> None:
        """Lets go of a claim that is in the way (4381-113).

        One that is reserved for the pod was left behind by a binding that was not answered: it may still be on its way.
        """
        unready = find_unready(claim)
        if claim.status.reserved_for and not (unready is not None and unready.has_failed):
            await self._clock.sleep(UNANSWERED_SECONDS)
            current = self._pods.get(pod.metadata.namespace, pod.metadata.name)
            if current is None or not self._is_ours(current):
                return
        await self._binder.deallocate(claim)

    async def _tell(self, info: PodInfo, refused: Refused) -> None:
        """Says in the pod's status and in an event why it waits."""
        pod = info.pod
        if refused.unused_claim is not None:
            await self._deallocate(pod, refused.unused_claim)
            return
        known = next((one for one in pod.status.conditions if one.type == "PodScheduled"), None)
        message = self._messages.tell(info, refused)
        same = known is not None and (known.status, known.reason) == ("False", refused.reason)
        if not self._messages.is_news(info, refused, known.message if known is not None and same else "", message):
            return
        condition = _condition(known, refused.reason, message, self._clock.now())
        patch = {"status": {"conditions": [condition]}}
        await self._client.patch(
            PODS, pod.metadata.namespace, pod.metadata.name, patch, format=PatchFormat.STRATEGIC, subresource="status"
        )
        if refused.reason != "SchedulingGated":
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
    return bool(pod.pod.spec.resource_claims)


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
