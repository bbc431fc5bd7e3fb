"""The shell: feeds the planner, waits until somebody must leave, and lets workers delete pods."""

from __future__ import annotations

import asyncio
from typing import Any, TypeAlias

from prometheus_client import Gauge

from dray.api.generated.core import Pod
from dray.api.meta import Object
from dray.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice, ResourceSlicePatch
from dray.client import Informer
from dray.controllers.context import Context
from dray.controllers.device_taint_eviction.held_pools import HeldPools
from dray.controllers.device_taint_eviction.rule_status import RuleStatus
from dray.controllers.device_taint_eviction.selector_problems import SelectorProblems
from dray.controllers.eviction_policies import Desk, Later, Left, Outcome, Stays, open_desk
from dray.controllers.eviction_policies.keys import Cancelled, FollowUp, has_other_marks
from dray.controllers.eviction_policies.removal import Mark, remove_pod
from dray.controllers.kinds import CLAIMS, DEVICE_CLASSES, PODS, SLICE_PATCHES, SLICES, TAINT_RULES
from dray.controllers.queue_controller import QueueController
from dray.controllers.taint_eviction.deletion_metrics import DeletionMetrics
from dray.controllers.taint_eviction.wakeup import Wakeup
from dray.eviction import ClaimKey, Planner, PodRef, Taken
from dray.eviction.pods import is_on_its_way
from dray.eviction.policy import EvictionCause
from dray.reconcile.clock import as_time
from dray.tracker import Remove, TrackedObject, Tracker, Upsert

WORKERS = 256
"""Enough for 1000 evictions a second while each of their three writes takes 80 ms."""
MARK = Mark("DeletionByDeviceTaintManager", "Device Taint manager: deleting due to NoExecute taint")
EVENT = "DeviceTaintManagerEviction"


PREFIX = "device_taint_eviction_controller"
CHUNK = 50
"""How much is planned at a time, so that the first evictions need not wait until all are planned."""
REST = 3
"""Planning rests for so many times as long as a chunk has taken: it leaves most of a core to those who evict."""
LONGEST_REST = 0.02
"""Seconds."""

Key: TypeAlias = PodRef | Cancelled | FollowUp


