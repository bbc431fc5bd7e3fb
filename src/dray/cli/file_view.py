"""A cluster in files, looked at as `dray get` looks at a running one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from dray.api.generated.core import Namespace, Node, Pod
from dray.api.generated.policy import PodDisruptionBudget
from dray.api.meta import Object
from dray.api.references import full_name
from dray.api.resource import ResourceClaim
from dray.eviction.stop import PLACE
from dray.scheduling.device_states import DeviceState
from dray.snapshot import Snapshot
from dray.tracker import PoolView

T = TypeVar("T", bound=Object)


class FileView:
    """What is in files."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def devices(self, node: str = "") -> Iterator[DeviceState]:
        """All devices, by driver, pool and position; or those in reach of a node."""
        return self._snapshot.device_states(node or None)

    def pools(self) -> list[PoolView]:
        """Every pool, also those that cannot be used; of a pool in parts, each part."""
        return list(self._snapshot.pools())

    def claims(self) -> list[ResourceClaim]:
        """All claims by place."""
        return self._in_order(ResourceClaim)

    def nodes(self) -> list[Node]:
        """All nodes by name."""
        return self._in_order(Node)

    @property
    def mentioned_nodes(self) -> list[str]:
        """Nodes that count as there though no Node says so, because the files leave nodes out."""
        told = {node.metadata.name for node in self.nodes()}
        return [name for name in self._snapshot.nodes() if name not in told]

    def pods(self) -> list[Pod]:
        """All pods by place."""
        return self._in_order(Pod)

    def budgets(self) -> list[PodDisruptionBudget]:
        """All disruption budgets by place."""
        return self._in_order(PodDisruptionBudget)

    def place_of_stop(self) -> Namespace | None:
        """The namespace that says whether evictions are stopped."""
        return next((one for one in self._in_order(Namespace) if one.metadata.name == PLACE), None)

    def _in_order(self, kind: type[T]) -> list[T]:
        return sorted(self._snapshot.objects(kind), key=full_name)
