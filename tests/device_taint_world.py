"""A device taint eviction controller on a real server: its stories, and what tests ask about rules and slices."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from controller_world import World, controller_world
from dray.api.meta import Condition
from dray.api.resource import DeviceTaintRule
from eviction_objects import device_slice

NAME = "device-taint-eviction-controller"


@contextlib.asynccontextmanager
async def device_taint_world(*controllers: str) -> AsyncIterator[World]:
    """Runs a story with the controller, and `gpu-0` to `gpu-3` published in one pool."""
    async with controller_world(*(controllers or (NAME,))) as world:
        await world.create(device_slice("pool", "gpu-0", "gpu-1", "gpu-2", "gpu-3"))
        yield world


async def status(world: World, name: str = "rule") -> Condition:
    """The condition of a rule."""
    found: DeviceTaintRule = await world.get("devicetaintrules", name)
    return next(one for one in found.status.conditions if one.type == "EvictionInProgress")


async def set_slice_taints(world: World, *taints: dict[str, Any]) -> None:
    devices = [{"name": "gpu-0", "taints": list(taints)}, {"name": "gpu-1"}]
    await world.patch("resourceslices", "pool-slice", {"spec": {"devices": devices}})
