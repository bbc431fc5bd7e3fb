"""Taints that reach the partitions of a device: only where asked for, and only what really is a part of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dray.api.quantity import Quantity
from dray.api.resource import (
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCounterConsumption,
    DeviceTaintRule,
)
from dray.tracker import Remove, Tracker, Upsert
from tracker_objects import device, find, on, rule, slice_, taint, taint_keys, tracking

A = taint("example.com/a", "NoExecute")
ASKED = {"dray.dev/taint-partitions": "true"}


def counters(**amounts: int) -> dict[str, Counter]:
    return {name: Counter(value=Quantity.of_int(amount)) for name, amount in amounts.items()}


def counter_set(name: str = "card", /, **amounts: int) -> CounterSet:
    return CounterSet(name=name, counters=counters(**amounts))


def part(name: str, counter_set_name: str = "card", /, **amounts: int) -> Device:
    """A device that draws on counters."""
    consumption = DeviceCounterConsumption(counter_set=counter_set_name, counters=counters(**amounts))
    return device(name, consumes_counters=(consumption,))


def passing_on(parent: Device, *, value: bool = True) -> Device:
    """The same device, whose driver wants its taints to reach partitions."""
    return replace(parent, attributes={"dray.dev/taintPartitions": DeviceAttribute(bool_value=value)})


def asking(name: str = "r", **more: Any) -> DeviceTaintRule:
    """A rule that reaches partitions."""
    made = rule(name, taint=A, **more)
    return replace(made, metadata=replace(made.metadata, annotations=ASKED))


def tainted(tracker: Tracker) -> set[str]:
    return {found.id.device for found in tracker.devices() if found.taints}


WHOLE = part("whole", memory=80, slot0=1, slot1=1)
HALF0, HALF1 = part("half-0", memory=40, slot0=1), part("half-1", memory=40, slot1=1)
CARD = counter_set(memory=80, slot0=1, slot1=1)


def cluster(*more: Any, devices: tuple[Device, ...] = (WHOLE, HALF0, HALF1)) -> Tracker:
    """A card with its partitions in one slice, its counters in another, as drivers publish them."""
    return tracking(slice_("counters", count=2, shared_counters=(CARD,)), slice_("devices", *devices, count=2), *more)


def test_a_rule_reaches_partitions_only_if_it_asks() -> None:
    assert tainted(cluster(rule("r", device="whole", taint=A))) == {"whole"}
    tracker = cluster(asking(device="whole"))
    assert tainted(tracker) == {"whole", "half-0", "half-1"}
    whole, half = find(tracker, "whole"), find(tracker, "half-0")
    assert half.taints == whole.taints
    assert half.taints[0].rule == "r"
    assert [found.id.device for found in tracker.selected("r")] == ["whole", "half-0", "half-1"]


def test_a_partition_does_not_reach_its_parent_nor_its_sibling() -> None:
    assert tainted(cluster(asking(device="half-0"))) == {"half-0"}


@pytest.mark.parametrize(
    ("parent", "other", "reaches"),
    [
        ({"memory": 80}, {"memory": 10}, True),
        ({"memory": 80}, {"memory": 80}, True),
        ({"memory": 40}, {"memory": 10}, False),  # may be in the other half
        ({"memory": 60}, {"memory": 30}, True),  # has no room beside it
        ({"memory": 80, "slot0": 1}, {"memory": 40, "slot0": 1}, True),
        ({"memory": 80, "slot0": 1}, {"memory": 40, "slot1": 1}, False),
        ({"memory": 80}, {"memory": 40, "slot1": 1}, False),
        ({"memory": 80, "slot0": 1}, {"memory": 40, "slot0": 0}, True),
        ({"memory": 80}, {}, False),
    ],
)
def test_what_a_partition_is(parent: dict[str, int], other: dict[str, int], reaches: bool) -> None:
    tracker = cluster(asking(device="parent"), devices=(part("parent", **parent), part("other", **other)))
    assert tainted(tracker) == ({"parent", "other"} if reaches else {"parent"})


def test_counters_of_another_set_or_pool_are_others() -> None:
    second = counter_set("card-1", memory=80)
    elsewhere = slice_("far", part("far", memory=10), pool="node-2", shared_counters=(CARD,))
    tracker = tracking(
        slice_("counters", count=2, shared_counters=(CARD, second)),
        slice_("devices", WHOLE, part("twin", "card-1", memory=10), count=2),
        elsewhere,
        asking(device="whole"),
    )
    assert tainted(tracker) == {"whole"}


def test_a_driver_asks_with_an_attribute_of_the_parent() -> None:
    published = replace(WHOLE, taints=(A,))
    assert tainted(cluster(devices=(published, HALF0))) == {"whole"}
    assert tainted(cluster(devices=(passing_on(published, value=False), HALF0))) == {"whole"}
    assert tainted(cluster(devices=(passing_on(published), HALF0))) == {"whole", "half-0"}
    apart = tracking(
        slice_("counters", count=3, shared_counters=(CARD,)),
        slice_("devices", passing_on(WHOLE), HALF0, count=3),
        slice_("taints", count=3, taints=(on("whole", A),)),
    )
    assert tainted(apart) == {"whole", "half-0"}


def test_a_rule_without_the_annotation_does_not_spread_from_a_device_that_spreads_its_own() -> None:
    tracker = cluster(rule("r", device="whole", taint=A), devices=(passing_on(WHOLE), HALF0))
    assert tainted(tracker) == {"whole"}


def test_partitions_in_other_slices_follow_every_change() -> None:
    tracker = tracking(
        slice_("counters", count=3, shared_counters=(CARD,)),
        slice_("a", WHOLE, count=3),
        slice_("b", HALF0, HALF1, count=3),
    )
    change = tracker.apply(Upsert(asking(device="whole")))
    assert change.pools
    assert tainted(tracker) == {"whole", "half-0", "half-1"}
    kept = find(tracker, "half-0")
    tracker.apply(Upsert(slice_("b", HALF0, part("half-1", memory=40), count=3)))
    assert find(tracker, "half-0") is kept
    assert tainted(tracker) == {"whole", "half-0", "half-1"}
    without = asking(device="whole")
    tracker.apply(Upsert(replace(without, metadata=replace(without.metadata, annotations={}))))
    assert tainted(tracker) == {"whole"}
    tracker.apply(Upsert(asking(device="whole")))
    assert tainted(tracker) == {"whole", "half-0", "half-1"}
    tracker.apply(Upsert(slice_("a", count=3)))
    assert tainted(tracker) == set()
    tracker.apply(Upsert(slice_("a", WHOLE, count=3)))
    assert tainted(tracker) == {"whole", "half-0", "half-1"}
    tracker.apply(Remove("DeviceTaintRule", "r"))
    assert tainted(tracker) == set()


def test_a_taint_that_reaches_a_device_twice_stands_there_once() -> None:
    tracker = cluster(asking(driver="gpu.example.com"))
    assert all(taint_keys(found) == ["a"] for found in tracker.devices())


AMOUNTS = st.dictionaries(st.sampled_from(["memory", "slot0", "slot1"]), st.integers(0, 3), max_size=3)


@given(
    draws=st.lists(AMOUNTS, min_size=1, max_size=6),
    sizes=st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 2)),
    asked=st.booleans(),
    data=st.data(),
)
def test_incremental_and_from_scratch_agree_with_the_definition(
    draws: list[dict[str, int]], sizes: tuple[int, int, int], asked: bool, data: st.DataObject
) -> None:
    total = dict(zip(("memory", "slot0", "slot1"), sizes, strict=True))
    devices = [part(f"d{number}", **draw) for number, draw in enumerate(draws)]
    cut = data.draw(st.integers(0, len(devices)))
    selecting = asking(device="d0") if asked else rule("r", device="d0", taint=A)
    events = [
        Upsert(slice_("counters", count=3, shared_counters=(counter_set(**total),))),
        Upsert(slice_("one", *devices[:cut], count=3)),
        Upsert(slice_("two", *devices[cut:], count=3)),
        Upsert(selecting),
    ]
    step_by_step, at_once = Tracker(), Tracker()
    for event in data.draw(st.permutations(events)):
        step_by_step.apply(event)
    at_once.apply_all(events)

    def is_part(draw: dict[str, int]) -> bool:
        drawn = {name: amount for name, amount in draw.items() if amount}
        parent = draws[0]
        return bool(drawn) and all(
            parent.get(name, 0) >= amount and parent.get(name, 0) + amount > total[name]
            for name, amount in drawn.items()
        )

    expected = {f"d{number}" for number, draw in enumerate(draws) if number == 0 or (asked and is_part(draw))}
    assert tainted(step_by_step) == tainted(at_once) == expected
    assert {found.id.device for found in at_once.selected("r")} == expected
