"""The cluster in one line: counts that events keep current; devices are counted when somebody wants to know."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

import msgspec

from dray.api.generated.core import Node, Pod
from dray.api.kinds import NODES, PODS
from dray.api.nodes import is_ready
from dray.live.counted_devices import CountedDevices
from dray.reconcile.informers import Informers
from dray.scheduling.cluster import Cluster


class Totals(msgspec.Struct, frozen=True):
    """What there is. A device counts for everything that it is, as in `scheduling.device_states`."""

    nodes: int = 0
    ready: int = 0
    devices: int = 0
    free: int = 0
    held: int = 0
    tainted: int = 0
    blocked: int = 0
    pods: int = 0
    pending: int = 0
    evictions: int = 0

    def __str__(self) -> str:
        waiting = f", {self.pending} pending" if self.pending else ""
        blocked = f", {self.blocked} blocked" if self.blocked else ""
        return (
            f"nodes {self.ready}/{self.nodes} ready · "
            f"devices {self.free} free, {self.held} held, {self.tainted} tainted{blocked} · "
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
    """Follows nodes and pods; `look` counts devices, and controllers are looked at when somebody asks."""

    def __init__(self, informers: Informers, devices: CountedDevices) -> None:
        self._nodes = informers.of(NODES, Node)
        self._pods = informers.of(PODS, Pod)
        self._ready: set[str] = set()
        self._pending: set[str] = set()
        self._devices = devices
        self._nodes.on_change(self._on_node)
        self._pods.on_change(self._on_pod)

    async def look(self, cluster: Cluster) -> None:
        """Counts the devices; `cluster` is the scheduler's."""
        await self._devices.look(cluster)

    def totals(self, controllers: Iterable[object] = ()) -> Totals:
        """The counts now; of devices, as of the last `look`."""
        count = self._devices.total
        return Totals(
            nodes=len(self._nodes),
            ready=len(self._ready),
            devices=count("all"),
            free=count("free"),
            held=count("held"),
            tainted=count("tainted"),
            blocked=count("blocked"),
            pods=len(self._pods),
            pending=len(self._pending),
            evictions=sum(one.pending_evictions for one in controllers if isinstance(one, Evicting)),
        )

    def _on_node(self, old: Node | None, new: Node | None) -> None:
        if new is not None and is_ready(new):
            self._ready.add(new.metadata.name)
        elif old is not None or new is not None:
            self._ready.discard((new or old).metadata.name)  # type: ignore[union-attr]  # one of the two is there

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None and not new.spec.node_name and new.status.phase == "Pending":
            self._pending.add(new.metadata.uid)
        elif self._pending and old is not None:
            self._pending.discard(old.metadata.uid)
