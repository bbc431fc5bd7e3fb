"""The map of a page that is open follows what its groups and picks go by: labels of nodes, attributes, classes."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import builders
from controller_world import World, controller_world
from dray.dashboard.fleet_stream import open_fleet
from dray.live.viewer import Viewer
from patience import PATIENCE

RACK = "label:rack"
MODEL = f"attribute:{builders.DRIVER}/model"


class Map:
    """What a page that reads the lines shows: the group of each pool, or of each of its devices."""

    def __init__(self, lines: AsyncIterator[bytes]) -> None:
        self._lines = lines
        self.groups: dict[str, Any] = {}
        self.picked: dict[str, Any] = {}
        self.has_ended = False

    async def read_after(self, world: World) -> None:
        """What a change leads to."""
        await world.settle(3)
        await self.read()

    async def read(self) -> None:
        """Takes in lines up to the next summary, or to the end."""
        async with asyncio.timeout(PATIENCE):
            async for line in self._lines:
                said = json.loads(line)
                if said["type"] == "again":
                    self.has_ended = True
                if said["type"] in ("again", "summary"):
                    return
                for row in said.get("rows", ()):
                    self.groups[row["p"]] = row["g"]
                    self.picked[row["p"]] = row.get("m")


@contextlib.asynccontextmanager
async def opened(world: World, by: str, expression: str = "") -> AsyncIterator[Map]:
    viewer = Viewer(world.admin, world.clock)
    await viewer.start()
    try:
        stream = await open_fleet(viewer, by, expression)
        shown = Map(stream.lines())
        await shown.read()
        yield shown
    finally:
        await viewer.stop()


def published(pool: str, model: str, generation: int = 1) -> dict[str, Any]:
    device = {"name": "gpu-0", "attributes": {"model": {"string": model}}}
    return builders.resource_slice(pool, device, pool=pool, nodeName=pool, generation=generation)


async def test_groups_follow_the_labels_of_nodes() -> None:
    async with controller_world() as world:
        await world.create(builders.node("n1", labels={"rack": "a"}), published("n1", "A100"))
        async with opened(world, RACK) as shown:
            assert shown.groups == {"n1": "a"}
            await world.patch("nodes", "n1", {"metadata": {"labels": {"rack": "b"}}})
            await shown.read_after(world)
            assert shown.groups == {"n1": "b"}
            await world.create(builders.node("n2", labels={"rack": "c"}), published("n2", "A100"))
            await shown.read_after(world)
            assert shown.groups == {"n1": "b", "n2": "c"}


async def test_groups_and_picks_follow_attributes() -> None:
    """Also those that change nothing about who may have a device."""
    async with controller_world() as world:
        await world.create(builders.node("n1"), published("n1", "A100"))
        async with opened(world, MODEL, f'device.attributes["{builders.DRIVER}"].model == "H100"') as shown:
            assert (shown.groups, shown.picked) == ({"n1": "A100"}, {"n1": "0"})
            await world.delete("resourceslices", "n1")
            await world.create(published("n1", "H100", generation=2))
            await shown.read_after(world)
            assert (shown.groups, shown.picked) == ({"n1": "H100"}, {"n1": "1"})


async def test_a_map_by_classes_begins_anew_with_other_classes() -> None:
    async with controller_world() as world:
        await world.create(builders.node("n1"), published("n1", "A100"))
        async with opened(world, "class") as shown:
            await world.create(builders.device_class("gpu"))
            await shown.read_after(world)
            assert shown.has_ended
