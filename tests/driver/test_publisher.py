"""What a driver publishes, in an API server: pools, changes, wipes, dropped fields, owners, rights."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, cast

import pytest
from msgspec.structs import replace

from dray import driver
from dray.api.generated.core import Node
from dray.api.meta import Object
from dray.api.registry import by_kind
from dray.api.resource import ResourceSlice
from dray.api.status import ApiError
from driver_world import NODE, SLICE, DriverWorld, Fans, driver_world, empty_world
from local_server import typed
from patience import PATIENCE, eventually_async

HOT = driver.Taint(key="fans.example.com/hot", effect="NoExecute")


class TaintedFans(Fans):
    """Fans with a slice for taints."""

    publishes_taints = True


@pytest.mark.req("4381-181")
async def test_slices_belong_to_the_node_and_to_one_pool() -> None:
    async with driver_world(Fans(*(f"fan-{index}" for index in range(300)))) as world:
        slices = await world.published(3)
        node = cast(Node, await world.client.get(by_kind("v1", "Node"), "", NODE))
        for found in slices:
            (owner,) = found.metadata.owner_references
            assert (owner.api_version, owner.kind, owner.name, owner.uid) == ("v1", "Node", NODE, node.metadata.uid)
            assert owner.controller
            assert (found.spec.driver, found.spec.node_name, found.spec.pool.name) == (Fans.name, NODE, NODE)
            assert found.metadata.name.startswith("node-1-fans.example.com-")
        assert sorted(len(found.spec.devices) for found in slices) == [44, 128, 128]


@pytest.mark.req("4381-243")
async def test_looking_again_writes_nothing() -> None:
    class Counting(Fans):
        looks = 0

        def discover(self) -> Any:
            self.looks += 1
            return super().discover()

        def has_looked(self, times: int) -> bool:
            return self.looks >= times

    fans = Counting()
    async with empty_world() as world, world.running(fans) as runner:
        await world.published(1)
        await eventually_async(lambda: runner.publisher.writes == 1)
        for wanted in range(2, 6):
            fans.changed()
            await eventually_async(partial(fans.has_looked, wanted))
        await asyncio.sleep(0.1)
        assert runner.publisher.writes == 1


@pytest.mark.req("5055-76", "5055-78", "5055-79")
async def test_a_taint_changes_the_taint_slice_only() -> None:
    fans = TaintedFans()
    async with driver_world(fans) as world:
        devices, taints = sorted(await world.published(2), key=lambda it: -len(it.spec.devices))
        assert taints.spec.taints == ()
        fans.set(driver.Device("fan-0", attributes={"rpm": 3000}, taints=[HOT]), fans.devices[1])

        async def tainted() -> ResourceSlice | None:
            slices = {it.metadata.name: it for it in await world.slices()}
            found = slices[taints.metadata.name]
            assert slices[devices.metadata.name] == devices
            return found if found.spec.taints else None

        found = await eventually_async(tainted)
        assert found.spec.pool == taints.spec.pool
        assert (found.spec.taints[0].device, found.spec.taints[0].taint.key) == ("fan-0", HOT.key)
        assert found.spec.taints[0].taint.time_added is not None


async def test_wiped_slices_come_back_and_foreign_changes_are_undone() -> None:
    async with driver_world(Fans()) as world:
        (found,) = await world.published(1)
        await world.client.delete(SLICE, "", found.metadata.name)

        async def replaced() -> bool:
            return [it.metadata.name for it in await world.slices()] not in ([], [found.metadata.name])

        await eventually_async(replaced, "the slice did not come back")
        (again,) = await world.published(1)
        await world.client.patch(SLICE, "", again.metadata.name, {"spec": {"devices": None}})

        async def repaired() -> bool:
            return sum(len(it.spec.devices) for it in await world.slices()) == 2

        await eventually_async(repaired, "the slice was not repaired")


async def test_pools_that_are_gone_are_removed_and_others_stay() -> None:
    fans = Fans()
    fans.devices.append(driver.Device("fan-9", pool="rack-1"))
    async with driver_world(fans) as world:
        foreign = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": "foreign"},
            "spec": {
                "driver": "other.example.com",
                "nodeName": NODE,
                "pool": {"name": NODE, "generation": 1, "resourceSliceCount": 1},
            },
        }
        await world.client.create(typed(foreign))
        await eventually_async(lambda: _pools(world, {NODE, "rack-1"}))
        fans.set(*fans.devices[:2])
        await eventually_async(lambda: _pools(world, {NODE}), "the pool was not removed")
        assert "foreign" in {it.metadata.name for it in await world.slices()}


async def _pools(world: DriverWorld, wanted: set[str]) -> bool:
    return {it.spec.pool.name for it in await world.slices() if it.spec.driver == Fans.name} == wanted


async def test_slices_wait_for_the_node_and_for_a_driver_that_can_say() -> None:
    class Late(Fans):
        ready = False

        def discover(self) -> Any:
            if not self.ready:
                raise RuntimeError("the bus is not up")
            return super().discover()

    async with empty_world() as world:
        await world.client.delete(by_kind("v1", "Node"), "", NODE)
        fans = Late()
        async with world.running(fans):
            await asyncio.sleep(0.1)
            fans.ready = True
            fans.changed()
            await asyncio.sleep(0.1)
            assert await world.slices() == []
            await world.client.create(typed({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}))
            await world.published(1)


class OldServer:
    """A client of a server that forgets some fields of slices, as one with a feature off does."""

    def __init__(self, client: Any, *forgets: str) -> None:
        self._client = client
        self._forgets = forgets

    def _prune(self, obj: Object) -> Object:
        if not isinstance(obj, ResourceSlice):
            return obj
        spec: Any = obj.spec
        if "spec.taints" in self._forgets:
            spec = replace(spec, taints=())
        if "rates" in self._forgets:
            spec = replace(spec, taints=tuple(replace(it, taint=_without_rate(it.taint)) for it in spec.taints))
        if "devices.taints" in self._forgets:
            spec = replace(spec, devices=tuple(replace(it, taints=()) for it in spec.devices))
        return replace(obj, spec=spec)

    async def create(self, obj: Any) -> Any:
        return await self._client.create(self._prune(obj))

    async def update(self, obj: Any, subresource: str = "") -> Any:
        return await self._client.update(self._prune(obj), subresource)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


@pytest.mark.req("SVS-01", "5055-120")
async def test_taints_go_to_the_devices_where_slices_cannot_have_them() -> None:
    fans = TaintedFans()
    fans.devices = [driver.Device("fan-0", taints=[HOT]), driver.Device("fan-1")]
    async with empty_world() as world:
        client = OldServer(world.client, "spec.taints")
        async with world.running(fans, client=client) as runner:

            async def tainted() -> bool:
                slices = await world.slices()
                return [bool(it.taints) for found in slices for it in found.spec.devices] == [True, False]

            await eventually_async(tainted)
            await world.published(1)
            # Devices and taints, then devices with their taints, and the taint slice goes.
            await eventually_async(lambda: runner.publisher.writes == 4)
            await asyncio.sleep(0.1)
            assert runner.publisher.writes == 4


def _without_rate(taint: driver.Taint) -> driver.Taint:
    return replace(taint, evictions_per_second=None, description="")


@pytest.mark.req("5055-122")
async def test_an_older_server_may_ignore_how_fast_pods_are_evicted(caplog: pytest.LogCaptureFixture) -> None:
    fans = TaintedFans()
    fans.devices = [driver.Device("fan-0", taints=[replace(HOT, evictions_per_second=3, description="too hot")])]
    async with empty_world() as world:
        client = OldServer(world.client, "rates")
        async with world.running(fans, client=client) as runner:
            slices = await world.published(2)
            assert [it.taint.key for found in slices for it in found.spec.taints] == [HOT.key]
            await eventually_async(lambda: "has not kept" in caplog.text)
            writes = runner.publisher.writes
            await asyncio.sleep(1.0)  # longer than the pause after which another try would follow
            assert runner.publisher.writes == writes == 2
    assert "spec.taints[0].taint.description, spec.taints[0].taint.evictionsPerSecond" in caplog.text


@pytest.mark.req("5055-120")
async def test_dropped_fields_end_the_driver_unless_it_wants_to_go_on() -> None:
    heard: list[Mapping[str, tuple[str, ...]]] = []

    class Stubborn(TaintedFans):
        def dropped_fields(self, fields: Mapping[str, tuple[str, ...]]) -> None:
            heard.append(fields)

    async with empty_world() as world:
        old = OldServer(world.client, "spec.taints", "devices.taints")
        for fans in (TaintedFans(), Stubborn()):
            fans.devices = [driver.Device("fan-0", taints=[HOT])]
            async with world.running(fans, client=old) as runner:
                if isinstance(fans, Stubborn):
                    await eventually_async(lambda: heard)
                    await world.published(1)
                    writes = runner.publisher.writes
                    await asyncio.sleep(0.1)
                    assert runner.publisher.writes == writes
                else:
                    with pytest.raises(driver.DriverError, match=r"drops fields .*spec.devices\[0\].taints"):
                        await asyncio.wait_for(runner.wait(), PATIENCE)
    assert list(heard[0].values()) == [("spec.devices[0].taints",)]


@pytest.mark.parametrize(
    ("one", "two"), [("0" * 36, "1" * 36), ("v1", "v2"), ("", "v2")], ids=["uids", "names", "no name"]
)
async def test_an_older_instance_leaves_publishing_to_the_newer_one(one: str, two: str) -> None:
    async with empty_world() as world:
        first, second = Fans(), Fans("fan-new")
        before = driver.Settings(**{**_fields(world.settings), "instance": one})
        after = driver.Settings(**{**_fields(world.settings), "instance": two})
        async with driver.Runner(first, before, world.client) as older:
            await eventually_async(older.registration_socket.exists)
            await world.published(1)
            async with driver.Runner(second, after, world.client) as newer:
                assert older.endpoint != newer.endpoint
                await eventually_async(newer.registration_socket.exists)

                async def updated() -> bool:
                    names = {it.name for found in await world.slices() for it in found.spec.devices}
                    return names == {"fan-new"}

                await eventually_async(updated)
                first.changed()
                await asyncio.sleep(0.3)
                assert await updated()
                assert older.publisher.writes == 1

            async def restored() -> bool:
                first.changed()
                return {it.name for found in await world.slices() for it in found.spec.devices} == {
                    "fan-0",
                    "fan-1",
                }

            await eventually_async(restored, "the older instance must take over again")


def _fields(settings: driver.Settings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in settings.__struct_fields__}


async def test_a_server_that_fails_is_asked_again() -> None:
    class Shaky:
        """Fails the first writes."""

        def __init__(self, client: Any) -> None:
            self._client = client
            self.failures = 2

        async def create(self, obj: Any) -> Any:
            self.failures -= 1
            if self.failures >= 0:
                raise ApiError(503, "ServiceUnavailable", "later")
            return await self._client.create(obj)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._client, name)

    async with empty_world() as world, world.running(Fans(), client=Shaky(world.client)):
        await world.published(1)
