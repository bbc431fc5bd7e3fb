"""Follows an eviction while it goes on: informers feed the planner that decides, and what is left is counted.

    informers ─▶ Planner or NodeEvictions ─▶ Standing: left, stopping, held ─▶ eviction_display

Nothing is written. Works through any client.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from dray.api.generated.core import Node, Pod
from dray.api.generated.policy import PodDisruptionBudget
from dray.api.labels import LabelSelector, SelectorError
from dray.api.meta import Object
from dray.api.node_annotations import TaintName
from dray.api.registry import Kind, by_kind
from dray.api.resource import DeviceTaintRule, ResourceClaim
from dray.client import Client, Informer
from dray.controllers.eviction_policies.waiting import is_waiting
from dray.eviction import ClaimKey, Planner, PodRef
from dray.eviction.allocations import devices_of
from dray.eviction.node_evictions import NodeEvictions
from dray.eviction.rule_condition import EVICTION_HELD, find_condition
from dray.reconcile import Clock
from dray.tracker import DeviceId, Remove, Upsert

RESOURCE: Final = "resource.k8s.io/v1"
NODES: Final = by_kind("v1", "Node")
PODS: Final = by_kind("v1", "Pod")
CLAIMS: Final = by_kind(RESOURCE, "ResourceClaim")
BUDGETS: Final = by_kind("policy/v1", "PodDisruptionBudget")
TRACKED: Final = (
    by_kind(RESOURCE, "DeviceClass"),
    by_kind(RESOURCE, "ResourceSlice"),
    by_kind(RESOURCE, "DeviceTaintRule"),
    by_kind("resource.k8s.io/v1alpha3", "ResourceSlicePatch"),
)
CALM_SECONDS: Final = 0.1
"""How long to gather changes before looking."""
LOOK_SECONDS: Final = 1.0
"""How often to look although nothing changed: time goes on."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How far an eviction is."""

    total: int
    evicted: int
    """Pods that are gone, or being deleted."""
    gone: int
    held: tuple[str, ...] = ()
    """Claims that hold a device that was to become idle."""
    blocked: int = 0
    """Pods that a policy lets wait, and whose disruption budget allows none now."""
    put_off: int = 0
    """Pods that a policy lets wait for something else."""
    is_called_off: bool = False
    """Somebody has taken the taint away meanwhile."""
    hold: str = ""
    """Why nobody leaves until somebody confirms it, if so."""

    @property
    def is_evicted(self) -> bool:
        """Whether nobody has to leave any more."""
        return self.evicted >= self.total

    @property
    def is_idle(self) -> bool:
        """Whether everybody who had to leave is gone, and what they used is released."""
        return self.gone >= self.total and not self.held


