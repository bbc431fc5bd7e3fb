"""Follows an eviction while it goes on: informers feed the planner that decides, and what is left is counted.

    informers ─▶ DevicePlanner or NodePlanner ─▶ Standing: left, stopping, held ─▶ follow(): whoever wants to see it

Nothing is written. Works through any client, beside the controller that evicts or far from it.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from dray.api.conditions import find_condition
from dray.api.generated.core import Namespace, Node, Pod, Taint
from dray.api.generated.policy import PodDisruptionBudget
from dray.api.generated.scheduling import PodGroup
from dray.api.kinds import BUDGETS, CLAIMS, NAMESPACES, NODES, POD_GROUPS, PODS, TRACKED
from dray.api.meta import Object
from dray.api.pods import is_finished
from dray.api.references import ObjectName, ObjectRef
from dray.api.registry import Kind
from dray.api.resource import DeviceTaintRule, ResourceClaim
from dray.api.resource.taint import EFFECT_NO_EXECUTE
from dray.api.taints import TaintName
from dray.client import Client, Informer
from dray.controllers.eviction.waiting_condition import is_waiting
from dray.eviction import DevicePlanner
from dray.eviction.allocations import devices_of
from dray.eviction.budgets import Keepers, holds_back
from dray.eviction.drain import Drain, belongs_to_node, drain_taints, is_drained, is_paused
from dray.eviction.node_planner import NodePlanner
from dray.eviction.rule_condition import EVICTION_HELD, EVICTION_IN_PROGRESS
from dray.eviction.stop import PLACE, all_are_stopped, is_stopped
from dray.reconcile import Clock
from dray.tracker import DeviceId, Remove, Upsert

CALM_SECONDS: Final = 0.1
"""How long to gather changes before looking."""
STOP_SECONDS: Final = 5.0
"""How long to look whether all evictions are stopped."""
LOOK_SECONDS: Final = 1.0
"""How often to look although nothing changed: time goes on."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How far an eviction is."""

    total: int
    """Pods that had to leave, without those that stay, unless it is called off."""
    evicted: int
    """Pods that are gone, or being deleted, or have ended."""
    gone: int
    staying: int = 0
    """Pods that were to leave, and run on: meanwhile they tolerate the taint, or it does not reach them any more."""
    untainted: tuple[str, ...] = ()
    """Nodes that have lost the taint, or are gone themselves, while others have it still."""
    deleted: tuple[str, ...] = ()
    """Nodes that are gone themselves."""
    held: tuple[str, ...] = ()
    """Claims that hold a device that was to become idle."""
    blocked: int = 0
    """Pods that wait for a disruption budget, because a policy or a drain keeps those."""
    put_off: int = 0
    """Pods that a policy lets wait for something else."""
    refused: int = 0
    """Pods that the server does not let go, for another reason than a budget."""
    replacing: int = 0
    """Pods that a drain lets wait for the replacement of another."""
    forced: int = 0
    """Pods that a drain has deleted because its deadline was over."""
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


