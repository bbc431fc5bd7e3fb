"""Pods taken off their nodes for a while, to see who would fit without them."""

from __future__ import annotations

from dray.api.pod_groups import is_group
from dray.api.references import ObjectName, full_name
from dray.api.resource import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from dray.scheduling.cluster import Cluster
from dray.scheduling.pod_info import PodInfo


class Absence:
    """Takes pods off nodes, with the devices that only they hold, and puts back in the end who is not back yet."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._away: dict[str, tuple[PodInfo, str]] = {}
        self._freed: dict[str, AllocationResult] = {}

    def __enter__(self) -> Absence:
        return self

    def __exit__(self, *_: object) -> None:
        for one, _node in list(self._away.values()):
            self.put_back(one)

    def remove(self, pod: PodInfo, node: str) -> None:
        """A pod goes."""
        uid = pod.pod.metadata.uid
        self._away[uid] = (pod, node)
        self._cluster.nodes.displace(uid, node)
        for name in pod.claims:
            claim = self._cluster.claims.get(name)
            allocation = claim.status.allocation if claim is not None else None
            if claim is None or allocation is None:
                continue
            if all(self._is_away(claim, user) for user in claim.status.reserved_for):
                self._freed[full_name(claim)] = allocation
                self._cluster.inventory.release(full_name(claim))

    def put_back(self, pod: PodInfo) -> None:
        """A pod need not go after all; one that has gone meanwhile does not come back."""
        uid = pod.pod.metadata.uid
        _, node = self._away.pop(uid)
        known = self._cluster.placed(uid)
        if known is not None and self._cluster.node_of(uid) == node:
            self._cluster.nodes.place(known, node)  # as it is now
        for name in pod.claims:
            claim = self._cluster.claims.get(name)
            freed = self._freed.pop(full_name(claim), None) if claim is not None else None
            if claim is not None and freed is not None and claim.status.allocation == freed:
                self._cluster.inventory.hold(full_name(claim), freed)

    def _is_away(self, claim: ResourceClaim, user: ResourceClaimConsumerReference) -> bool:
        if not is_group(user):
            return user.uid in self._away
        name = ObjectName(claim.metadata.namespace, user.name)
        return all(uid in self._away for uid in self._cluster.groups.members(name) if self._cluster.node_of(uid))