class Watch:
    """Informers of pods and budgets, and what both kinds of eviction have in common."""

    def __init__(self, client: Client, clock: Clock, moving: Iterable[PodRef]) -> None:
        """`moving` are the pods that are known to have to leave; more may follow."""
        self.changed = asyncio.Event()
        self._client = client
        self._clock = clock
        self._moving = set(moving)
        self._tasks: list[asyncio.Task[None]] = []
        self._pods: Informer[Pod] = self._follow(PODS)
        self._budgets: Informer[PodDisruptionBudget] = self._follow(BUDGETS)
        self._pods.on_change(self._on_any)
        self._budgets.on_change(self._on_any)

    def _follow(self, kind: Kind) -> Informer[Any]:
        informer: Informer[Any] = Informer(self._client, kind, sleep=self._clock.sleep)
        self._tasks.append(asyncio.get_running_loop().create_task(informer.run()))
        return informer

    def _on_any(self, _old: Object | None, _new: Object | None) -> None:
        self.changed.set()

    async def stop(self) -> None:
        """Ends all watches."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def _count(
        self, pending: Iterable[PodRef], held: tuple[str, ...] = (), *, is_called_off: bool, hold: str = ""
    ) -> Standing:
        left = set(pending)
        self._moving |= left
        there = {ref for ref in self._moving if self._is_there(ref)}
        blocked, put_off = self._waiting(left)
        return Standing(
            total=len(self._moving),
            evicted=len(self._moving) - len(left),
            gone=len(self._moving) - len(there | left),
            held=held,
            blocked=blocked,
            put_off=put_off,
            is_called_off=is_called_off,
            hold=hold,
        )

    def _is_there(self, ref: PodRef) -> bool:
        pod = self._pods.get(ref.namespace, ref.name)
        return pod is not None and pod.metadata.uid == ref.uid

    def _waiting(self, left: Iterable[PodRef]) -> tuple[int, int]:
        """How many pods a policy lets wait, for a budget and otherwise. Without a policy nobody does (3902-14)."""
        found = (self._pods.get(ref.namespace, ref.name) for ref in left)
        waiting = [pod for pod in found if pod is not None and is_waiting(pod)]
        strict = [budget for budget in self._budgets if budget.status.disruptions_allowed <= 0] if waiting else []
        blocked = sum(any(_covers(budget, pod) for budget in strict) for pod in waiting)
        return blocked, len(waiting) - blocked


class DeviceWatch(Watch):
    """The eviction that rules cause."""

    def __init__(
        self, client: Client, clock: Clock, rules: Iterable[str], devices: Iterable[str], moving: Iterable[PodRef]
    ) -> None:
        """`devices` (`driver/pool/device`) are to become idle."""
        super().__init__(client, clock, moving)
        self._rules = frozenset(rules)
        self._devices = {DeviceId(*device.split("/", 2)) for device in devices}
        self._planner = Planner()
        self._pods.on_change(self._on_pod)
        self._claims: Informer[ResourceClaim] = self._follow(CLAIMS)
        self._claims.on_change(self._on_claim)
        self._needed: list[Informer[Any]] = [self._pods, self._claims]
        for kind in TRACKED:
            informer = self._follow(kind)
            informer.on_change(self._on_tracked)
            self._needed.append(informer)

    async def ready(self) -> None:
        """Everything has been read once."""
        for informer in self._needed:
            await informer.synced()

    def standing(self) -> Standing:
        """How far it is, as the planner sees it."""
        planner = self._planner
        while not planner.is_current:
            planner.plan(0.0)
        left = [ref for ref in map(PodRef.of, self._pods) if self._must_leave(ref)]
        is_called_off = not self._rules & planner.rules.keys()
        return self._count(left, tuple(sorted(self._held())), is_called_off=is_called_off, hold=self._hold())

    def explanation(self) -> str:
        """What the controller says of a rule as it is now; empty if it has said nothing yet."""
        told = (find_condition(rule) for rule in self._current_rules())
        return next((one.message for one in told if one is not None), "")

    def _hold(self) -> str:
        told = (find_condition(rule, EVICTION_HELD) for rule in self._current_rules())
        return next((one.message for one in told if one is not None and one.status == "True"), "")

    def _current_rules(self) -> Iterable[DeviceTaintRule]:
        """Our rules, with conditions about what they say now only."""
        for name in sorted(self._rules & self._planner.rules.keys()):
            rule = self._planner.rules[name]
            known = tuple(one for one in rule.status.conditions if one.observed_generation == rule.metadata.generation)
            yield replace(rule, status=replace(rule.status, conditions=known))

    def _must_leave(self, ref: PodRef) -> bool:
        return any(cause.rule in self._rules for cause in self._planner.causes(ref).values())

    def _held(self) -> Iterable[str]:
        """The claims on the devices, without those whose users all tolerate the taint and stay."""
        for claim in self._claims:
            if not any(device in self._devices for device in devices_of(claim)):
                continue
            key = ClaimKey(claim.metadata.namespace, claim.metadata.name)
            users = list(self._planner.allocations.users(key))
            if not users or any(self._must_leave(ref) for ref in users):
                yield f"{key.namespace}/{key.name}"

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._planner.put_pod(old, is_gone=True)
        if new is not None:
            self._planner.put_pod(new)

    def _on_claim(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        claim = new or old
        if claim is not None:
            self._planner.put_claim(ClaimKey(claim.metadata.namespace, claim.metadata.name), new)
        self.changed.set()

    def _on_tracked(self, old: Any, new: Any) -> None:
        self._planner.note(Upsert(new) if new is not None else Remove.of(old))
        self.changed.set()


class NodeWatch(Watch):
    """The eviction that NoExecute taints of nodes cause."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        nodes: Iterable[str],
        taints: Iterable[TaintName],
        moving: Iterable[PodRef],
    ) -> None:
        super().__init__(client, clock, moving)
        self._names = frozenset(nodes)
        self._taints = frozenset(taints)
        self._nodes: Informer[Node] = self._follow(NODES)
        self._nodes.on_change(self._on_any)

    async def ready(self) -> None:
        """Everything has been read once."""
        await self._pods.synced()
        await self._nodes.synced()

    def explanation(self) -> str:
        """Nodes do not tell how far their evictions are."""
        return ""

    def standing(self) -> Standing:
        """How far it is: who has to leave is decided by the code that evicts."""
        nodes = [node for name in sorted(self._names) if (node := self._nodes.get("", name)) is not None]
        evictions = NodeEvictions()
        for pod in self._pods:
            if pod.spec.node_name in self._names:
                evictions.put_pod(pod, 0.0)
        for node in nodes:
            evictions.put_node(node.metadata.name, node.spec.taints, 0.0)
        held = (one for node in nodes for one in node.status.conditions if one.type == EVICTION_HELD)
        return self._count(
            evictions.pods,
            is_called_off=self._taints.isdisjoint(TaintName.of(one) for node in nodes for one in node.spec.taints),
            hold="; ".join(one.message for one in held if one.status == "True"),
        )


async def follow(
    watch: DeviceWatch | NodeWatch, is_done: Callable[[Standing], bool], show: Callable[[Standing], None]
) -> Standing:
    """Shows how far it is whenever that changes, until it is done."""
    await watch.ready()
    while True:
        watch.changed.clear()
        standing = watch.standing()
        show(standing)
        if is_done(standing) or standing.is_called_off:
            return standing
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                await watch.changed.wait()
        await asyncio.sleep(CALM_SECONDS)


def _covers(budget: PodDisruptionBudget, pod: Pod) -> bool:
    if budget.metadata.namespace != pod.metadata.namespace:
        return False
    try:
        return LabelSelector.of(budget.spec.selector).matches(pod.metadata.labels)
    except SelectorError:
        return False