class Progress(ABC):
    """Informers of pods and budgets, and what both kinds of eviction have in common. `stop` it when done."""

    def __init__(self, client: Client, clock: Clock, moving: Iterable[ObjectRef]) -> None:
        """`moving` are the pods that are known to have to leave; more may follow."""
        self.changed = asyncio.Event()
        self._client = client
        self._clock = clock
        self._moving = set(moving)
        self._tasks: list[asyncio.Task[None]] = []
        self.drain: Drain | None = None
        """What has the pods leave, if no controller does: then the taints of this eviction need not be NoExecute."""
        self.trouble = ""
        """Why the drain cannot ask the server now, if so: it is asked again."""
        self._pods: Informer[Pod] = self._follow(PODS)
        self._budgets: Informer[PodDisruptionBudget] = self._follow(BUDGETS)
        self._namespaces: Informer[Namespace] = self._follow(NAMESPACES, fields=f"metadata.name={PLACE}")
        self._pods.on_change(self._on_any)
        self._budgets.on_change(self._on_any)
        self._namespaces.on_change(self._on_any)

    @abstractmethod
    async def ready(self) -> None:
        """Everything has been read once."""

    @abstractmethod
    def standing(self) -> Standing:
        """How far it is, as the code that evicts sees it."""

    @abstractmethod
    def due(self) -> list[tuple[Pod, float]]:
        """The pods that must leave and are not leaving, each from when on, in seconds since 1970."""

    @property
    @abstractmethod
    def paused(self) -> list[str]:
        """`rule/NAME` and `node/NAME` of which somebody said that the drain is to stand still."""

    async def looked_for_stop(self) -> None:
        """Whether all evictions are stopped is known; or cannot be, for who may not look."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await self._namespaces.synced()

    @property
    def pods(self) -> Informer[Pod]:
        """All pods."""
        return self._pods

    def explanation(self) -> str:
        """What the controller says of it now; empty if it has said nothing, or does not tell."""
        return ""

    def _due(self, left: Iterable[tuple[ObjectRef, float]]) -> list[tuple[Pod, float]]:
        found = ((self._pods.get(ref.namespace, ref.name), since) for ref, since in left)
        return [(pod, since) for pod, since in found if pod is not None and pod.metadata.deletion_timestamp is None]

    def _follow(self, kind: Kind, fields: str = "") -> Informer[Any]:
        informer: Informer[Any] = Informer(self._client, kind, fields=fields, sleep=self._clock.sleep)
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
        self, pending: Iterable[ObjectRef], held: tuple[str, ...] = (), *, is_called_off: bool, hold: str = ""
    ) -> Standing:
        left = set(pending)
        self._moving |= left
        there = {ref: pod for ref in self._moving - left if (pod := self._not_ended(ref)) is not None}
        stopping = sum(pod.metadata.deletion_timestamp is not None for pod in there.values())
        staying = len(there) - stopping
        evicted = len(self._moving) - len(left) - staying
        blocked, put_off, refused = self._waiting(left)
        return Standing(
            total=len(self._moving) - (0 if is_called_off else staying),
            evicted=evicted,
            gone=evicted - stopping,
            staying=staying,
            held=held,
            blocked=blocked,
            put_off=put_off,
            refused=refused,
            replacing=0 if self.drain is None else len(self.drain.replacing & left),
            forced=0 if self.drain is None else len(self.drain.forced),
            is_called_off=is_called_off,
            hold=self._standstill() or self.trouble or hold,
        )

    @property
    def stands_still(self) -> bool:
        """Whether nobody is to leave for the time being."""
        return bool(self._standstill())

    def _standstill(self) -> str:
        place = self._namespaces.get("", PLACE)
        if all_are_stopped(place) or (self.drain is not None and is_stopped(place)):
            return "evictions are stopped (dray stop-evictions --resume lets them go on)"
        paused = self.paused
        return f"the drain is paused (dray drain resume {' '.join(paused)} lets it go on)" if paused else ""

    def _not_ended(self, ref: ObjectRef) -> Pod | None:
        """The pod, unless it is gone, or has ended by itself: one that is being deleted is waited for."""
        pod = self._pods.get(ref.namespace, ref.name)
        is_it = pod is not None and pod.metadata.uid == ref.uid
        return pod if is_it and pod is not None and (pod.metadata.deletion_timestamp or not is_finished(pod)) else None

    def _waiting(self, left: Iterable[ObjectRef]) -> tuple[int, int, int]:
        """How many pods wait: for a budget, for something else that a policy wants, and because of other refusals.

        Without a policy or a drain nobody does (3902-14).
        """
        refused = {} if self.drain is None else self.drain.refusals
        found = ((self._pods.get(ref.namespace, ref.name), ref in refused) for ref in left)
        waiting = [
            (pod, is_refused) for pod, is_refused in found if pod is not None and (is_refused or is_waiting(pod))
        ]
        keepers = Keepers(self._budgets if waiting else ())
        kept = [is_refused for pod, is_refused in waiting if not _is_kept(keepers.of(pod), is_refused)]
        return len(waiting) - len(kept), kept.count(False), kept.count(True)


def _is_kept(budgets: list[PodDisruptionBudget], is_refused: bool) -> bool:
    """Whether a pod waits for these budgets; one that was refused does so even if they allow something by now."""
    return bool(budgets) if is_refused else holds_back(budgets)


class DeviceProgress(Progress):
    """The eviction that rules cause."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        rules: Iterable[str],
        devices: Iterable[str],
        moving: Iterable[ObjectRef],
        *,
        drains: bool = False,
    ) -> None:
        """`devices` (`driver/pool/device`) are to become idle. Pods leave for any effect of rules that one `drains`."""
        super().__init__(client, clock, moving)
        self._drains = drains
        self._rules = frozenset(rules)
        self._devices = {DeviceId(*device.split("/", 2)) for device in devices}
        self._planner = DevicePlanner()
        self._pods.on_change(self._on_pod)
        self._claims: Informer[ResourceClaim] = self._follow(CLAIMS)
        self._claims.on_change(self._on_claim)
        groups: Informer[PodGroup] = self._follow(POD_GROUPS)
        groups.on_change(self._on_group)
        self._needed: list[Informer[Any]] = [self._pods, self._claims, groups]
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
        planner = self._current_planner()
        left = [ref for ref in map(ObjectRef.of, self._pods) if self._must_leave(ref)]
        there = (planner.rules[name] for name in self._rules & planner.rules.keys())
        is_called_off = all(rule.spec.taint.effect != EFFECT_NO_EXECUTE for rule in there)
        return self._count(left, tuple(sorted(self._held())), is_called_off=is_called_off, hold=self._hold())

    def due(self) -> list[tuple[Pod, float]]:
        """The pods that must leave for these rules."""
        departures = self._current_planner().departures
        causes = ((ref, departures.causes(ref).values()) for ref in map(ObjectRef.of, self._pods))
        mine = ((ref, [one.due for one in them if one.rule in self._rules]) for ref, them in causes)
        return self._due((ref, min(times)) for ref, times in mine if times)

    @property
    def paused(self) -> list[str]:
        """The rules that say so."""
        them = (rule.metadata for rule in self._current_rules() if self._drains)
        return [f"rule/{one.name}" for one in them if is_paused(one.annotations)]

    def _current_planner(self) -> DevicePlanner:
        while not self._planner.is_current:
            self._planner.plan(0.0)
        return self._planner

    def explanation(self) -> str:
        """What the controller says of a rule as it is now; empty if it has said nothing yet."""
        told = (find_condition(rule.status.conditions, EVICTION_IN_PROGRESS) for rule in self._current_rules())
        return next((one.message for one in told if one is not None), "")

    def _hold(self) -> str:
        told = (find_condition(rule.status.conditions, EVICTION_HELD) for rule in self._current_rules())
        return next((one.message for one in told if one is not None and one.status == "True"), "")

    def _current_rules(self) -> Iterable[DeviceTaintRule]:
        """Our rules, with conditions about what they say now only."""
        for name in sorted(self._rules & self._planner.rules.keys()):
            rule = self._planner.rules[name]
            known = tuple(one for one in rule.status.conditions if one.observed_generation == rule.metadata.generation)
            yield replace(rule, status=replace(rule.status, conditions=known))

    def _must_leave(self, ref: ObjectRef) -> bool:
        return any(cause.rule in self._rules for cause in self._planner.departures.causes(ref).values())

    def _held(self) -> Iterable[str]:
        """The claims on the devices, without those whose users all tolerate the taint and stay."""
        for claim in self._claims:
            if not any(device in self._devices for device in devices_of(claim)):
                continue
            key = ObjectName(claim.metadata.namespace, claim.metadata.name)
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
            self._planner.put_claim(ObjectName(claim.metadata.namespace, claim.metadata.name), new)
        self.changed.set()

    def _on_group(self, old: PodGroup | None, new: PodGroup | None) -> None:
        group = new or old
        if group is not None:
            self._planner.put_group(ObjectName.of(group), new)
        self.changed.set()

    def _on_tracked(self, old: Any, new: Any) -> None:
        is_ours = self._drains and isinstance(new, DeviceTaintRule) and new.metadata.name in self._rules
        if is_ours and is_drained(new):
            taint = replace(new.spec.taint, effect=EFFECT_NO_EXECUTE)
            new = replace(new, spec=replace(new.spec, taint=taint))
        self._planner.note(Upsert(new) if new is not None else Remove.of(old))
        self.changed.set()


