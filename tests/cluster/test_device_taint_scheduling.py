"""Which devices a scheduler gives to claims while some are tainted: a real server, the scheduler's own rights."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api.registry import by_kind
from dray.api.resource import ResourceSlice
from scheduler_world import DRIVER, RULES, World, scheduler_world

RESOURCE = "resource.k8s.io/v1"
SLICES = by_kind(RESOURCE, "ResourceSlice")

Fields = dict[str, Any]


def taint(effect: str = "NoSchedule", key: str = "k", value: str = "v") -> Fields:
    return {"key": key, "value": value, "effect": effect}


async def add_rule(here: World, name: str, selector: Fields | None, effect: str = "NoSchedule", key: str = "k") -> None:
    spec: Fields = {"taint": taint(effect, key)} | ({} if selector is None else {"deviceSelector": selector})
    await here.add(RESOURCE, "DeviceTaintRule", name, spec=spec)


async def add_taint_slice(here: World, pool: str, count: int, *entries: tuple[str, Fields], name: str = "") -> None:
    """A slice of a pool that has taints only."""
    about = {"name": pool, "generation": 1, "resourceSliceCount": count}
    taints = [{"device": device, "taint": one} for device, one in entries]
    spec = {"driver": DRIVER, "nodeName": pool, "pool": about} | ({"taints": taints} if taints else {})
    await here.add(RESOURCE, "ResourceSlice", name or f"{pool}-taints", spec=spec)


async def use(here: World, name: str, *tolerations: Fields) -> str:
    """The device that a new pod gets, empty if none."""
    await here.add_claim(name, tolerations=list(tolerations))
    await here.add_pod(name, name)
    await here.settle(3)
    allocation = (await here.claim(name)).status.allocation
    assert (allocation is not None) == bool((await here.pod(name)).spec.node_name)
    return allocation.devices.results[0].device if allocation is not None else ""


EXISTS: Fields = {"operator": "Exists"}


@pytest.mark.req("5055-44", "5055-45", "5055-46", "5055-47", "5055-48", "5055-49", "5055-50", "5055-51", "5055-52")
@pytest.mark.parametrize(
    ("taints", "tolerations", "fits"),
    [
        ([taint("None")], [], True),
        ([taint("NoSchedule")], [], False),
        ([taint("NoExecute")], [], False),
        ([taint("NoSchedule"), taint("NoExecute")], [{"key": "k", "value": "v"}], True),
        ([taint()], [EXISTS], True),
        ([taint()], [{"key": "k", **EXISTS}], True),
        ([taint()], [{"key": "other", **EXISTS}], False),
        ([taint()], [{"key": "k", "value": "other"}], False),
        ([taint()], [{"key": "k"}], False),
        ([taint(value="")], [{"key": "k"}], True),
        ([taint()], [{"key": "k", **EXISTS, "effect": "NoExecute"}], False),
        ([taint("NoSchedule"), taint("NoExecute")], [{"key": "k", **EXISTS, "effect": "NoExecute"}], False),
        ([taint(), taint(key="second")], [{"key": "k", **EXISTS}], False),
        ([taint(), taint(key="second")], [{"key": "k", **EXISTS}, {"key": "second", **EXISTS}], True),
        ([taint()], [{"key": "k", **EXISTS, "effect": "None"}], False),
    ],
)
async def test_a_device_is_given_to_whom_tolerates_all_its_taints(
    taints: list[Fields], tolerations: list[Fields], fits: bool
) -> None:
    async with scheduler_world() as here:
        await here.add_class()
        await here.add_node("a", {"name": "gpu-0", "taints": taints})
        assert await use(here, "c", *tolerations) == ("gpu-0" if fits else "")


@pytest.mark.req("5055-66", "5055-67", "5055-68", "5055-69", "5055-70", "5055-71", "5055-72", "5055-73")
@pytest.mark.parametrize(
    ("selector", "hits"),
    [
        (None, False),
        ({}, True),
        ({"driver": DRIVER}, True),
        ({"driver": "other.example.com"}, False),
        ({"pool": "a"}, True),
        ({"pool": "b"}, False),
        ({"device": "gpu-0"}, True),
        ({"device": "gpu-1"}, False),
        ({"driver": DRIVER, "pool": "b", "device": "gpu-0"}, False),
        ({"deviceClassName": "gpu"}, True),
        ({"deviceClassName": "missing"}, False),
        (
            {"selectors": [{"cel": {"expression": "true"}}, {"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
            True,
        ),
        ({"selectors": [{"cel": {"expression": "true"}}, {"cel": {"expression": "false"}}]}, False),
    ],
)
async def test_a_rule_taints_what_all_its_criteria_select(selector: Fields | None, hits: bool) -> None:
    async with scheduler_world() as here:
        await here.add_class()
        await here.add_node("a", "gpu-0")
        await add_rule(here, "rule", selector)
        await here.settle(1)
        assert await use(here, "c") == ("" if hits else "gpu-0")


@pytest.mark.req("5055-57", "5055-60", "5055-61", "5055-130")
async def test_one_device_is_out_of_service_while_a_test_pod_may_use_it() -> None:
    async with scheduler_world() as here:
        await here.add_class()
        await here.add_node("a", "gpu-0", "gpu-1")
        await add_rule(here, "rule", {"device": "gpu-0"})
        await here.settle(1)
        assert await use(here, "ordinary") == "gpu-1"
        assert await use(here, "another") == ""
        assert await use(here, "maintenance", {"key": "k", **EXISTS}) == "gpu-0"
        (published,) = (await here.admin.list(SLICES)).items
        assert isinstance(published, ResourceSlice)
        assert [device.name for device in published.spec.devices] == ["gpu-0", "gpu-1"]


@pytest.mark.req("5055-63", "5055-65", "5055-74")
async def test_rules_add_to_what_drivers_say_and_never_write_slices() -> None:
    async with scheduler_world() as here:
        await here.add_class()
        await here.add_node("a", {"name": "gpu-0", "taints": [taint(key="driver")]}, "gpu-1")
        before = (await here.admin.list(SLICES)).items
        await add_rule(here, "rule", {"driver": DRIVER})
        await here.settle(1)
        assert await use(here, "one", {"key": "driver", **EXISTS}) == ""
        assert await use(here, "both", {"key": "driver", **EXISTS}, {"key": "k", **EXISTS}) == "gpu-0"
        await here.admin.delete(RULES, "", "rule")
        await here.settle(5)
        claim = await here.claim("one")
        assert claim.status.allocation is not None
        assert [result.device for result in claim.status.allocation.devices.results] == ["gpu-1"]
        assert (await here.admin.list(SLICES)).items == before


@pytest.mark.req("5055-09", "5055-75", "5055-76", "5055-77", "5055-78", "5055-79", "5055-144")
@pytest.mark.parametrize("taints_first", [True, False])
async def test_taints_in_a_slice_of_their_own_reach_the_devices_of_the_pool(taints_first: bool) -> None:
    async def add_devices(here: World) -> None:
        about = {"name": "a", "generation": 1, "resourceSliceCount": 2}
        spec = {"driver": DRIVER, "nodeName": "a", "pool": about, "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}]}
        await here.add(RESOURCE, "ResourceSlice", "a-devices", spec=spec)

    async with scheduler_world() as here:
        await here.add_class()
        await here.add_node("a")
        if not taints_first:
            await add_devices(here)
            assert await use(here, "early") == ""  # the pool is not complete
        await add_taint_slice(here, "a", 2, ("gpu-0", taint()), ("nobody", taint()))
        if taints_first:
            await add_devices(here)
        await here.settle(3)
        first = "early" if not taints_first else "late"
        if taints_first:
            await use(here, first)
        allocation = (await here.claim(first)).status.allocation
        assert allocation is not None
        assert [result.device for result in allocation.devices.results] == ["gpu-1"]
        # The taints go, in the same generation, with no word about the devices.
        await here.admin.patch(SLICES, "", "a-taints", {"spec": {"taints": None}})
        await here.settle(3)
        assert await use(here, "then") == "gpu-0"


@pytest.mark.req("5055-54", "SVS-22")
@pytest.mark.parametrize("tolerated", [True, False])
async def test_nobody_new_may_reserve_a_claim_whose_device_is_tainted(tolerated: bool) -> None:
    async with scheduler_world() as here:
        await here.add_class()
        await here.add_node("a", "gpu-0")
        assert await use(here, "shared", *([EXISTS] if tolerated else [])) == "gpu-0"
        await add_rule(here, "rule", {}, "NoExecute")
        await here.settle(1)
        await here.add_pod("second", "shared")
        await here.settle(3)
        users = [consumer.name for consumer in (await here.claim("shared")).status.reserved_for]
        assert users == (["shared", "second"] if tolerated else ["shared"])
