"""The fleet of a running hub as input: clusters, sets, bindings, placements and their decisions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from dray.client import Client
    from dray.placement import FleetObject

GROUP: Final = "cluster.open-cluster-management.io"
KINDS: Final = (
    (f"{GROUP}/v1", "ManagedCluster"),
    (f"{GROUP}/v1beta2", "ManagedClusterSet"),
    (f"{GROUP}/v1beta2", "ManagedClusterSetBinding"),
    (f"{GROUP}/v1alpha1", "AddOnPlacementScore"),
    (f"{GROUP}/v1beta1", "PlacementDecision"),
    (f"{GROUP}/v1beta1", "Placement"),
)


async def load_fleet(client: Client) -> tuple[FleetObject, ...]:
    """Everything that placements depend on. Raises ApiError or OSError; 404 if the server is no hub."""
    from dray.api.registry import by_kind

    listed = await asyncio.gather(*(client.list(by_kind(*kind)) for kind in KINDS))
    return cast("tuple[FleetObject, ...]", tuple(obj for listing in listed for obj in listing.items))
