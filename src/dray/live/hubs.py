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
    wanted = (*of_fleets, *of_placements)
    listed = await asyncio.gather(*map(client.list, wanted), return_exceptions=True)
    # The first that is missing is named, and not the one whose answer came first: a fleet before what is said of it.
    if (error := next((one for one in listed if isinstance(one, BaseException)), None)) is not None:
        raise error
    pages = [one for one in listed if not isinstance(one, BaseException)]
    return cast("tuple[FleetObject, ...]", tuple(obj for page in pages for obj in page.items))
