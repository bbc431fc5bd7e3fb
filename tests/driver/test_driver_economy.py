"""What calls of the node cost: as little work as possible, all of it on the node itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dray import driver
from driver_world import NODE, Fans, driver_world, empty_world

TYPICAL_SPEC_BYTES = 3 * 1024


class Counting:
    """A client that notes what it is asked for, except for what publishing devices needs."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def noted(*arguments: Any, **options: Any) -> Any:
            kind = getattr(arguments[0], "kind", type(arguments[0]).__name__)
            if kind != "ResourceSlice":
                self.asked.append(f"{name} {kind}")
            return getattr(self._client, name)(*arguments, **options)

        return noted


@pytest.mark.req("4381-164", "4381-166")
async def test_preparing_reads_the_claim_once_and_unpreparing_asks_nobody() -> None:
    async with empty_world() as world:
        client = Counting(world.client)
        async with world.running(Fans(), client=client):
            claim = await world.allocate("c", "fan-0", "fan-1")
            await world.published(1)
            client.asked.clear()
            for _ in range(3):
                answer = await world.prepare(claim)
                assert answer[claim.metadata.uid].error == ""
            assert client.asked == ["get ResourceClaim"] * 3
            client.asked.clear()
            await world.unprepare(claim)
            assert client.asked == []


@pytest.mark.req("4381-164")
async def test_devices_of_another_node_are_not_prepared_here() -> None:
    async with driver_world(Fans()) as world:
        elsewhere = await world.allocate("elsewhere", {"pool": "node-2", "device": "fan-0"})
        answer = await world.prepare(elsewhere)
        assert 'device "fan-0" of pool "node-2" is not there' in answer[elsewhere.metadata.uid].error
        assert world.cdi_files() == []
        here = await world.allocate("here", {"pool": NODE, "device": "fan-0"})
        assert (await world.prepare(here))[here.metadata.uid].error == ""


class Accelerators(Fans):
    """Eight devices, each with the edits that such a device usually needs."""

    def __init__(self) -> None:
        super().__init__(*(f"gpu-{number}" for number in range(8)))

    def prepare(self, _claim: driver.Claim, device: driver.ClaimDevice) -> driver.Edits:
        return driver.Edits(
            env={"VISIBLE_DEVICES": device.name, "DRIVER_VERSION": "535.104.5"},
            device_nodes=[f"/dev/{device.name}", f"/dev/{device.name}-control"],
        )


@pytest.mark.req("4381-244")
async def test_the_file_of_a_claim_has_a_few_kilobytes() -> None:
    async with driver_world(Accelerators()) as world:
        claim = await world.allocate("c", *(f"gpu-{number}" for number in range(8)))
        assert (await world.prepare(claim))[claim.metadata.uid].error == ""
        (size,) = _sizes(world.settings.cdi_dir.iterdir())
        assert 0 < size <= TYPICAL_SPEC_BYTES


def _sizes(paths: Iterator[Any]) -> list[int]:
    return [path.stat().st_size for path in paths]
