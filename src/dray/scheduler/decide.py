"""The decision: a node for a pod, and devices for its claims. Pure: looks at the cluster, changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Protocol

import msgspec

from dray.allocator import Allocated, Failed, Options, Outcome, Unsatisfiable, allocate, claim_key
from dray.allocator.shapes import Shape
from dray.api.node_match import NodeSelectorError, matches
from dray.api.resource import AllocationResult, ResourceClaim
from dray.api.resource.toleration import is_tolerated
from dray.scheduler.claims import NOT_CREATED, PodClaims, find_claims
from dray.scheduler.cluster import Cluster
from dray.scheduler.device_readiness import find_unready
from dray.scheduler.node_info import NOT_AFFINE, NodeInfo, Score, preferred_terms
from dray.scheduler.pod_info import PodInfo
from dray.scheduler.queue import Cause
from dray.tracker import DeviceId

ENOUGH_NODES = 50
"""How many nodes that fit are compared before the best one is taken."""

CANNOT_ALLOCATE = "cannot allocate all claims"

Reasons = Counter[tuple[str, ...]]
"""How many nodes refuse a pod, by everything that each of them has against it."""


class Chosen(msgspec.Struct, frozen=True):
    """A node, and what each claim that had nothing yet gets there."""

    node: str
    claims: tuple[ResourceClaim, ...] = ()
    allocations: dict[str, tuple[ResourceClaim, AllocationResult]] = {}


class Refused(msgspec.Struct, frozen=True):
    """Why there is no node, in words, and which changes may help."""

    message: str
    causes: Cause
    reason: str = "Unschedulable"
    quiet: bool = False
    """True if the pod only waits for something that is on its way; nobody need be told at once."""
    unallocated: tuple[ResourceClaim, ...] = ()
    """The claims for which devices were looked for in vain."""
    unused_claim: ResourceClaim | None = None
    """A claim that is allocated, not in use, and in the way: it may be deallocated (4381-113)."""


class Observer(Protocol):
    """Hears which extension points of the scheduling framework an attempt has passed."""

    def done(self, point: str, status: str = "Success", detail: str = "") -> None:
        """An extension point has ended."""
        ...


def decide(cluster: Cluster, pod: PodInfo, options: Options, observer: Observer | None = None) -> Chosen | Refused:
    """A node for the pod, or why there is none."""
    if pod.unsupported:
        return Refused(pod.unsupported, Cause.NOTHING, "Unsupported")
    if pod.pod.spec.scheduling_gates:
        return Refused("Scheduling is blocked due to non-empty scheduling gates", Cause.NOTHING, "SchedulingGated")
    found = find_claims(pod.pod, cluster.find_claim)
    refused = refuse_without_claims(found)
    if refused is not None:
        return refused
    if observer is not None:
        observer.done("PreEnqueue")
    if not found.claims:
        return _decide_plain(cluster, pod)
    return _Decision(cluster, pod, found.claims, options).decide(observer)


def refuse_without_claims(found: PodClaims) -> Refused | None:
    """Why a pod cannot be tried with the claims it has, if it cannot (4381-111)."""
    if not found.problem:
        return None
    return Refused(found.problem, Cause.CLAIM, quiet=found.problem.startswith(NOT_CREATED))


def _decide_plain(cluster: Cluster, pod: PodInfo) -> Chosen | Refused:
    """The best of the first nodes that fit."""
    best: tuple[Score, str] | None = None
    seen = 0
    reasons: Reasons = Counter()
    for node in _nodes(cluster, pod):
        refusal = cluster.nodes.refuses(pod, node)
        if refusal:
            reasons[refusal] += 1
            continue
        score = node.score(pod)
        if best is None or score > best[0]:
            best = (score, node.node.metadata.name)
        seen += 1
        if seen >= ENOUGH_NODES:
            break
    if best is not None:
        return Chosen(best[1])
    total = len(cluster.nodes)
    not_looked_at = total - sum(reasons.values())
    if not_looked_at:
        reasons[(NOT_AFFINE,)] += not_looked_at
    return Refused(summary(total, reasons), Cause.NODE | Cause.POD_GONE)


def _nodes(cluster: Cluster, pod: PodInfo) -> Iterator[NodeInfo]:
    """The nodes to look at: the one that the pod's selector names, or all."""
    wanted = pod.pod.spec.node_selector.get("kubernetes.io/hostname")
    only = cluster.nodes.get(wanted) if wanted else None
    if only is not None and only.node.metadata.labels.get("kubernetes.io/hostname") == wanted:
        return iter((only,))
    return iter(cluster.nodes)


