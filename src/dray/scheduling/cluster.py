"""Everything that a decision depends on, kept current by events: nodes, devices, classes, claims, what is in flight."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

from msgspec.structs import replace

from dray import cel
from dray.allocator import Inventory
from dray.api.generated.core import Node, Pod
from dray.api.meta import ObjectMeta
from dray.api.pod_groups import min_count
from dray.api.pods import is_finished
from dray.api.references import ObjectName, full_name
from dray.api.resource import AllocationResult, DeviceClass, ResourceClaim
from dray.api.resource.pool import PoolKey
from dray.scheduling.budgets import Budgets
from dray.scheduling.claims import PodClaims, find_claims
from dray.scheduling.groups import Groups
from dray.scheduling.node_table import NodeTable
from dray.scheduling.nominations import Nominations
from dray.scheduling.pod_info import PodInfo, read_pod
from dray.scheduling.rankings import Rankings
from dray.scheduling.volumes import Volumes
from dray.scheduling.walks import Walks
from dray.tracker import Change, Event, Tracker

_NOT_MADE: Final = ""
"""In place of the uid of a claim that is in flight and that its scheduler is about to make."""


class Cluster:
    """The scheduler's view. An allocation counts from the moment it is decided (in flight), not when it is stored."""

    def __init__(
        self,
        *,
        taints: bool = True,
        taint_rules: bool = True,
        patches: bool = True,
        claims: bool = True,
        extended: bool = True,
        backlog: cel.Backlog | None = None,
        at_once: int | None = None,
    ) -> None:
        """With a backlog, selectors that take long are left to it, and decisions are put off that depend on them.

        With `at_once`, a change of rules, patches or classes takes effect on so many devices, and with calls of `go_on`
        on the others.

        Without `claims`, those of pods are not looked at: a node refuses such pods if it does look (4381-215).
        Without `extended`, no extended resource is made of devices.
        """
        self._uses_claims = claims
        self._uses_extended = claims and extended
        self.nodes = NodeTable()
        self.tracker = Tracker(
            taints=taints, taint_rules=taint_rules, patches=patches, backlog=backlog, at_once=at_once
        )
        self.inventory = Inventory(backlog)
        self.classes: dict[str, DeviceClass] = {}
        self.claims: dict[ObjectName, ResourceClaim] = {}
        self.budgets = Budgets()
        self.nominations = Nominations()
        self.groups = Groups()
        self.walks = Walks(self.nodes)
        self.rankings = Rankings(self.nodes)
        self._supposed: dict[str, AllocationResult] = {}
        self._leaving: set[str] = set()
        self._priorities: dict[int, int] = {}
        self._in_flight: dict[str, str] = {}
        self._placed: dict[str, tuple[str, PodInfo]] = {}
        self._assumed: set[str] = set()
        """Uids of those that are placed because it was decided, and not because it is stored."""

    def set_node(self, old: Node | None, new: Node | None) -> None:
        """A node came, changed or went."""
        if new is not None:
            self.nodes.set(new)
            if old is None or old.metadata.labels != new.metadata.labels:
                self.inventory.set_node(new.metadata.name, new.metadata.labels)
        elif old is not None:
            self.forget_node(old.metadata.name)

    def mention_node(self, name: str) -> None:
        """A node is spoken of and nothing else is known of it: every pod has room there."""
        self.nodes.set(Node(metadata=ObjectMeta(name=name)), is_known=False)
        self.inventory.set_node(name, {})

    def forget_node(self, name: str) -> None:
        """Nobody speaks of a node any more."""
        self.nodes.remove(name)
        self.inventory.remove_node(name)

    def track(self, *events: Event) -> Set[PoolKey]:
        """Slices, patches, rules or classes changed; the pools that did by it (5027-31: after they are merged)."""
        return self._take_in(self.tracker.apply_all(events))

    @property
    def is_behind(self) -> bool:
        """Whether devices look as they did before a change of rules, patches or classes."""
        return self.tracker.is_behind

    def go_on(self) -> Set[PoolKey]:
        """Brings some of the devices up to date that are behind; the pools that look different by it."""
        return self._take_in(self.tracker.go_on()) if self.is_behind else frozenset()

    def resume(self) -> Set[PoolKey]:
        """Selectors of rules or patches were evaluated; the pools that look different by it."""
        if self.tracker.is_complete:
            return frozenset()
        return self._take_in(self.tracker.resume())

    def _take_in(self, change: Change) -> Set[PoolKey]:
        self.inventory.apply_pools(self.tracker.pools.get(key, key) for key in sorted(change.pools))
        return change.pools

    @property
    def volumes(self) -> Volumes:
        """Volumes, claims for them and their classes."""
        return self.nodes.volumes

    def set_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """A namespace came, changed or went (None)."""
        self.nodes.topology.set_namespace(name, labels)

    def speaks_of(self, pod: PodInfo, other: Pod) -> bool:
        """Whether what a pod requires of others is about another pod."""
        meta, namespaces = other.metadata, self.nodes.topology.namespaces
        return pod.terms is not None and any(
            selection.matches(meta.namespace, meta.labels, namespaces) for selection in pod.terms.selections()
        )

    def set_class(self, name: str, new: DeviceClass | None) -> None:
        """A device class changed."""
        if self._uses_extended:
            self.nodes.classes.set(name, new)
        if new is None:
            self.classes.pop(name, None)
        else:
            self.classes[name] = new

    def claims_of(self, pod: Pod) -> PodClaims:
        """The claims that a pod names, or why it cannot use them."""
        return find_claims(pod, self.find_claim) if self._uses_claims else PodClaims()

    def find_claim(self, namespace: str, name: str) -> ResourceClaim | None:
        """A claim as it is stored, or as it would be with what is supposed."""
        claim = self.claims.get(ObjectName(namespace, name))
        if self._supposed and claim is not None and claim.status.allocation is None:
            allocation = self._supposed.get(full_name(claim))
            if allocation is not None:
                return replace(claim, status=replace(claim.status, allocation=allocation))
        return claim

    def suppose(self, claim: str, allocation: AllocationResult | None) -> None:
        """Lets a claim have devices, or none again, while a group is decided on: its other pods may use them, too."""
        if allocation is None:
            self._supposed.pop(claim, None)
        else:
            self._supposed[claim] = allocation

    def set_claim(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        """A claim came, changed or went. What is in flight for it counts until the store says otherwise."""
        known = new if new is not None else old
        if known is None:
            return
        place = ObjectName.of(known)
        key = full_name(known)
        flying = self._in_flight.get(key)
        if new is None:
            self.claims.pop(place, None)
            if flying != _NOT_MADE:
                self._in_flight.pop(key, None)
                self.inventory.release(key)
            return
        self.claims[place] = new
        if flying == _NOT_MADE:
            flying = self._in_flight[key] = new.metadata.uid
        if flying is not None and flying != new.metadata.uid:
            self._in_flight.pop(key)  # deleted and made anew while in flight
            flying = None
        if new.status.allocation is not None:
            self._in_flight.pop(key, None)
            self.inventory.hold(key, new.status.allocation)
        elif flying is None:
            self.inventory.release(key)

    def is_in_flight(self, claim: ResourceClaim) -> bool:
        """Whether an allocation of the claim was decided and is not stored yet."""
        return full_name(claim) in self._in_flight

    def assume(self, pod: PodInfo, node: str, allocations: dict[str, tuple[ResourceClaim, AllocationResult]]) -> None:
        """A decision was made: nobody else gets these devices and this room."""
        for key, (claim, allocation) in allocations.items():
            self._in_flight[key] = claim.metadata.uid
            self.inventory.hold(key, allocation)
        self.nominations.drop(pod.pod.metadata.uid)
        self._assumed.add(pod.pod.metadata.uid)
        self._place(pod, node)

    def take_back(self, pod: PodInfo, allocations: dict[str, tuple[ResourceClaim, AllocationResult]]) -> None:
        """A decision could not be stored, or nobody knows whether it is; what is stored counts again."""
        for key, (claim, _) in allocations.items():
            if self._in_flight.pop(key, None) is None:
                continue
            stored = self.claims.get(ObjectName.of(claim))
            if stored is not None and stored.status.allocation is not None:
                self.inventory.hold(key, stored.status.allocation)
            else:
                self.inventory.release(key)
        if pod.pod.metadata.uid in self._assumed:  # else the pod has a node: the answer was lost, or another was faster
            self._displace(pod.pod.metadata.uid)

    def set_pod(self, pod: Pod | None, uid: str) -> None:
        """A pod came, changed or went: it takes room on its node while it is there and not finished."""
        self.groups.set_pod(pod, uid)
        if uid in self._placed:
            self.groups.note_place(uid, has_node=True)
        if pod is None or pod.spec.node_name:
            self.nominations.drop(uid)
        if pod is None or is_finished(pod):
            self._displace(uid)
        elif pod.spec.node_name:
            self._assumed.discard(uid)
            if not self._is_placed(pod):
                self._place(read_pod(pod), pod.spec.node_name)

    def node_of(self, uid: str) -> str:
        """The node that a pod has, or is about to; empty if it has none."""
        return self._placed[uid][0] if uid in self._placed else ""

    def placed(self, uid: str) -> PodInfo | None:
        """A pod that has a node, or is about to."""
        return self._placed[uid][1] if uid in self._placed else None

    def nodes_of_group(self, name: ObjectName) -> list[str]:
        """The nodes of the pods of a group that have one, or are about to; a node for each pod."""
        return [self._placed[uid][0] for uid in self.groups.members(name) if uid in self._placed]

    def is_half_placed(self, pod: PodInfo) -> bool:
        """Whether some pods of a pod's group have nodes, but fewer than it needs: the others should come first."""
        group = self.groups.get(pod.group)
        if pod.group is None or group is None:
            return False
        return 0 < self.groups.number_placed(pod.group) < min_count(group)

    def _is_placed(self, pod: Pod) -> bool:
        """Whether a pod has its room already, as one has that was placed here: what counts of it is the same."""
        node, known = self._placed.get(pod.metadata.uid, ("", None))
        if known is None or node != pod.spec.node_name or known.pod.spec.containers is not pod.spec.containers:
            return False
        before, meta = known.pod.metadata, pod.metadata
        if known.pod.status.start_time != pod.status.start_time:
            return False
        if known.pod.status.extended_resource_claim_status != pod.status.extended_resource_claim_status:
            return False
        return (before.deletion_timestamp is None) == (meta.deletion_timestamp is None) and before.labels == meta.labels

    def _place(self, pod: PodInfo, node: str) -> None:
        uid = pod.pod.metadata.uid
        before, known = self._placed.get(uid, (node, None))
        if before != node:
            self.nodes.displace(uid, before)
        if known is not None:
            self._count(known, -1)
        self._count(pod, 1)
        self._placed[uid] = (node, pod)
        self.groups.note_place(uid, has_node=True)
        self.nodes.place(pod, node)

    def _displace(self, uid: str) -> None:
        node, known = self._placed.pop(uid, ("", None))
        self.groups.note_place(uid, has_node=False)
        self._leaving.discard(uid)
        self._assumed.discard(uid)
        if known is not None:
            self._count(known, -1)
            self.nodes.displace(uid, node)

    def _count(self, pod: PodInfo, step: int) -> None:
        priority = pod.pod.spec.priority or 0
        self._priorities[priority] = self._priorities.get(priority, 0) + step
        if not self._priorities[priority]:
            del self._priorities[priority]

    # Who makes room for whom

    def has_below(self, priority: int) -> bool:
        """Whether a pod of lower priority is on a node."""
        return any(each < priority for each in self._priorities)

    def send_away(self, pod: PodInfo) -> None:
        """A pod is being deleted, or about to be."""
        self._leaving.add(pod.pod.metadata.uid)

    def keep(self, pod: PodInfo) -> None:
        """A pod could not be deleted after all."""
        self._leaving.discard(pod.pod.metadata.uid)

    def is_leaving(self, pod: PodInfo) -> bool:
        """Whether a pod on a node is going to be gone soon."""
        meta = pod.pod.metadata
        return meta.deletion_timestamp is not None or meta.uid in self._leaving
