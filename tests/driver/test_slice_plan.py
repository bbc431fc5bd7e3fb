"""Pools as slices, and the writes that bring the API server there: pure functions."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dray import driver
from dray.api.meta import ObjectMeta
from dray.api.resource import ResourceSlice, ResourceSliceSpec
from dray.api.times import Time
from dray.driver.devices import Device
from dray.driver.pools import TaintForm, group, slices_of
from dray.driver.slice_plan import SlicePlan, plan

BASE = ResourceSliceSpec(driver="gpu.example.com", node_name="node-1")
HOT = driver.Taint(key="gpu.example.com/hot", effect="NoExecute")
OLD = driver.Taint(key="gpu.example.com/old", effect="NoSchedule")


def specs(
    *devices: Device, form: TaintForm = TaintForm.SLICE, with_taint_slice: bool = True
) -> list[ResourceSliceSpec]:
    """What the pool of these devices is published as."""
    pool = group(devices, (), "node-1")["node-1"]
    return slices_of(pool, BASE, form, with_taint_slice=with_taint_slice)


def gpus(count: int, *, tainted: int = 0, taint: driver.Taint = HOT) -> list[Device]:
    """Devices, of which the first few are tainted."""
    return [Device(f"gpu-{index}", taints=[taint] if index < tainted else []) for index in range(count)]


def apply(changes: SlicePlan, stored: list[ResourceSlice], now: str = "2026-06-01T12:00:00Z") -> list[ResourceSlice]:
    """What an API server has after the writes; it gives taints a time."""
    updated = {found.metadata.name: replace(found, spec=_timed(spec, now)) for found, spec in changes.update}
    gone = {found.metadata.name for found in changes.delete}
    after = [updated.get(found.metadata.name, found) for found in stored if found.metadata.name not in gone]
    number = max((int(found.metadata.name) for found in stored), default=0)
    for spec in changes.create:
        number += 1
        after.append(ResourceSlice(metadata=ObjectMeta(name=f"{number:04}"), spec=_timed(spec, now)))
    return after


def _timed(spec: ResourceSliceSpec, now: str) -> ResourceSliceSpec:
    taints = tuple(
        replace(entry, taint=replace(entry.taint, time_added=entry.taint.time_added or Time.parse(now)))
        for entry in spec.taints
    )
    return replace(spec, taints=taints)


def is_whole(stored: list[ResourceSlice]) -> bool:
    """Whether consumers can use the pool: one generation, and as many slices as it says."""
    newest = max(found.spec.pool.generation for found in stored)
    live = [found for found in stored if found.spec.pool.generation == newest]
    return all(found.spec.pool.resource_slice_count == len(live) for found in live)


@pytest.mark.parametrize(("count", "sizes"), [(0, [0]), (1, [1]), (128, [128]), (129, [128, 1]), (300, [128, 128, 44])])
def test_at_most_128_devices_per_slice(count: int, sizes: list[int]) -> None:
    made = specs(*gpus(count), with_taint_slice=False)
    assert [len(spec.devices) for spec in made] == sizes
    assert {spec.pool.resource_slice_count for spec in made} == {len(sizes)}


@pytest.mark.req("5055-78", "5055-79")
def test_taints_have_a_slice_of_their_own_even_when_there_are_none() -> None:
    assert [(len(spec.devices), len(spec.taints)) for spec in specs(*gpus(2))] == [(2, 0), (0, 0)]
    assert [(len(spec.devices), len(spec.taints)) for spec in specs(*gpus(2, tainted=1))] == [(2, 0), (0, 1)]
    many = specs(*gpus(100, tainted=70))
    assert [(len(spec.devices), len(spec.taints)) for spec in many] == [(100, 0), (0, 32), (0, 32), (0, 6)]


@pytest.mark.req("SVS-01", "SVS-03")
def test_taints_at_devices_halve_what_fits() -> None:
    made = specs(*gpus(100, tainted=1), form=TaintForm.DEVICE)
    assert [len(spec.devices) for spec in made] == [64, 36]
    assert made[0].devices[0].taints == (HOT,)


def test_counters_have_slices_of_their_own() -> None:
    sets = [driver.CounterSet(f"board-{index}", {"memory": "80Gi"}) for index in range(9)]
    devices = [Device("part-0", consumes={"board-0": {"memory": "10Gi"}})]
    pool = group(devices, sets, "node-1")["node-1"]
    made = slices_of(pool, BASE, TaintForm.SLICE, with_taint_slice=False)
    assert [(len(spec.shared_counters), len(spec.devices)) for spec in made] == [(8, 0), (1, 0), (0, 1)]


def test_devices_may_be_in_other_pools() -> None:
    pools = group([Device("a"), Device("a", pool="other")], (), "node-1")
    assert {name: [device.name for device in pool.devices] for name, pool in pools.items()} == {
        "node-1": ["a"],
        "other": ["a"],
    }


@pytest.mark.parametrize(
    ("devices", "why"),
    [
        ([Device("a"), Device("a")], 'device "a" is there twice in pool "node-1"'),
        (
            [Device("a", attributes=cast(Any, {"temperature": 1.5}))],
            r'device "a": temperature: 1.5 is no attribute value',
        ),
        ([Device("a", attributes=cast(Any, {"mixed": [1, "x"]}))], "mixed"),
        ([Device("a", attributes={"nothing": []})], "nothing"),
        ([Device("a", capacity={"memory": "lots"})], 'device "a": memory'),
        ([Device("a", consumes={"s": {"memory": "x"}})], "consumes s.memory"),
    ],
)
def test_devices_that_cannot_be_published_are_named(devices: list[Device], why: str) -> None:
    with pytest.raises(driver.DriverError, match=why):
        group(devices, (), "node-1")


@pytest.mark.req("4381-35")
def test_values_become_typed_attributes() -> None:
    values: dict[str, Any] = {
        "b": True,
        "i": 3,
        "s": "x",
        "v": driver.Version("1.2.3"),
        "l": [1, 2],
        "vs": [driver.Version("1.0.0")],
    }
    pool = group([Device("a", attributes=values, capacity={"memory": "1Gi", "lanes": 16})], (), "node-1")["node-1"]
    attributes = pool.devices[0].attributes
    assert (attributes["b"].bool_value, attributes["b"].int_value) == (True, None)
    assert (attributes["i"].int_value, attributes["s"].string, attributes["v"].version) == (3, "x", "1.2.3")
    assert (attributes["v"].string, attributes["l"].ints, attributes["vs"].versions) == (None, (1, 2), ("1.0.0",))
    assert [str(it.value) for it in pool.devices[0].capacity.values()] == ["1Gi", "16"]


@pytest.mark.req("4381-243")
def test_nothing_is_written_when_nothing_differs() -> None:
    wanted = specs(*gpus(200, tainted=3))
    stored = apply(plan(wanted, []), [])
    assert [found.spec.pool.generation for found in stored] == [1, 1, 1]
    assert not plan(wanted, stored)
    assert not plan(wanted, stored[::-1])


@pytest.mark.req("4381-09")
def test_a_change_of_devices_gives_all_slices_a_new_generation() -> None:
    stored = apply(plan(specs(*gpus(200)), []), [])
    changes = plan(specs(*gpus(201)), stored)
    assert len(changes.update) == 3
    assert not changes.create
    after = apply(changes, stored)
    assert {found.spec.pool.generation for found in after} == {2}
    assert [len(found.spec.devices) for found in after] == [128, 73, 0]


@pytest.mark.req("5055-76", "X-03")
def test_a_change_of_taints_touches_one_slice_and_no_generation() -> None:
    stored = apply(plan(specs(*gpus(200)), []), [])
    changes = plan(specs(*gpus(200, tainted=2)), stored)
    assert [(found.metadata.name, spec.pool.generation) for found, spec in changes.update] == [("0003", 1)]
    assert not changes.create
    assert not changes.delete
    back = plan(specs(*gpus(200)), apply(changes, stored))
    assert [spec.taints for _, spec in back.update] == [()]


@pytest.mark.req("5055-76")
def test_taints_over_several_slices_need_a_new_generation() -> None:
    stored = apply(plan(specs(*gpus(100, tainted=30)), []), [])
    more = apply(plan(specs(*gpus(100, tainted=40)), stored), stored)
    assert {found.spec.pool.generation for found in more} == {2}
    assert is_whole(more)


def test_a_taint_that_stays_keeps_its_time() -> None:
    stored = apply(plan(specs(*gpus(3, tainted=1)), []), [], "2026-01-01T00:00:00Z")
    devices = [Device("gpu-0", taints=[HOT, OLD]), Device("gpu-1"), Device("gpu-2")]
    after = apply(plan(specs(*devices), stored), stored, "2026-02-02T00:00:00Z")
    times = {entry.taint.key: str(entry.taint.time_added) for found in after for entry in found.spec.taints}
    assert times == {HOT.key: "2026-01-01T00:00:00Z", OLD.key: "2026-02-02T00:00:00Z"}


def test_leftovers_of_older_generations_go() -> None:
    wanted = specs(*gpus(1))
    stored = apply(plan(wanted, []), [])
    old = replace(stored[0], metadata=ObjectMeta(name="9999"), spec=replace(stored[0].spec, pool=wanted[0].pool))
    assert [found.metadata.name for found in plan(wanted, [*stored, old]).delete] == ["9999"]


def test_a_wiped_pool_comes_back_with_a_later_generation() -> None:
    assert {spec.pool.generation for spec in plan(specs(*gpus(1)), [], last_generation=7).create} == {8}


def test_a_slice_that_somebody_removed_comes_back() -> None:
    stored = apply(plan(specs(*gpus(200)), []), [])
    after = apply(plan(specs(*gpus(200)), stored[1:]), stored[1:])
    assert is_whole(after)
    assert sum(len(found.spec.devices) for found in after) == 200


counts = st.integers(0, 300)


@given(st.lists(st.tuples(counts, st.integers(0, 70), st.booleans()), min_size=1, max_size=5))
@pytest.mark.req("4381-09")
def test_any_history_ends_with_a_whole_pool_that_has_what_is_wanted(steps: list[tuple[int, int, bool]]) -> None:
    stored: list[ResourceSlice] = []
    for count, tainted, at_devices in steps:
        form = TaintForm.DEVICE if at_devices else TaintForm.SLICE
        wanted = specs(*gpus(count, tainted=min(tainted, count)), form=form)
        before = {found.metadata.name: found.spec for found in stored}
        changes = plan(wanted, stored)
        after = apply(changes, stored)
        assert is_whole(after)
        assert sum(len(found.spec.devices) for found in after) == count
        generations = {found.spec.pool.generation for found in after}
        if before and after and generations == {spec.pool.generation for spec in before.values()}:
            changed = [found for found in after if found.spec != before.get(found.metadata.name)]
            assert len(changed) <= 1
            assert all(not found.spec.devices for found in changed)
        assert not plan(wanted, after)
        stored = after
