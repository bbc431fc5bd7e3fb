"""The cluster in one line: counts that events keep current, so that looking costs next to nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Protocol, runtime_checkable

import msgspec

from dray.api.generated.core import Node, Pod
from dray.api.registry import by_kind
from dray.api.resource import AllocationResult, ResourceClaim
from dray.api.resource.taint import EFFECT_NONE
from dray.reconcile.informers import Informers
from dray.tracker import DeviceId, PoolView

NODES = by_kind("v1", "Node")
PODS = by_kind("v1", "Pod")
CLAIMS = by_kind("resource.k8s.io/v1", "ResourceClaim")


class Totals(msgspec.Struct, frozen=True):
    """What there is. A device that is both held and tainted counts as both; one that is neither is free."""

    nodes: int = 0
    ready: int = 0
    devices: int = 0
    free: int = 0
    held: int = 0
    tainted: int = 0
    pods: int = 0
    pending: int = 0
    evictions: int = 0

    def __str__(self) -> str:
        waiting = f", {self.pending} pending" if self.pending else ""
        return (
            f"nodes {self.ready}/{self.nodes} ready · "
            f"devices {self.free} free, {self.held} held, {self.tainted} tainted · "
            f"pods {self.pods}{waiting} · evictions {self.evictions} pending"
        )


@runtime_checkable
class Evicting(Protocol):
    """A controller that evicts pods, and knows how many it still has to."""

    @property
    def pending_evictions(self) -> int:
        """How many pods are to be evicted."""
        ...


class Overview:
    """Follows nodes, pods and claims; pools and controllers are looked at when somebody asks."""

    def __init__(self, informers: Informers) -> None:
        self._nodes = informers.of(NODES, Node)
        self._pods = informers.of(PODS, Pod)
        self._ready: set[str] = set()
        self._pending: set[str] = set()
        self._held: Counter[DeviceId] = Counter()
        self._pools: dict[tuple[str, str], tuple[PoolView, frozenset[DeviceId]]] = {}
        self._nodes.on_change(self._on_node)
        self._pods.on_change(self._on_pod)
        informers.of(CLAIMS, ResourceClaim).on_change(self._on_claim)

    @property
    def held(self) -> Collection[DeviceId]:
        """The devices that claims hold."""
        return self._held.keys()

    def totals(self, pools: Mapping[tuple[str, str], PoolView], controllers: Iterable[object] = ()) -> Totals:
        """The counts now."""
        tainted = self._tainted(pools)
        devices = sum(len(view.devices) for view in pools.values())
        both = sum(1 for device in tainted if device in self._held)
        return Totals(
            nodes=len(self._nodes),
            ready=len(self._ready),
            devices=devices,
            free=max(devices - len(self._held) - len(tainted) + both, 0),
            held=len(self._held),
            tainted=len(tainted),
            pods=len(self._pods),
            pending=len(self._pending),
            evictions=sum(one.pending_evictions for one in controllers if isinstance(one, Evicting)),
        )

    def _tainted(self, pools: Mapping[tuple[str, str], PoolView]) -> list[DeviceId]:
        """Devices that take no new claims without a toleration. Only views that are new are looked through."""
        for key in [key for key in self._pools if key not in pools]:
            del self._pools[key]
        found: list[DeviceId] = []
        for key, view in pools.items():
            known = self._pools.get(key)
            if known is None or known[0] is not view:
                known = self._pools[key] = (view, _tainted_devices(view))
            found += known[1]
        return found

    def _on_node(self, old: Node | None, new: Node | None) -> None:
        if new is not None and any(one.type == "Ready" and one.status == "True" for one in new.status.conditions):
            self._ready.add(new.metadata.name)
        elif old is not None or new is not None:
            self._ready.discard((new or old).metadata.name)  # type: ignore[union-attr]  # one of the two is there

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None and not new.spec.node_name and new.status.phase == "Pending":
            self._pending.add(new.metadata.uid)
        elif self._pending and old is not None:
            self._pending.discard(old.metadata.uid)

    def _on_claim(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        before = old.status.allocation if old is not None else None
        after = new.status.allocation if new is not None else None
        if before == after:
            return
        for device in _devices(before):
            self._held[device] -= 1
            if not self._held[device]:
                del self._held[device]
        for device in _devices(after):
            self._held[device] += 1


def _devices(allocation: AllocationResult | None) -> list[DeviceId]:
    if allocation is None:
        return []
    return [
        DeviceId(result.driver, result.pool, result.device)
        for result in allocation.devices.results
        if not result.admin_access
    ]


def _tainted_devices(view: PoolView) -> frozenset[DeviceId]:
    return frozenset(
        device.id for device in view.devices if any(tracked.effect != EFFECT_NONE for tracked in device.taints)
    )