class DeviceTaintEvictionController(QueueController[Key]):
    """Keys of the queue are pods to delete, pods that may stay after all, and pods that are slow to go."""

    name = "device-taint-eviction-controller"

    def __init__(self, context: Context) -> None:
        """Registers with the informers; nothing is planned before all have listed."""
        informers = context.informers
        self._pods = informers.of(PODS, Pod)
        claims = informers.of(CLAIMS, ResourceClaim)
        rules = informers.of(TAINT_RULES, DeviceTaintRule)
        patches = informers.of(SLICE_PATCHES, ResourceSlicePatch)
        slices = informers.of(SLICES, ResourceSlice)
        tracked: list[Informer[Any]] = [slices, rules, patches, informers.of(DEVICE_CLASSES, DeviceClass)]
        super().__init__(context, *tracked, claims, self._pods, workers=WORKERS)
        settings = context.settings
        gates = settings.disabled_gates
        tracker = Tracker(
            taints="DRADeviceTaints" not in gates,
            taint_rules="DRADeviceTaintRules" not in gates,
            patches="DRAAdminControlledDeviceAttributes" not in gates,
        )
        with_rules = "DRADeviceTaintRules" not in gates
        self.planner = Planner(tracker, taint_rules=with_rules, max_evictions=settings.eviction.max_evictions)
        self._wakeup = Wakeup(context.clock)
        self._recorder = context.recorder(self.name)
        self._desk = open_desk(context, PREFIX, self._recorder, MARK)
        self._status = RuleStatus(context, self.planner, rules, self._recorder)
        self._problems = SelectorProblems(self._recorder, rules, patches)
        self._held_pools = HeldPools(self._recorder, slices)
        self._devices_changed = False
        self._taken: dict[PodRef, Taken[PodRef]] = {}
        self._metrics = DeletionMetrics(PREFIX, context.metrics)
        active = Gauge(
            f"{PREFIX}_active_evictions",
            "Pods that must leave, and taints whose evictions are rationed now.",
            registry=context.metrics,
        )
        active.set_function(lambda: self.planner.active)
        for informer in tracked:
            informer.on_change(self._tracked_changed)
        claims.on_change(self._claim_changed)
        self._pods.on_change(self._pod_changed)

    @property
    def pending_evictions(self) -> int:
        """How many pods are to be evicted."""
        return self.planner.pending

    async def run(self) -> None:
        """Plans and evicts until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(super().run())
                group.create_task(self._status.run())
                group.create_task(self._plan_on_change())
        finally:
            if self._desk is not None:
                await self._desk.close()

    async def reconcile(self, key: Key) -> float | None:
        """Deletes one pod, tells that it may stay, or asks what to do about one that does not go."""
        if isinstance(key, FollowUp):
            return await self._follow_up(key.pod)
        if isinstance(key, Cancelled):
            await self._tell_cancelled(key.pod)
        elif self.planner.must_leave(key):
            await self._evict(key)
        else:
            self._taken.pop(key, None)
        return None

    async def _evict(self, ref: PodRef) -> None:
        pod = self._current(ref)
        taken = self._taken.get(ref)
        if pod is None or taken is None:
            return
        causes = self.planner.causes(ref)
        outcome = await (self._delete(pod) if self._desk is None else self._settle(self._desk, pod, taken))
        self._taken.pop(ref, None)
        if isinstance(outcome, Later):
            self.planner.postpone(taken, outcome.until)
            self._wakeup.set()
        elif isinstance(outcome, Stays):
            if outcome.is_kept:
                self.planner.exempt(ref)
        elif outcome.is_deleted:
            self.planner.evicted(ref, causes)
            self._metrics.deleted(self._clock.now() - taken.cause.due)
        self._look()

    async def _delete(self, pod: Pod) -> Outcome:
        await self._recorder.normal(pod, EVENT, "Marking for deletion")
        return Left(await remove_pod(self._client, pod, MARK, as_time(self._clock.now())))

    async def _settle(self, desk: Desk, pod: Pod, taken: Taken[PodRef]) -> Outcome:
        ref, cause = taken
        devices = tuple(map(str, self.planner.devices_for(ref, cause.taint)))
        why = EvictionCause(
            kind="device", due=cause.due, key=cause.key, value=cause.value, rule=cause.rule, devices=devices
        )
        outcome = await desk.settle(pod, why, lambda: self.planner.must_leave(ref))
        if isinstance(outcome, Left) and outcome.is_deleted:
            await self._recorder.normal(pod, EVENT, "Marking for deletion")
        return outcome

    async def _tell_cancelled(self, ref: PodRef) -> None:
        pod = self._current(ref)
        if pod is not None and not self.planner.must_leave(ref):
            await self._recorder.normal(pod, EVENT, "Cancelling deletion")
            if self._desk is not None:
                await self._desk.cancelled(pod)

    async def _follow_up(self, ref: PodRef) -> float | None:
        pod = self._current(ref)
        if pod is None or self._desk is None:
            return None
        return await self._desk.follow_up(pod, EvictionCause(kind="device", due=self._clock.now()))

    def _current(self, ref: PodRef) -> Pod | None:
        pod = self._pods.get(ref.namespace, ref.name)
        return pod if pod is not None and pod.metadata.uid == ref.uid else None

    async def _plan_on_change(self) -> None:
        for informer in self.informers:
            await informer.synced()
        while True:
            began = self._clock.monotonic()
            wait = self._plan()
            if self._devices_changed and self.planner.is_current:
                self._devices_changed = False
                await self._problems.tell(self.planner.problems)
            if self.planner.guard is not None and self.planner.is_current:
                await self._held_pools.tell(self.planner.guard.held_pools())
            if self.planner.is_current:
                await self._wakeup.wait(wait)
            else:
                await self._clock.sleep(min(REST * (self._clock.monotonic() - began), LONGEST_REST))

    def _plan(self) -> float | None:
        """Plans some, and hands out what is due. Returns after how many seconds more is, None if nothing is left."""
        tick = self._clock.monotonic()
        for pod in self.planner.plan(tick, CHUNK):
            self.queue.add(Cancelled(pod))
        for taken in self.planner.take(self._clock.now(), tick):
            self._taken[taken.pod] = taken
            self.queue.add(taken.pod)
        if not self.planner.is_current:
            return 0.0
        self._status.report(self.planner.take_changed_rules())
        return self.planner.wait(self._clock.now(), self._clock.monotonic())

    def _look(self) -> None:
        """Something has happened: wakes up planning if that has to do with it, or else only tells how far rules are."""
        if self.planner.is_current:
            self._status.report(self.planner.take_changed_rules())
        else:
            self._wakeup.set()

    def _tracked_changed(self, old: TrackedObject | None, new: TrackedObject | None) -> None:
        if new is not None:
            self.planner.note(Upsert(new))
        elif old is not None:
            self.planner.note(Remove.of(old))
        self._devices_changed = True
        self._wakeup.set()

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        self.planner.put_claim(_key(new or old), new)
        self._look()

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if is_on_its_way(old, new) and self._desk is None:
            return
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self.planner.put_pod(old, is_gone=True)
            if self._desk is not None:
                self._desk.forget(old)
            old = None
        if new is not None:
            self.planner.put_pod(new)
            if self._desk is not None:
                self._note_for_policy(self._desk, old, new)
        self._look()

    def _note_for_policy(self, desk: Desk, old: Pod | None, new: Pod) -> None:
        desk.replicas.put(new)
        ref = PodRef.of(new)
        if new.metadata.deletion_timestamp is not None:
            if (old is None or old.metadata.deletion_timestamp is None) and desk.follows_up(new):
                self.queue.add(FollowUp(ref))
        elif old is not None and has_other_marks(old, new) and self.planner.is_put_off(ref):
            self.planner.recall(ref)
            self._wakeup.set()


def _key(obj: Object | None) -> ClaimKey:
    assert obj is not None  # an informer tells of something that is, or was, there
    return ClaimKey(obj.metadata.namespace, obj.metadata.name)
