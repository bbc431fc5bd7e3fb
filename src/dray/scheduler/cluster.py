"""Everything that a decision depends on, kept current by events: nodes, devices, classes, claims, what is in flight."""

from __future__ import annotations

from dray.allocator import Inventory, claim_key
from dray.api.generated.core import Node, Pod
from dray.api.resource import AllocationResult, DeviceClass, ResourceClaim
from dray.scheduler.node_info import NodeTable
from dray.scheduler.pod_info import PodInfo, read_pod
from dray.tracker import Event, Tracker


class Cluster:
    """The scheduler's view. An allocation counts from the moment it is decided (in flight), not when it is stored."""

    def __init__(self, *, taints: bool = True, taint_rules: bool = True, patches: bool = True) -> None:
        self.nodes = NodeTable()
        self.tracker = Tracker(taints=taints, taint_rules=taint_rules, patches=patches)
        self.inventory = Inventory()
        self.classes: dict[str, DeviceClass] = {}
        self.claims: dict[tuple[str, str], ResourceClaim] = {}
        self._in_flight: dict[str, str] = {}
        self._placed: dict[str, tuple[str, PodInfo]] = {}

    def set_node(self, old: Node | None, new: Node | None) -> None:
        """A node came, changed or went."""
        if new is not None:
            self.nodes.set(new)
            if old is None or old.metadata.labels != new.metadata.labels:
                self.inventory.set_node(new.metadata.name, new.metadata.labels)
        elif old is not None:
            self.nodes.remove(old.metadata.name)
            self.inventory.remove_node(old.metadata.name)

    def track(self, event: Event) -> bool:
        """A slice, patch, rule or class changed; True if devices changed by it (5027-31: after they are merged)."""
        changed = self.tracker.apply(event).pools
        self.inventory.apply_pools(self.tracker.pools.get(key, key) for key in changed)
        return bool(changed)

    def set_class(self, name: str, new: DeviceClass | None) -> None:
        """A device class changed."""
        if new is None:
            self.classes.pop(name, None)
        else:
            self.classes[name] = new

    def find_claim(self, namespace: str, name: str) -> ResourceClaim | None:
        """A claim as it is stored."""
        return self.claims.get((namespace, name))

    def set_claim(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        """A claim came, changed or went. What is in flight for it counts until the store says otherwise."""
        known = new if new is not None else old
        if known is None:
            return
        place = (known.metadata.namespace, known.metadata.name)
        key = claim_key(known)
        if new is None:
            self.claims.pop(place, None)
            self._in_flight.pop(key, None)
            self.inventory.release(key)
            return
        self.claims[place] = new
        flying = self._in_flight.get(key)
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
        return claim_key(claim) in self._in_flight

    def assume(self, pod: PodInfo, node: str, allocations: dict[str, tuple[ResourceClaim, AllocationResult]]) -> None:
        """A decision was made: nobody else gets these devices and this room."""
        for key, (claim, allocation) in allocations.items():
            self._in_flight[key] = claim.metadata.uid
            self.inventory.hold(key, allocation)
        self._place(pod, node)

    def take_back(self, pod: PodInfo, allocations: dict[str, tuple[ResourceClaim, AllocationResult]]) -> None:
        """A decision could not be stored; what is stored counts again."""
        for key, (claim, _) in allocations.items():
            if self._in_flight.pop(key, None) is None:
                continue
            stored = self.find_claim(claim.metadata.namespace, claim.metadata.name)
            if stored is not None and stored.status.allocation is not None:
                self.inventory.hold(key, stored.status.allocation)
            else:
                self.inventory.release(key)
        self._displace(pod.pod.metadata.uid)

    def set_pod(self, pod: Pod | None, uid: str) -> None:
        """A pod came, changed or went: it takes room on its node while it is there and not finished."""
        if pod is None or pod.status.phase in ("Succeeded", "Failed"):
            self._displace(uid)
        elif pod.spec.node_name and not self._is_placed(pod):
            self._place(read_pod(pod), pod.spec.node_name)

    def _is_placed(self, pod: Pod) -> bool:
        """Whether a pod has its room already, as one has that was placed here: its containers are the same ones."""
        node, known = self._placed.get(pod.metadata.uid, ("", None))
        return known is not None and node == pod.spec.node_name and known.pod.spec.containers is pod.spec.containers

    def _place(self, pod: PodInfo, node: str) -> None:
        uid = pod.pod.metadata.uid
        before, _ = self._placed.get(uid, (node, None))
        if before != node:
            self.nodes.displace(uid, before)
        self._placed[uid] = (node, pod)
        self.nodes.place(pod, node)

    def _displace(self, uid: str) -> None:
        node, _ = self._placed.pop(uid, ("", None))
        if node:
            self.nodes.displace(uid, node)
