"""The fleet of a running hub as input: clusters, sets, bindings, placements and their decisions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from dray.client import Client
    from dray.placement import FleetObject


async def load_fleet(client: Client) -> tuple[FleetObject, ...]:
    """Everything that placements depend on. Raises ApiError or OSError; 404 if the server is no hub."""
    from dray.api import kinds

    of_fleets = (kinds.CLUSTERS, kinds.CLUSTER_SETS, kinds.CLUSTER_SET_BINDINGS, kinds.ADD_ON_SCORES)
    of_placements = (kinds.DECISIONS, kinds.PLACEMENTS)
    listed = await asyncio.gather(*(client.list(kind) for kind in (*of_fleets, *of_placements)))
    return cast("tuple[FleetObject, ...]", tuple(obj for listing in listed for obj in listing.items))
