"""A cluster as people look at it, live: devices as the scheduler sees them, with their state; claims; nodes.

Works through any client, so it shows a real Kubernetes cluster as well. What a server does not serve (older ones know
no taint rules, only dray knows patches) is taken as not there; what we may not read is left out, and named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from dray.api.generated.core import Namespace, Node, Pod
from dray.api.generated.policy import PodDisruptionBudget
from dray.api.kinds import BUDGETS, CLAIMS, NAMESPACES, NODES, PODS, SLICES, TRACKED
from dray.api.registry import Kind
from dray.api.resource import ResourceClaim
from dray.client import Client
from dray.client.calls import list_if_allowed
from dray.eviction.stop import PLACE
from dray.live.following import Following
from dray.reconcile import Clock
from dray.scheduling.cluster import Cluster
from dray.scheduling.device_states import DeviceState, DeviceStates, in_reach
from dray.tracker import PoolView, Remove, Upsert

NEEDED: Final = (SLICES, CLAIMS, NODES, PODS)
"""Without these nobody can tell which devices are free."""
ALL: Final = (*TRACKED, CLAIMS, NODES, PODS)


class LiveView(Following):
    """Fed by informers."""

    def __init__(self, client: Client, clock: Clock) -> None:
        super().__init__(client, clock)
        self.cluster: Final = Cluster()
        """What is known of devices, claims and nodes, as the scheduler would know it."""
        self.left_out: Final[list[Kind]] = []
        self._states = DeviceStates()

    async def start(self, kinds: Sequence[Kind] = ALL, namespace: str = "") -> None:
        """Everything has been read once, and is kept current; claims and pods of a namespace, if one is given.

        Raises ApiError or OSError if what is needed cannot be read. Of the rest, what we may not read is in `left_out`.
        """
        for kind in kinds:
            place = namespace if kind.namespaced else ""
            if kind not in NEEDED and await list_if_allowed(self._client, kind, self.left_out, place) is None:
                continue
            informer = self.follow(kind, place)
            if kind in TRACKED:
                informer.on_change(self._on_tracked)
            elif kind is CLAIMS:
                informer.on_change(self.cluster.set_claim)
            elif kind is NODES:
                informer.on_change(self.cluster.set_node)
        await self.run_all()

    def devices(self, node: str = "") -> Iterator[DeviceState]:
        """All devices, by driver, pool and position; or those in reach of a node."""
        found = self._states.devices(self.cluster)
        return in_reach(found, node, self.cluster) if node else found

    def pools(self) -> list[PoolView]:
        """Every pool, also those that cannot be used; of a pool in parts, each part."""
        return [part for view in self.cluster.tracker.pools.values() for part in view.each()]

    def claims(self) -> list[ResourceClaim]:
        """All claims by place."""
        return self.in_order(CLAIMS)

    def nodes(self) -> list[Node]:
        """All nodes by name."""
        return self.in_order(NODES)

    @property
    def mentioned_nodes(self) -> list[str]:
        """None: a running cluster says which nodes there are."""
        return []

    def pods(self) -> list[Pod]:
        """All pods by place."""
        return self.in_order(PODS)

    def budgets(self) -> list[PodDisruptionBudget]:
        """All disruption budgets by place; none unless they were asked for."""
        return self.in_order(BUDGETS)

    def place_of_stop(self) -> Namespace | None:
        """The namespace that says whether evictions are stopped; none unless namespaces were asked for."""
        return next((one for one in self.in_order(NAMESPACES) if one.metadata.name == PLACE), None)

    def _on_tracked(self, old: Any, new: Any) -> None:
        self.cluster.track(Upsert(new) if new is not None else Remove.of(old))
