"""Pods leave devices with NoExecute taints that their claims do not tolerate (KEP-5055)."""

from __future__ import annotations

from typing import Any

from prometheus_client import Gauge

from dray import cel
from dray.api.generated.core import Pod
from dray.api.generated.scheduling import PodGroup
from dray.api.kinds import CLAIMS, CLASSES, PATCHES, POD_GROUPS, RULES, SLICES
from dray.api.meta import Object
from dray.api.references import ObjectName, ObjectRef
from dray.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice, ResourceSlicePatch
from dray.client import Informer
from dray.controllers.context import Context
from dray.controllers.eviction.controller import EvictionController
from dray.controllers.eviction.held_pools import HeldPools
from dray.controllers.eviction.identity import DisruptionTarget, Identity
from dray.controllers.eviction.rule_status import RuleStatus
from dray.controllers.eviction.selector_problems import SelectorProblems
from dray.eviction import DevicePlanner, Taken
from dray.eviction.policy import EvictionCause
from dray.reconcile.selector_work import SelectorWork
from dray.tracker import AT_ONCE, Remove, TrackedObject, Tracker, Upsert

WORKERS = 340
"""Enough for 1000 evictions a second while each of their four writes takes 80 ms; one of these is for all together."""
CHUNK = 50
"""How much is planned at a time, so that the first evictions need not wait until all are planned."""
REST = 3
"""Planning rests for so many times as long as a chunk has taken: it leaves most of a core to those who evict."""
LONGEST_REST = 0.02
"""Seconds."""
TURN_SECONDS = 0.01
"""How long selectors are evaluated at a time."""
SELECTOR_SECONDS = 10.0
"""How long a selector of a rule or patch may be evaluated for all devices together."""


class DeviceTaintEvictionController(EvictionController):
    """Feeds the planner with devices, claims and pods, and tells rules how far they are."""

    name = "device-taint-eviction-controller"
    identity = Identity(
        metrics="device_taint_eviction_controller",
        target=DisruptionTarget(
            "DeletionByDeviceTaintManager", "Device Taint manager: deleting due to NoExecute taint"
        ),
        event="DeviceTaintManagerEviction",
    )

    def __init__(self, context: Context) -> None:
        """Registers with the informers; nothing is planned before all have listed."""
        informers = context.informers
        claims = informers.of(CLAIMS, ResourceClaim)
        rules = informers.of(RULES, DeviceTaintRule)
        patches = informers.of(PATCHES, ResourceSlicePatch)
        slices = informers.of(SLICES, ResourceSlice)
        tracked: list[Informer[Any]] = [slices, rules, patches, informers.of(CLASSES, DeviceClass)]
        self._backlog = cel.Backlog(context.clock.monotonic)
        self.planner = _make_planner(context, self._backlog)
        groups = informers.of(POD_GROUPS, PodGroup)
        super().__init__(context, self.planner.departures, *tracked, claims, groups, workers=WORKERS)
        self._status = RuleStatus(context, self.planner, rules, self._recorder)
        self._problems = SelectorProblems(self._recorder, rules, patches)
        self._held_pools = HeldPools(self._recorder, slices)
        self._devices_changed = False
        self._selector_work = SelectorWork(
            self._backlog, context.clock, self._selectors_evaluated, seconds=SELECTOR_SECONDS
        )
        active = Gauge(
            f"{self.identity.metrics}_active_evictions",
            "Pods that must leave, and taints whose evictions are rationed now.",
            registry=context.metrics,
        )
        active.set_function(lambda: self.planner.active)
        for informer in tracked:
            informer.on_change(self._tracked_changed)
        claims.on_change(self._claim_changed)
        groups.on_change(self._group_changed)

    @property
    def pending_evictions(self) -> int:
        """How many pods are to be evicted."""
        return self.planner.pending

    async def run(self) -> None:
        """Plans and evicts until cancelled."""
        telling = (self._status.run(), self._problems.run(), self._held_pools.run())
        await self._run_with(*telling, self._plan_on_change(), self._selector_work.run())

    def _tick(self) -> float:
        return self._clock.now()

    def _must_leave(self, ref: ObjectRef) -> bool:
        return self.planner.must_leave(ref)

    def _why(self, taken: Taken[ObjectRef], due: float) -> EvictionCause:
        pod, cause = taken
        devices = tuple(map(str, self.planner.devices_for(pod, cause.taint)))
        return EvictionCause(kind="device", due=due, key=cause.key, value=cause.value, rule=cause.rule, devices=devices)

    def _unknown_cause(self) -> EvictionCause:
        return EvictionCause(kind="device", due=self._clock.now())

    async def _plan_on_change(self) -> None:
        await self._begin()
        while True:
            began = self._clock.monotonic()
            wait = self._plan_some()
            if self._devices_changed and self.planner.is_current:
                self._devices_changed = False
                self._problems.note(self.planner.problems)
            if self.planner.is_current and (held := self.planner.take_held_pools()) is not None:
                self._held_pools.note(held)
            if self.planner.is_current:
                await self._wakeup.wait(wait)
            else:
                await self._clock.sleep(min(REST * (self._clock.monotonic() - began), LONGEST_REST))

    def _plan_some(self) -> float | None:
        """Plans some, and hands out what is due. Returns after how many seconds more is, None if nothing is left."""
        tick = self._clock.monotonic()
        self._backlog.begin_turn("", TURN_SECONDS)
        cancelled = self.planner.plan(tick, CHUNK)
        self._selector_work.look()
        self._hand_out(() if self.is_stopped else self.planner.take(self._clock.now(), tick), cancelled)
        if not self.planner.is_current:
            return 0.0
        self._status.report(self.planner.take_changed_rules())
        return None if self.is_stopped else self.planner.wait(self._clock.now(), self._clock.monotonic())

    def _look(self) -> None:
        """Wakes up planning if that has to do with it, or else only tells how far rules are."""
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

    def _selectors_evaluated(self) -> None:
        self._backlog.begin_turn("", TURN_SECONDS)
        self.planner.resume()
        self._selector_work.look()
        self._devices_changed = True
        self._wakeup.set()

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if self.planner.put_claim(_key(new or old), new):
            self._look()

    def _group_changed(self, old: PodGroup | None, new: PodGroup | None) -> None:
        self.planner.put_group(_key(new or old), new)
        self._look()

    def _pod_came(self, pod: Pod) -> bool:
        return self.planner.put_pod(pod)

    def _pod_went(self, pod: Pod) -> None:
        self.planner.put_pod(pod, is_gone=True)


def _make_planner(context: Context, backlog: cel.Backlog) -> DevicePlanner:
    gates = context.settings.disabled_gates
    with_rules = "DRADeviceTaintRules" not in gates
    tracker = Tracker(
        taints="DRADeviceTaints" not in gates,
        taint_rules=with_rules,
        patches="DRAAdminControlledDeviceAttributes" not in gates,
        backlog=backlog,
        at_once=AT_ONCE,
    )
    limit = context.settings.eviction.max_evictions
    return DevicePlanner(tracker, taint_rules=with_rules, max_evictions=limit, recent=context.recent_evictions)


def _key(obj: Object | None) -> ObjectName:
    assert obj is not None  # an informer tells of something that is, or was, there
    return ObjectName(obj.metadata.namespace, obj.metadata.name)
