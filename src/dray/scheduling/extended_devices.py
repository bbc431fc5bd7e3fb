"""The devices of a pod that asks for extended resources: which of them are devices differs from node to node.

    nodes without a device plugin ─▶ the claim for all of them          ┐
    nodes with one for some       ─▶ a claim for the others             ├─▶ PodDevices for each kind of node
    nodes with one for all        ─▶ no claim beside those that it has  ┘

A claim that an earlier attempt left behind is used again where it asks for the same; elsewhere it is in the way.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator

from msgspec.structs import replace

from dray.allocator import Allocated, Options
from dray.api.extended_resources import is_extended_claim_of
from dray.api.generated.core import Pod, PodExtendedResourceClaimStatus
from dray.api.resource import AllocationResult, ResourceClaim
from dray.scheduling.cluster import Cluster
from dray.scheduling.devices import OUT_OF_REACH, PodDevices
from dray.scheduling.extended_claim import ExtendedClaim, claim_name, make_claim
from dray.scheduling.node_info import NodeInfo
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.reasons import ClaimDeleted, ClaimsUnjudgeable, NodeReason
from dray.scheduling.refusal import Refused

Lacking = tuple[str, ...]
"""The extended resources of a pod that are devices on a node."""


def look_for_devices(
    cluster: Cluster, pod: PodInfo, claims: tuple[ResourceClaim, ...], options: Options
) -> PodDevices | ExtendedDevices | None:
    """What a decision has to know of the devices of a pod; None if it needs none."""
    if pod.extended:
        pod = cluster.nodes.with_classes(pod)
        if pod.backed:
            return ExtendedDevices(cluster, pod, claims, options)
    return PodDevices(cluster, pod, claims, options) if claims else None


class ExtendedDevices:
    """What a decision knows of a pod's claims and of its extended resources, node by node. Changes nothing."""

    def __init__(self, cluster: Cluster, pod: PodInfo, claims: tuple[ResourceClaim, ...], options: Options) -> None:
        """The pod is one that knows its classes (`NodeTable.with_classes`)."""
        self._cluster = cluster
        self._pod = pod
        self._claims = claims
        self._options = options
        self._name, self._left_behind = _find_claim(cluster, pod.pod)
        self._with_plugins = cluster.nodes.with_plugins(pod.backed)
        self._kinds: dict[Lacking, PodDevices] = {}
        self._all = tuple(sorted(pod.backed))
        self._hinders = False
        self._refused: Refused | None = None
        self._main = self._devices(self._all)
        """What it needs on nodes without device plugins, which is where it needs most."""

    # Which nodes are alike

    def _lacking(self, node: NodeInfo) -> Lacking:
        if node.name not in self._with_plugins:
            return self._all
        return tuple(name for name in self._all if self._pod.are_devices(name, node.allocatable))

    def on(self, node: NodeInfo) -> PodDevices:
        """What the pod needs on a node."""
        return self._devices(self._lacking(node))

    def _devices(self, lacking: Lacking) -> PodDevices:
        known = self._kinds.get(lacking)
        if known is None:
            extended = self._claim(lacking) if lacking else None
            claims = self._claims if extended is None else (*self._claims, extended.claim)
            known = self._kinds[lacking] = PodDevices(self._cluster, self._pod, claims, self._options, extended)
            refused = known.refuse()
            if lacking == self._all:
                self._refused = refused
        return known

    def _claim(self, lacking: Lacking) -> ExtendedClaim:
        found = {name: self._cluster.nodes.classes.get(name) for name in lacking}
        classes = {name: one.metadata.name for name, one in found.items() if one is not None}
        made = make_claim(self._pod.pod, self._name, classes)
        return made if self._left_behind is None or not self._is_same(made) else replace(made, claim=self._left_behind)

    def _is_same(self, made: ExtendedClaim) -> bool:
        left = self._left_behind
        return left is None or left.spec.devices.requests == made.claim.spec.devices.requests

    def _is_hindered(self, devices: PodDevices) -> bool:
        """Whether a claim that was left behind asks for something else than is needed here."""
        return self._left_behind is not None and self._left_behind not in devices.claims

    # What a decision asks

    def refuse(self) -> Refused | None:
        """What keeps the pod from every node, if something does. To be asked first."""
        left = self._left_behind
        if left is not None and left.metadata.deletion_timestamp is not None:
            return Refused(ClaimDeleted(left.metadata.name))
        return self._refused

    @property
    def pending(self) -> list[ResourceClaim]:
        """The claims that have nothing yet, at most."""
        return self._main.pending

    @property
    def is_being_judged(self) -> bool:
        """Whether there is a node of which nothing can be said until selectors have been evaluated."""
        return any(one.is_being_judged for one in self._kinds.values())

    @property
    def is_being_searched(self) -> bool:
        """Whether there is a node on which devices are still being looked for."""
        return any(one.is_being_searched for one in self._kinds.values())

    @property
    def is_unfinished(self) -> bool:
        """Whether there is a node of which nothing can be said yet."""
        return self.is_being_judged or self.is_being_searched

    def must_pause(self, *, soon: bool = False) -> bool:
        """Whether it is somebody else's turn; if the decision is to go on `soon`, that is noted."""
        return self._main.must_pause(soon=soon)

    @property
    def in_the_way(self) -> tuple[ResourceClaim, ...]:
        """Claims that nobody uses and without which the pod could go to a node."""
        found = tuple(claim for one in self._kinds.values() for claim in one.in_the_way)
        return (*found, self._left_behind) if self._hinders and self._left_behind is not None else found

    def is_out_of_reach(self, node: NodeInfo) -> bool:
        """Whether what a claim has cannot be used on a node. If nobody uses the claim, it is in the way there."""
        return self.on(node).is_out_of_reach(node)

    @property
    def may_be_in_the_way(self) -> bool:
        """Whether nobody uses a claim that has devices, and no node was seen yet that is out of their reach."""
        return any(one.may_be_in_the_way for one in self._kinds.values())

    @property
    def has_alternatives(self) -> bool:
        """Whether what a claim gets may be better on one node than on another."""
        return self._main.has_alternatives

    def find_fault(self, refuses: Callable[[NodeInfo], object]) -> ClaimsUnjudgeable | None:
        """Whether a selector fails on a node that the pod could go to: then something is wrong with the class."""
        return self._main.find_fault(lambda node: node.name in self._with_plugins or refuses(node))

    def candidates(self, passed: Container[str] = ()) -> Iterator[NodeInfo]:
        """Nodes on which there may be devices or a device plugin; those that were `passed` already may be left out."""
        for node in self._main.candidates(passed):
            if node.name not in self._with_plugins:
                yield node
        for name in sorted(self._with_plugins):
            info = self._cluster.nodes.get(name)
            if info is not None:
                yield info

    def allocate(self, node: NodeInfo) -> Allocated | tuple[NodeReason, ...] | ClaimsUnjudgeable:
        """What the pod gets on a node, why it gets nothing there, or why nothing can be said at all."""
        devices = self.on(node)
        if self._is_hindered(devices):
            self._hinders = True
            return OUT_OF_REACH
        return devices.allocate(node)

    def concessions(self, node: NodeInfo, answer: Allocated) -> int:
        """How far down their lists of alternatives the claims had to go on a node."""
        return self.on(node).concessions(node, answer)

    def by_claim(self, node: NodeInfo, answer: Allocated) -> dict[str, tuple[ResourceClaim, AllocationResult]]:
        """What each claim that had nothing gets."""
        return self.on(node).by_claim(node, answer)

    def claims_on(self, node: NodeInfo) -> tuple[ResourceClaim, ...]:
        """The claims that the pod uses there."""
        return self.on(node).claims

    def extended_on(self, node: NodeInfo) -> PodExtendedResourceClaimStatus | None:
        """Which requests serve its extended resources there; None if device plugins do."""
        return self.on(node).extended_on(node)


def _find_claim(cluster: Cluster, pod: Pod) -> tuple[str, ResourceClaim | None]:
    """The name of the claim for a pod's extended resources, and the claim, if an attempt before left it behind."""
    told, namespace = pod.status.extended_resource_claim_status, pod.metadata.namespace
    if told is not None:
        found = cluster.find_claim(namespace, told.resource_claim_name)
        if found is not None and is_extended_claim_of(found, pod):
            return told.resource_claim_name, found
    attempt = 0
    while True:
        name = claim_name(pod, attempt)
        found = cluster.find_claim(namespace, name)
        if found is None or is_extended_claim_of(found, pod):
            return name, found
        attempt += 1
