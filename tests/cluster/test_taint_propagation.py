"""A taint that reaches partitions: eviction, preview and allocation see the same devices."""

from typing import Any

import pytest

import dray
from controller_world import controller_world, manifest, typed
from dray.api.resource.rule_annotations import annotation_problems
from eviction_objects import DRIVER, V1, device_slice, leaving, rule, taint, use_devices

NAME = "device-taint-eviction-controller"
ASKED = {"dray.dev/taint-partitions": "true"}


def consuming(name: str, amount: str, **more: Any) -> dict[str, Any]:
    draw = {"counterSet": "card", "counters": {"memory": {"value": amount}}}
    return {"name": name, "consumesCounters": [draw], **more}


POOL = {"name": "pool", "generation": 1, "resourceSliceCount": 2}


def slices(**whole: Any) -> list[dict[str, Any]]:
    """A card and a partition of it, and the card's counters."""
    counters = device_slice(
        "pool", pool=POOL, sharedCounters=[{"name": "card", "counters": {"memory": {"value": "80Gi"}}}]
    )
    counters["metadata"]["name"] = "pool-counters"
    devices = [consuming("card", "80Gi", **whole), consuming("part", "20Gi"), consuming("other", "0")]
    return [counters, device_slice("pool", pool=POOL, devices=devices)]


def asking(effect: str = "NoExecute") -> dict[str, Any]:
    made = rule(effect=effect, selector={"device": "card"})
    made["metadata"]["annotations"] = ASKED
    return made


@pytest.mark.parametrize("asked", [True, False])
async def test_pods_on_partitions_leave_and_the_preview_knows(asked: bool) -> None:
    async with controller_world(NAME) as world:
        await world.create(*slices())
        await use_devices(world, "a", "part", pods=("on-part",))
        await use_devices(world, "b", "other", pods=("on-other",))
        await world.create(asking("None") if asked else rule(effect="None", selector={"device": "card"}))
        await world.settle(5)
        (told,) = (await world.get("devicetaintrules", "rule")).status.conditions
        count = "2 published devices selected. 1 allocated device selected. 1 pod would"
        nothing = "1 published device selected. 0 allocated devices selected. 0 pods would"
        assert told.message.startswith(count if asked else nothing)
        await world.patch("devicetaintrules", "rule", {"spec": {"taint": {"effect": "NoExecute"}}})
        await world.settle(5)
        assert await leaving(world) == ({"on-part"} if asked else set())


async def test_the_annotation_alone_starts_and_stops_it() -> None:
    async with controller_world(NAME) as world:
        await world.create(*slices())
        await use_devices(world, "a", "part", pods=("p1",))
        await world.create(rule(selector={"device": "card"}))
        await world.settle(5)
        assert await leaving(world) == set()
        await world.patch("devicetaintrules", "rule", {"metadata": {"annotations": ASKED}})
        await world.settle(5)
        assert await leaving(world) == {"p1"}


@pytest.mark.parametrize("source", ["rule", "driver"])
@pytest.mark.parametrize("asked", [True, False])
def test_partitions_are_not_allocated_either(source: str, asked: bool) -> None:
    claim = manifest(
        V1,
        "ResourceClaim",
        "c",
        spec={"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "small"}}]}},
    )
    marked = {"attributes": {"part.example.com/is": {"bool": True}}}
    devices = [consuming("card", "80Gi"), consuming("part", "20Gi", **marked)]
    if source == "driver":
        devices[0] |= {"taints": [taint()]}
        if asked:
            devices[0] |= {"attributes": {"dray.dev/taintPartitions": {"bool": True}}}
    expression = f'device.driver == "{DRIVER}" && device.attributes["part.example.com"].?is.orValue(false)'
    small = {"selectors": [{"cel": {"expression": expression}}]}
    published = [slices()[0], device_slice("pool", pool=POOL, devices=devices)]
    rules = [] if source == "driver" else [asking() if asked else rule(selector={"device": "card"})]
    snap = dray.load(*published, *rules, claim, manifest(V1, "DeviceClass", "small", spec=small))
    outcome = snap.allocate("default/c", node="node-1")
    assert outcome.status == ("unsatisfiable" if asked else "allocated"), str(outcome.explain())


def test_a_value_that_means_nothing_is_warned_about() -> None:
    made = rule(selector={"device": "card"})
    made["metadata"]["annotations"] = {"dray.dev/taint-partitions": "yes"}
    assert annotation_problems(typed(made)) == [
        "metadata.annotations[dray.dev/taint-partitions]: neither true nor false, so it is ignored"
    ]