def summary(total: int, reasons: Reasons) -> str:
    """`0/5 nodes are available: 2 node(s) were unschedulable, 3 Insufficient cpu, 3 Insufficient memory.`"""
    if not total:
        return "no nodes available to schedule pods"
    counts: Counter[str] = Counter()
    for several, nodes in reasons.items():
        for reason in several:
            counts[reason] += nodes
    parts = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{total} nodes are available: {parts}." if parts else f"0/{total} nodes are available."


class _Decision:
    """A decision for a pod with claims."""

    def __init__(self, cluster: Cluster, pod: PodInfo, claims: tuple[ResourceClaim, ...], options: Options) -> None:
        self._cluster = cluster
        self._pod = pod
        self._claims = claims
        self._options = options
        self._pending = [claim for claim in claims if claim.status.allocation is None]
        self._held = [claim for claim in claims if claim.status.allocation is not None]
        self._reasons: Reasons = Counter()
        self._in_the_way: ResourceClaim | None = None

    def decide(self, observer: Observer | None = None) -> Chosen | Refused:
        refused = self._check_claims()
        if observer is not None:
            observer.done("PreFilter", "Success" if refused is None else "Unschedulable")
        if refused is not None:
            return refused
        shape = self._shape()
        is_choosy = self._is_choosy()
        best: tuple[tuple[int, int, int], Chosen] | None = None
        seen = 0
        for rank, node in self._candidates(shape):
            name = node.node.metadata.name
            refusal = self._cluster.nodes.refuses(self._pod, node) or self._reach(node)
            if refusal:
                self._reasons[refusal] += 1
                continue
            answer = self._allocate(name, shape)
            if isinstance(answer, Failed):
                # Not "Unschedulable": more nodes do not help, and autoscalers must not think so.
                message = f"{CANNOT_ALLOCATE}: {answer.error}"
                return Refused(message, _DEVICE_CAUSES | Cause.ERROR, "SchedulerError")
            if not isinstance(answer, Allocated):
                if shape is not None and rank is not None and isinstance(answer, Unsatisfiable):
                    shape.rule_out(rank)  # for all pods with such claims, until something changes on the node
                self._reasons[(answer.message,)] += 1
                continue
            chosen = self._chosen(answer)
            if not is_choosy:
                return chosen
            score = (*node.preference(self._pod), -self._concessions(answer))
            if best is None or score > best[0]:
                best = (score, chosen)
            seen += 1
            if seen >= ENOUGH_NODES:
                break
        return self._refused() if best is None else best[1]

    def _is_choosy(self) -> bool:
        """Whether nodes that fit may differ in how good they are; otherwise the first one is taken."""
        return (
            self._cluster.nodes.any_disliked
            or bool(preferred_terms(self._pod))
            or any(request.first_available for claim in self._pending for request in claim.spec.devices.requests)
        )

    def _concessions(self, answer: Allocated) -> int:
        """How far down their lists of alternatives the claims had to go on a node."""
        given = {
            (key, result.request)
            for key, allocation in answer.allocations.items()
            for result in allocation.devices.results
        }
        return sum(
            place
            for claim in self._pending
            for request in claim.spec.devices.requests
            for place, alternative in enumerate(request.first_available)
            if (claim_key(claim), f"{request.name}/{alternative.name}") in given
        )

    def _allocate(self, node: str, shape: Shape | None) -> Outcome:
        if not self._pending:
            return Allocated(node, {})
        return allocate(self._cluster.inventory, self._cluster.classes, self._pending, node, self._options, shape)

    def _chosen(self, answer: Allocated) -> Chosen:
        by_key = {claim_key(claim): claim for claim in self._pending}
        allocations = {key: (by_key[key], result) for key, result in answer.allocations.items()}
        return Chosen(answer.node, self._claims, allocations)

    def _refused(self) -> Refused:
        total = len(self._cluster.nodes)
        ruled_out = total - sum(self._reasons.values())
        if ruled_out > 0 and self._pending:
            self._reasons[(CANNOT_ALLOCATE,)] += ruled_out
        causes = _DEVICE_CAUSES | Cause.NODE | Cause.POD_GONE
        return Refused(
            summary(total, self._reasons), causes, unallocated=tuple(self._pending), unused_claim=self._in_the_way
        )

    def _check_claims(self) -> Refused | None:
        """What keeps the pod from every node."""
        for claim in self._pending:
            if self._cluster.is_in_flight(claim):
                message = f'resourceclaim "{claim.metadata.name}" is being allocated for another pod'
                return Refused(message, Cause.CLAIM, quiet=True)
            for request in claim.spec.devices.requests:
                for asked in [request.exactly] if request.exactly is not None else request.first_available:
                    if asked is not None and asked.device_class_name not in self._cluster.classes:
                        message = f"request {request.name}: device class {asked.device_class_name} does not exist"
                        return Refused(f"{CANNOT_ALLOCATE}: {message}", Cause.CLASS | Cause.CLAIM)
        for claim in self._held:
            taint = self._untolerated(claim)
            if taint:
                message = f'resourceclaim "{claim.metadata.name}" has a device with an untolerated taint: {taint}'
                unused = claim if self._is_free(claim) else None
                return Refused(message, _DEVICE_CAUSES, unused_claim=unused)
            unready = find_unready(claim)
            if unready is not None:
                unused = claim if unready.has_failed and self._is_free(claim) else None
                return Refused(unready.message, Cause.CLAIM, "DevicesNotReady", unused_claim=unused)
        return None

    def _is_free(self, claim: ResourceClaim) -> bool:
        """Whether nobody uses a claim; that an earlier attempt reserved it for this pod does not count."""
        return all(one.uid == self._pod.pod.metadata.uid for one in claim.status.reserved_for)

    def _untolerated(self, claim: ResourceClaim) -> str:
        """A taint on an allocated device that the claim does not tolerate: no new pod may use it (5055-54)."""
        allocation = claim.status.allocation
        assert allocation is not None
        for result in allocation.devices.results:
            device_id = DeviceId(result.driver, result.pool, result.device)
            pool = self._cluster.tracker.pool(result.driver, result.pool)
            for device in pool.devices if pool is not None else ():
                if device.id != device_id:
                    continue
                for tracked in device.taints:
                    if not is_tolerated(result.tolerations, tracked.taint):
                        return f"{result.device} {tracked.taint.key}:{tracked.taint.effect}"
        return ""

    def _shape(self) -> Shape | None:
        """The problem that the pending claims pose; None if there are none, or if no node can be judged."""
        inventory = self._cluster.inventory
        if not self._pending or inventory.selector_fault() is not None:
            return None
        return inventory.shape(self._pending, self._cluster.classes)

    def _candidates(self, shape: Shape | None) -> Iterator[tuple[int | None, NodeInfo]]:
        """Nodes on which devices may be found, with their ranks; all nodes if there is nothing to be found."""
        nodes, inventory = self._cluster.nodes, self._cluster.inventory
        if shape is None:
            for each in nodes:
                yield None, each
            return
        for rank in inventory.candidate_nodes(shape):
            info = nodes.get(inventory.nodes.at(rank).name)
            if info is not None:
                yield rank, info

    def _reach(self, node: NodeInfo) -> tuple[str, ...]:
        """Whether the devices that claims hold already can be used on the node."""
        for claim in self._held:
            selector = claim.status.allocation.node_selector if claim.status.allocation else None
            try:
                if selector is None or matches(selector, node.node.metadata.name, node.node.metadata.labels):
                    continue
            except NodeSelectorError:
                pass
            if self._is_free(claim):
                self._in_the_way = claim
            return ("resourceclaim not available on the node",)
        return ()


_DEVICE_CAUSES = Cause.DEVICES | Cause.CLAIM | Cause.CLASS
