"""The shell: feeds the planner, waits until somebody must leave, and lets workers delete pods."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from prometheus_client import Gauge

from dray.api.generated.core import Pod
from dray.api.meta import Object
from dray.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice, ResourceSlicePatch
from dray.client import Informer
from dray.controllers.context import Context
from dray.controllers.device_taint_eviction.rule_status import RuleStatus
from dray.controllers.device_taint_eviction.selector_problems import SelectorProblems
from dray.controllers.kinds import CLAIMS, DEVICE_CLASSES, PODS, SLICE_PATCHES, SLICES, TAINT_RULES
from dray.controllers.queue_controller import QueueController
from dray.controllers.taint_eviction.deletion_metrics import DeletionMetrics
from dray.controllers.taint_eviction.removal import remove_pod
from dray.controllers.taint_eviction.wakeup import Wakeup
from dray.eviction import ClaimKey, Planner, PodRef, Taken
from dray.reconcile.clock import as_time
from dray.tracker import Remove, TrackedObject, Upsert

WORKERS = 64
REASON = "DeletionByDeviceTaintManager"
MESSAGE = "Device Taint manager: deleting due to NoExecute taint"
EVENT = "DeviceTaintManagerEviction"


class Cancelled(NamedTuple):
    """A pod that was to be evicted and may stay."""

    pod: PodRef


class DeviceTaintEvictionController(QueueController[PodRef | Cancelled]):
    """Keys of the queue are pods to delete, and pods whose deletion was cancelled, to tell of."""

    name = "device-taint-eviction-controller"

    def __init__(self, context: Context) -> None:
        """Registers with the informers; nothing is planned before all have listed."""
        informers = context.informers
        self._pods = informers.of(PODS, Pod)
        claims = informers.of(CLAIMS, ResourceClaim)
        rules = informers.of(TAINT_RULES, DeviceTaintRule)
        patches = informers.of(SLICE_PATCHES, ResourceSlicePatch)
        tracked: list[Informer[Any]] = [
            informers.of(SLICES, ResourceSlice), rules, patches, informers.of(DEVICE_CLASSES, DeviceClass)
        ]  # fmt: skip
        super().__init__(context, *tracked, claims, self._pods, workers=WORKERS)
        self.planner = Planner()
        self._wakeup = Wakeup(context.clock)
        self._recorder = context.recorder(self.name)
        self._status = RuleStatus(context, self.planner, rules)
        self._problems = SelectorProblems(self._recorder, rules, patches)
        self._devices_changed = False
        self._taken: dict[PodRef, Taken[PodRef]] = {}
        self._metrics = DeletionMetrics("device_taint_eviction_controller", context.metrics)
        active = Gauge(
            "device_taint_eviction_controller_active_evictions",
            "Pods that must leave, and taints whose evictions are rationed now.",
            registry=context.metrics,
        )
        active.set_function(lambda: self.planner.active)
        for informer in tracked:
            informer.on_change(self._tracked_changed)
        claims.on_change(self._claim_changed)
        self._pods.on_change(self._pod_changed)

    async def run(self) -> None:
        """Plans and evicts until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(super().run())
            group.create_task(self._status.run())
            group.create_task(self._plan_on_change())

    async def reconcile(self, key: PodRef | Cancelled) -> float | None:
        """Deletes one pod, or tells that it may stay."""
        if isinstance(key, Cancelled):
            pod = self._current(key.pod)
            if pod is not None and not self.planner.must_leave(key.pod):
                await self._recorder.normal(pod, EVENT, "Cancelling deletion")
        elif self.planner.must_leave(key):
            await self._evict(key)
        else:
            self._taken.pop(key, None)
        return None

    async def _evict(self, ref: PodRef) -> None:
        pod = self._current(ref)
        if pod is None:
            return
        causes = self.planner.causes(ref)
        await self._recorder.normal(pod, EVENT, "Marking for deletion")
        now = self._clock.now()
        is_deleted = await remove_pod(self._client, pod, REASON, MESSAGE, as_time(now))
        taken = self._taken.pop(ref, None)
        if is_deleted:
            self.planner.evicted(ref, causes)
            self._metrics.deleted(self._clock.now() - taken.cause.due if taken is not None else 0.0)
        self._wakeup.set()

    def _current(self, ref: PodRef) -> Pod | None:
        pod = self._pods.get(ref.namespace, ref.name)
        return pod if pod is not None and pod.metadata.uid == ref.uid else None

    async def _plan_on_change(self) -> None:
        for informer in self.informers:
            await informer.synced()
        while True:
            wait = self._plan()
            if self._devices_changed and self.planner.is_current:
                self._devices_changed = False
                await self._problems.tell(self.planner.problems)
            await self._wakeup.wait(wait)

    def _plan(self) -> float | None:
        """Plans some, and hands out what is due. Returns after how many seconds to go on, None if nothing is left."""
        tick = self._clock.monotonic()
        for pod in self.planner.plan(tick):
            self.queue.add(Cancelled(pod))
        for taken in self.planner.take(self._clock.now(), tick):
            self._taken[taken.pod] = taken
            self.queue.add(taken.pod)
        if not self.planner.is_current:
            return 0.0
        self._status.report(self.planner.take_changed_rules())
        return self.planner.wait(self._clock.now(), self._clock.monotonic())

    def _tracked_changed(self, old: TrackedObject | None, new: TrackedObject | None) -> None:
        if new is not None:
            self.planner.note(Upsert(new))
        elif old is not None:
            self.planner.note(Remove.of(old))
        self._devices_changed = True
        self._wakeup.set()

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        self.planner.put_claim(_key(new or old), new)
        self._wakeup.set()

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self.planner.put_pod(old, is_gone=True)
        if new is not None:
            self.planner.put_pod(new)
        self._wakeup.set()


def _key(obj: Object | None) -> ClaimKey:
    assert obj is not None  # an informer tells of something that is, or was, there
    return ClaimKey(obj.metadata.namespace, obj.metadata.name)
