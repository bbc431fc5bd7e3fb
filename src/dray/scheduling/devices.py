"""The claims of one pod in one decision: what they have, what they need, and what they get on a node."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator

from dray.allocator import (
    Allocated,
    BudgetExceeded,
    Failed,
    Options,
    Outcome,
    Undecided,
    Unsatisfiable,
    allocate,
    find_fault,
)
from dray.allocator.results import Refusal
from dray.allocator.shapes import Shape
from dray.api.generated.core import PodExtendedResourceClaimStatus
from dray.api.references import full_name
from dray.api.resource import AllocationResult, ResourceClaim
from dray.api.resource.allocated_node import allocated_node
from dray.api.resource.toleration import is_tolerated
from dray.scheduling.claims import find_claims, is_in_reach
from dray.scheduling.cluster import Cluster
from dray.scheduling.device_readiness import find_unready
from dray.scheduling.extended_claim import ExtendedClaim
from dray.scheduling.node_info import NodeInfo
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.reasons import (
    ClaimInFlight,
    ClaimOutOfReach,
    ClaimReason,
    ClaimsTooLarge,
    ClaimsUnjudgeable,
    ClaimTainted,
    ClassMissing,
    DeviceFailed,
    DevicesBeingSought,
    DevicesKept,
    DevicesLacking,
    NodeReason,
    SearchTimedOut,
    SelectorsRunning,
)
from dray.scheduling.refusal import Refused

LACKING = (DevicesLacking(),)
OUT_OF_REACH = (ClaimOutOfReach(),)
_KEPT = (DevicesKept(),)
_RUNNING = (SelectorsRunning(),)
_SEARCHING = (DevicesBeingSought(),)

MOST_ALTERNATIVES = 512
"""Requests, or alternatives of requests, of all claims of a pod: every device is looked at with all of them."""


class PodDevices:
    """What a decision knows of a pod's claims. Changes nothing in the cluster."""

    def __init__(
        self,
        cluster: Cluster,
        pod: PodInfo,
        claims: tuple[ResourceClaim, ...],
        options: Options,
        extended: ExtendedClaim | None = None,
    ) -> None:
        """`extended` says which of the claims, if any, stands for extended resources of the pod."""
        self.claims = claims
        self._extended = extended
        self.pending = [claim for claim in claims if claim.status.allocation is None]
        self._in_the_way: dict[str, ResourceClaim] = {}
        self.is_being_judged = False
        """Whether there is a node of which nothing can be said until selectors have been evaluated."""
        self.is_being_searched = False
        """Whether there is a node on which devices are still being looked for."""
        self._has_begun = False
        self._cluster = cluster
        self._pod = pod
        self._options = options
        self._held = [claim for claim in claims if claim.status.allocation is not None]
        self._shape: Shape | None = None

    def refuse(self) -> Refused | None:
        """What keeps the pod from every node, if something does. To be asked first."""
        for claim in self.pending:
            reason = self._check_pending(claim)
            if reason is not None:
                return Refused(reason)
        for claim in self._held:
            tainted = self._untolerated(claim)
            if tainted is not None:
                return Refused(tainted, unused_claims=(claim,) if self._is_free(claim) else ())
            # What was just decided for another pod of the group is not stored yet, and cannot be ready.
            unready = None if self._cluster.is_in_flight(claim) else find_unready(claim)
            if unready is not None:
                is_unused = isinstance(unready, DeviceFailed) and self._is_free(claim)
                return Refused(unready, unused_claims=(claim,) if is_unused else ())
        return self._pose()

    @property
    def in_the_way(self) -> tuple[ResourceClaim, ...]:
        """Claims that nobody uses and whose devices are out of reach of a node that the pod could go to."""
        return tuple(self._in_the_way.values())

    def _pose(self) -> Refused | None:
        """Finds the problem that the pending claims pose; there is none if nothing is pending or can be judged."""
        inventory = self._cluster.inventory
        asked = sum(len(request.first_available) or 1 for one in self.pending for request in one.spec.devices.requests)
        if asked > MOST_ALTERNATIVES:
            return Refused(ClaimsTooLarge(asked, MOST_ALTERNATIVES))
        if self.pending and inventory.selector_fault() is None:
            try:
                self._shape = inventory.shape(self.pending, self._cluster.classes)
            except Refusal as refusal:
                return Refused(ClaimsUnjudgeable(str(refusal)))
        return None

    def find_fault(self, refuses: Callable[[NodeInfo], object]) -> ClaimsUnjudgeable | None:
        """Whether a selector fails on a node that the pod could go to: then something is wrong with the claim."""
        if self._shape is None:
            return None
        nodes = self._cluster.nodes

        def suits(name: str) -> bool:
            info = nodes.get(name)
            return info is not None and not refuses(info) and self._out_of_reach(info) is None

        failed = find_fault(self._cluster.inventory, self._shape, self.pending, self._options, suits)
        return None if failed is None else ClaimsUnjudgeable(failed.error)

    def candidates(self, passed: Container[str] = ()) -> Iterator[NodeInfo]:
        """Nodes on which devices may be found; all nodes if there is nothing to be found, or no node can be judged.
        Those that were `passed` already may be left out."""
        nodes, inventory = self._cluster.nodes, self._cluster.inventory
        if self._shape is None:
            yield from nodes
            return
        name_at = inventory.nodes.name_at
        for rank in inventory.candidate_nodes(self._shape):
            name = name_at(rank)
            info = None if name in passed else nodes.get(name)
            if info is not None:
                yield info

    def allocate(self, node: NodeInfo) -> Allocated | tuple[NodeReason, ...] | ClaimsUnjudgeable:
        """What the pending claims get on a node, why they get nothing there, or why nothing can be said at all."""
        if self.is_out_of_reach(node):
            return OUT_OF_REACH
        nominations = self._cluster.nominations
        if self.pending and nominations and nominations.keep_devices(self._pod, node.name, self._has_devices):
            return _KEPT
        answer = self._ask(node.name)
        match answer:
            case Unsatisfiable():
                if self._shape is not None:  # for all pods with such claims, until something changes on the node
                    self._shape.rule_out(self._cluster.inventory.nodes.rank(node.name))
                return LACKING
            case BudgetExceeded():
                return (SearchTimedOut(node.name),)
            case Undecided(is_searching=is_searching):
                if is_searching:
                    self.is_being_searched = True
                    return _SEARCHING
                self.is_being_judged = True
                return _RUNNING
            case Failed(error=error):
                return ClaimsUnjudgeable(error)
        return answer

    def _has_devices(self, other: PodInfo) -> bool:
        """Whether all claims of another pod are allocated: it may wait for its node, but for no devices there."""
        pod = other.pod
        found = find_claims(pod, self._cluster.find_claim)
        claims = list(found.claims)
        if other.extended:
            told = pod.status.extended_resource_claim_status
            extended = self._cluster.find_claim(pod.metadata.namespace, told.resource_claim_name) if told else None
            if extended is None:
                return False
            claims.append(extended)
        return found.problem is None and all(claim.status.allocation is not None for claim in claims)

    def is_out_of_reach(self, node: NodeInfo) -> bool:
        """Whether what a claim has cannot be used on a node. If nobody uses the claim, it is in the way there."""
        unreachable = self._out_of_reach(node)
        if unreachable is not None and self._is_free(unreachable):
            self._in_the_way[full_name(unreachable)] = unreachable
        return unreachable is not None

    @property
    def may_be_in_the_way(self) -> bool:
        """Whether nobody uses a claim that has devices, and no node was seen yet that is out of their reach."""
        return any(full_name(claim) not in self._in_the_way and self._is_free(claim) for claim in self._held)

    @property
    def is_unfinished(self) -> bool:
        """Whether there is a node of which nothing can be said yet."""
        return self.is_being_judged or self.is_being_searched

    def must_pause(self, *, soon: bool = False) -> bool:
        """Whether it is somebody else's turn; if the decision is to go on `soon`, that is noted."""
        aside = self._options.aside
        if aside is None or not aside.is_time_up:
            return False
        if soon:
            self.is_being_searched = aside.cut_short()
        return True

    def claims_on(self, _node: NodeInfo) -> tuple[ResourceClaim, ...]:
        """The claims that the pod uses there."""
        return self.claims

    def extended_on(self, _node: NodeInfo) -> PodExtendedResourceClaimStatus | None:
        """Which requests serve the pod's extended resources there; None if it has none that are devices."""
        return self._extended.status if self._extended is not None else None

    def by_claim(self, _node: NodeInfo, answer: Allocated) -> dict[str, tuple[ResourceClaim, AllocationResult]]:
        """What each claim that had nothing gets."""
        by_key = {full_name(claim): claim for claim in self.pending}
        return {key: (by_key[key], result) for key, result in answer.allocations.items()}

    @property
    def has_alternatives(self) -> bool:
        """Whether a claim has a list of alternatives: what it gets may be better on one node than on another."""
        if self._shape is not None and self._shape.only is not None:
            return False
        return any(request.first_available for claim in self.pending for request in claim.spec.devices.requests)

    def concessions(self, _node: NodeInfo, answer: Allocated) -> int:
        """How far down their lists of alternatives the claims had to go on a node."""
        given = {
            (key, result.request)
            for key, allocation in answer.allocations.items()
            for result in allocation.devices.results
        }
        return sum(
            place
            for claim in self.pending
            for request in claim.spec.devices.requests
            for place, alternative in enumerate(request.first_available)
            if (full_name(claim), f"{request.name}/{alternative.name}") in given
        )

    def _ask(self, node: str) -> Outcome:
        if not self.pending:
            return Allocated(node, {})
        cluster = self._cluster
        if not self._has_begun and self._options.aside is not None:
            self._has_begun = True
            self._options.aside.begin()
        return allocate(cluster.inventory, cluster.classes, self.pending, node, self._options, shape=self._shape)

    def _check_pending(self, claim: ResourceClaim) -> ClaimReason | None:
        if self._cluster.is_in_flight(claim):
            return ClaimInFlight(claim.metadata.name)
        for request in claim.spec.devices.requests:
            for asked in [request.exactly] if request.exactly is not None else request.first_available:
                if asked is not None and asked.device_class_name not in self._cluster.classes:
                    return ClassMissing(request.name, asked.device_class_name)
        return None

    def _is_free(self, claim: ResourceClaim) -> bool:
        """Whether nobody uses a claim; that an earlier attempt reserved it for this pod does not count."""
        return all(one.uid == self._pod.pod.metadata.uid for one in claim.status.reserved_for)

    def _untolerated(self, claim: ResourceClaim) -> ClaimTainted | None:
        """A taint on an allocated device that the claim does not tolerate."""
        allocation = claim.status.allocation
        assert allocation is not None
        node = allocated_node(allocation)
        for result in allocation.devices.results:
            pool = self._cluster.tracker.pool(result.driver, result.pool)
            part = pool.for_node(node) if pool is not None else None
            for device in part.devices if part is not None else ():
                # Another node may have a device of the same name.
                if device.id.device != result.device or (node and device.access.node_name not in (None, node)):
                    continue
                for tracked in device.taints:
                    if not is_tolerated(result.tolerations, tracked.taint):
                        taint = tracked.taint
                        return ClaimTainted(claim.metadata.name, result.device, taint.key, taint.effect)
        return None

    def _out_of_reach(self, node: NodeInfo) -> ResourceClaim | None:
        """A claim whose devices cannot be used on the node."""
        for claim in self._held:
            if not is_in_reach(claim, node.name, node.node.metadata.labels):
                return claim
        return None
