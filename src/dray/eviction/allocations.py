"""Who uses what: from devices to the claims that hold them, and from claims to the pods that they are reserved for."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Generic, TypeVar

from dray.api.conditions import DISRUPTION_TARGET, is_true
from dray.api.generated.core import Pod
from dray.api.pod_claims import uses_devices
from dray.api.references import ObjectName, ObjectRef
from dray.api.resource import ResourceClaim
from dray.api.resource.allocated_node import allocated_node
from dray.api.resource.pool import PoolKey
from dray.eviction.group_members import GroupMembers
from dray.eviction.guard import Base
from dray.eviction.node_counts import NodeCounts
from dray.eviction.pods import can_be_evicted
from dray.tracker import DeviceId

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Hashable)


class _Groups(Generic[K, V]):
    """Values by key, each once, in the order in which they came."""

    def __init__(self) -> None:
        self._groups: dict[K, dict[V, None]] = {}

    def __contains__(self, key: K) -> bool:
        return key in self._groups

    def __len__(self) -> int:
        return len(self._groups)

    def get(self, key: K) -> tuple[V, ...]:
        return tuple(self._groups.get(key, ()))

    def add(self, key: K, value: V) -> None:
        self._groups.setdefault(key, {})[value] = None

    def discard(self, key: K, value: V) -> None:
        group = self._groups.get(key)
        if group is not None:
            group.pop(value, None)
            if not group:
                del self._groups[key]

    def move(self, value: V, before: Collection[K], after: Collection[K]) -> None:
        for key in before:
            if key not in after:
                self.discard(key, value)
        for key in after:
            if key not in before:
                self.add(key, value)


class Allocations:
    """Claims that are allocated and pods that can be evicted, with indexes that are kept up to date."""

    def __init__(self) -> None:
        self._claims: dict[ObjectName, ResourceClaim] = {}
        self._by_device: _Groups[DeviceId, ObjectName] = _Groups()
        self._by_pool: _Groups[PoolKey, DeviceId] = _Groups()
        self._by_pod: _Groups[str, ObjectName] = _Groups()
        self._pods: dict[str, ObjectRef] = {}
        self.members = GroupMembers()
        self._on_nodes = NodeCounts()
        """The pods that can be evicted and use devices."""

    @property
    def claims(self) -> Mapping[ObjectName, ResourceClaim]:
        """The claims that are allocated."""
        return self._claims

    @property
    def consumers(self) -> int:
        """How many pods use claims that are allocated; one that also shares some with its group counts twice."""
        return len(self._by_pod) + self.members.sharers

    @property
    def base(self) -> Base:
        """What a limit of evictions is a share of."""
        return Base(self.consumers, self._on_nodes.fullest)

    def devices(self, key: ObjectName) -> Iterator[DeviceId]:
        """The devices that are allocated to a claim."""
        return iter(devices_of(self._claims.get(key)))

    def put_claim(
        self, key: ObjectName, before: ResourceClaim | None, after: ResourceClaim | None
    ) -> Collection[DeviceId]:
        """Notes how a claim was and is; None where it is not allocated. Returns the devices that it had or has."""
        self._claims.pop(key, None)
        if after is not None:
            self._claims[key] = after
        had, has = devices_of(before), devices_of(after)
        self._by_device.move(key, had, has)
        either = dict.fromkeys((*had, *has))
        for device in either:
            note = self._by_pool.add if device in self._by_device else self._by_pool.discard
            note((device.driver, device.pool), device)
        self._by_pod.move(key, consumers_of(before), consumers_of(after))
        self.members.put_claim(key, before, after)
        return either

    def reached(self, *claims: ResourceClaim | None) -> Iterable[str]:
        """The uids of those who have to leave if one of the claims has to be left."""
        return dict.fromkeys(chain.from_iterable(map(self._reached, claims)))

    def _reached(self, claim: ResourceClaim | None) -> Iterator[str]:
        """The uids of those who have to leave if the claim has to be left: its users, and who leaves with them."""
        if claim is None:
            return
        for uid in consumers_of(claim):
            yield uid
            yield from self.members.companions(uid)
        yield from self.members.reached(claim)

    def put_pod(self, pod: Pod, *, is_gone: bool = False) -> ObjectRef | None:
        """Notes a pod, or that it is gone. Returns the reference if it can be evicted.

        One that was evicted stays a member of its group until it is gone: what it leaves for, the others leave for,
        also after a restart.
        """
        ref = ObjectRef.of(pod)
        if is_gone or not can_be_evicted(pod):
            self._pods.pop(ref.uid, None)
            self._on_nodes.drop(ref.uid)
            is_leaving = pod.metadata.deletion_timestamp is not None and not is_gone
            if is_leaving and is_true(pod.status.conditions, DISRUPTION_TARGET):
                self.members.put_pod(pod)
            else:
                self.members.drop_pod(ref.uid)
            return None
        self._pods[ref.uid] = ref
        self.members.put_pod(pod)
        if uses_devices(pod):
            self._on_nodes.put(ref.uid, pod.spec.node_name)
        return ref

    def pod(self, uid: str) -> ObjectRef | None:
        """The pod with this uid, if it can be evicted."""
        return self._pods.get(uid)

    def users(self, key: ObjectName) -> Iterator[ObjectRef]:
        """The pods that can be evicted and that a claim is reserved for, with those that leave with them."""
        for uid in self.reached(self._claims.get(key)):
            pod = self._pods.get(uid)
            if pod is not None:
                yield pod

    def holders(self, device: DeviceId) -> tuple[ObjectName, ...]:
        """The claims that a device is allocated to: several if they share it."""
        return self._by_device.get(device)

    def nodes(self, keys: Iterable[ObjectName]) -> set[str]:
        """The nodes that claims are allocated for; empty for a claim that can be used on several."""
        return {allocated_node(self._claims[key].status.allocation) for key in keys}

    def used_by(self, uid: str) -> tuple[ObjectName, ...]:
        """The claims that are reserved for a pod, or for whom it leaves with."""
        companions = self.members.companions(uid)
        shared = tuple(self.members.shared_claims(uid))
        if not companions and not shared:
            return self._by_pod.get(uid)
        own = [self._by_pod.get(each) for each in (uid, *companions)]
        return tuple(dict.fromkeys((*chain.from_iterable(own), *(key for key in shared if key in self._claims))))

    def held_in(self, pool: PoolKey) -> tuple[DeviceId, ...]:
        """The devices of a pool that are allocated."""
        return self._by_pool.get(pool)


def devices_of(claim: ResourceClaim | None) -> Collection[DeviceId]:
    """The devices that are allocated to a claim."""
    if claim is None or claim.status.allocation is None:
        return ()
    return [DeviceId(result.driver, result.pool, result.device) for result in claim.status.allocation.devices.results]


def consumers_of(claim: ResourceClaim | None) -> Collection[str]:
    """The uids of the pods that an allocated claim is reserved for."""
    if claim is None or claim.status.allocation is None:
        return ()
    return [user.uid for user in claim.status.reserved_for if user.resource == "pods" and not user.api_group]