class NodeProgress(Progress):
    """The eviction that NoExecute taints of nodes cause."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        nodes: Iterable[str],
        taints: Iterable[TaintName],
        moving: Iterable[ObjectRef],
        *,
        drains: bool = False,
    ) -> None:
        """One that `drains` has pods leave for taints of which the node says so, whatever their effect."""
        super().__init__(client, clock, moving)
        self._drains = drains
        self._began = clock.monotonic()
        self._names = frozenset(nodes)
        self._taints = frozenset(taints)
        self._nodes: Informer[Node] = self._follow(NODES)
        self._nodes.on_change(self._on_any)

    async def ready(self) -> None:
        """Everything has been read once."""
        await self._pods.synced()
        await self._nodes.synced()

    def standing(self) -> Standing:
        """How far it is: who has to leave is decided by the code that evicts."""
        nodes = self._current_nodes()
        planner = self._planner()
        held = (one for node in nodes for one in node.status.conditions if one.type == EVICTION_HELD)
        tainted = {node.metadata.name for node in nodes if self._marks(node)}
        standing = self._count(
            planner.departures.pods,
            is_called_off=not tainted,
            hold="; ".join(one.message for one in held if one.status == "True"),
        )
        return replace(
            standing,
            untainted=tuple(sorted(self._names - tainted)) if tainted else (),
            deleted=tuple(sorted(self._names - {node.metadata.name for node in nodes})),
        )

    def due(self) -> list[tuple[Pod, float]]:
        """The pods that must leave these nodes; what they tolerate for a time counts from when this began."""
        departures = self._planner().departures
        began = self._clock.now() - (self._clock.monotonic() - self._began)
        return self._due(
            (ref, began + min(one.due for one in departures.causes(ref).values())) for ref in departures.pods
        )

    @property
    def paused(self) -> list[str]:
        """The nodes that say so."""
        them = (node.metadata for node in self._current_nodes() if self._drains)
        return [f"node/{one.name}" for one in them if is_paused(one.annotations)]

    def _current_nodes(self) -> list[Node]:
        return [node for name in sorted(self._names) if (node := self._nodes.get("", name)) is not None]

    def _planner(self) -> NodePlanner:
        planner = NodePlanner()
        for pod in self._pods:
            if pod.spec.node_name in self._names and not (self._drains and belongs_to_node(pod)):
                planner.put_pod(pod, 0.0)
        for node in self._current_nodes():
            marks = self._marks(node) if self._drains else frozenset()
            taints = [_as_evicting(one) if TaintName.of(one) in marks else one for one in node.spec.taints]
            planner.put_node(node.metadata.name, taints, 0.0)
        planner.finish(0.0)
        return planner

    def _marks(self, node: Node) -> frozenset[TaintName]:
        """Our taints that the node still has; of a drain, those for which pods leave."""
        return self._taints.intersection(map(TaintName.of, drain_taints(node) if self._drains else node.spec.taints))


def _as_evicting(taint: Taint) -> Taint:
    return replace(taint, effect=EFFECT_NO_EXECUTE)


async def follow(progress: Progress, is_done: Callable[[Standing], bool], show: Callable[[Standing], None]) -> Standing:
    """Shows how far it is whenever that changes, until it is done.

    Who seems to stay is looked at once more: watches are not in step, and a claim may be released before one hears
    that its pod is gone.
    """
    await progress.ready()
    staying = 0
    while True:
        progress.changed.clear()
        standing = progress.standing()
        show(standing)
        if standing.is_called_off or (is_done(standing) and standing.staying == staying):
            return standing
        staying = standing.staying
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                await progress.changed.wait()
        await asyncio.sleep(CALM_SECONDS)
