"""Pools: generations, completeness, duplicates, counters, and from where devices can be used."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api.node_selector import NodeSelector, NodeSelectorTerm
from dray.api.quantity import Quantity
from dray.api.resource import Counter, CounterSet, DeviceCounterConsumption, ResourceSlice
from dray.tracker import ALL_NODES, NO_NODES, Change, NodeAccess, PoolView, Remove, Tracker, Upsert
from tracker_objects import DRIVER, POOL, device, find, names, on, slice_, taint, taint_keys, tracking

CHANGED = Change(frozenset({(DRIVER, POOL)}))
UNCHANGED = Change()


def pool(tracker: Tracker) -> PoolView:
    view = tracker.pool(DRIVER, POOL)
    assert view is not None
    return view


def test_devices_stand_by_slice_name_then_position() -> None:
    tracker = tracking(slice_("b", "x", "a", count=2), slice_("a", "z", "y", count=2))
    assert names(pool(tracker).devices) == ["z", "y", "x", "a"]
    assert pool(tracker).problem is None


def test_only_the_highest_generation_counts() -> None:
    tracker = tracking(slice_("a", "old"), slice_("b", "new", generation=2), slice_("c", "older", generation=0))
    assert names(pool(tracker).devices) == ["new"]
    assert pool(tracker).generation == 2
    tracker.apply(Remove("ResourceSlice", "b"))
    assert names(pool(tracker).devices) == ["old"], "what is left is the newest there is"


@pytest.mark.req("X-04", "5055-78", "5055-79", "SVS-50", "4381-01")
@pytest.mark.parametrize(
    ("slices", "is_complete"),
    [
        ([slice_("a", "x")], True),
        ([slice_("a", "x", count=2)], False),
        ([slice_("a", "x", count=2), slice_("b", "y", count=2)], True),
        ([slice_("a", "x", count=2), slice_("b", count=2, taints=(on("x", taint()),))], True),
        ([slice_("a", "x", count=2), slice_("b", count=2)], True),
        ([slice_("a", "x", count=2), slice_("b", count=2, shared_counters=(CounterSet(name="c"),))], True),
        ([slice_("a", "x", count=2), slice_("b", "y", count=2, generation=2)], False),
        ([slice_("a", "x"), slice_("b", "y")], False),
        ([slice_("a", "x", count=2), slice_("b", "y", count=3)], False),
    ],
    ids=[
        "alone", "one-missing", "both", "taints-count", "empty-counts", "counters-count", "other-generation",
        "too-many", "contradicting",
    ],
)  # fmt: skip
def test_completeness(slices: list[ResourceSlice], is_complete: bool) -> None:
    view = pool(tracking(*slices))
    assert view.incomplete is not is_complete
    assert (view.problem is None) is is_complete
    if view.problem is not None:
        assert f"{DRIVER}/{POOL}" in view.problem


def test_an_incomplete_pool_still_shows_its_devices() -> None:
    assert names(pool(tracking(slice_("a", "x", count=2))).devices) == ["x"]


@pytest.mark.req("SVS-50")
def test_a_device_that_one_node_sees_twice_makes_the_pool_invalid() -> None:
    tracker = tracking(slice_("a", "x", count=2), slice_("b", "x", count=2))
    view = pool(tracker)
    assert view.problem is not None
    assert "device x" in view.problem
    assert "slices a and b" in view.problem
    assert not view.incomplete
    tracker.apply(Upsert(slice_("b", "y", count=2)))
    assert pool(tracker).problem is None


@pytest.mark.parametrize(
    ("one", "other", "is_valid"),
    [
        ({"node_name": "n1"}, {"node_name": "n2"}, True),
        ({"node_name": "n1"}, {"node_name": "n1"}, False),
        ({"node_name": "n1"}, {"all_nodes": True}, False),
        ({"all_nodes": True}, {"node_name": "n1"}, False),
        ({"node_name": "n1"}, {"node_selector": NodeSelector()}, True),
        ({"node_selector": NodeSelector(node_selector_terms=(NodeSelectorTerm(),))}, {"all_nodes": True}, False),
    ],
)
def test_equal_names_where_no_node_sees_both_are_no_problem(
    one: dict[str, Any], other: dict[str, Any], is_valid: bool
) -> None:
    tracker = tracking(slice_("a", "x", count=2, **one), slice_("b", "x", count=2, **other))
    assert (pool(tracker).problem is None) is is_valid


def test_a_name_twice_in_one_slice() -> None:
    problem = pool(tracking(slice_("a", "x", "x"))).problem
    assert problem is not None
    assert problem.endswith("published twice, in slice a")


def _counters(name: str, *counters: str) -> CounterSet:
    return CounterSet(name=name, counters={counter: Counter(value=Quantity.parse("8")) for counter in counters})


def _consumer(counter_set: str, counter: str) -> Any:
    used = DeviceCounterConsumption(counter_set=counter_set, counters={counter: Counter(value=Quantity.parse("1"))})
    return device("x", consumes_counters=(used,))


@pytest.mark.parametrize(
    ("consumed", "sets", "problem"),
    [
        (("c", "memory"), [_counters("c", "memory")], None),
        (("d", "memory"), [_counters("c", "memory")], "counter set d, which no slice has"),
        (("c", "cores"), [_counters("c", "memory")], "counter cores, which counter set c does not have"),
        (("c", "memory"), [_counters("c", "memory"), _counters("c")], "counter set c is published twice"),
    ],
)
def test_counters_must_exist_once(consumed: tuple[str, str], sets: list[CounterSet], problem: str | None) -> None:
    view = pool(
        tracking(slice_("devices", _consumer(*consumed), count=2), slice_("sets", count=2, shared_counters=tuple(sets)))
    )
    assert view.counter_sets == tuple(sets)
    assert (view.problem or "").endswith(problem or "")
    assert (view.problem is None) is (problem is None)


@pytest.mark.parametrize(
    ("selection", "access"),
    [
        ({"node_name": "n1"}, NodeAccess(node_name="n1")),
        ({"all_nodes": True}, ALL_NODES),
        (
            {"node_selector": NodeSelector(node_selector_terms=(NodeSelectorTerm(),))},
            NodeAccess(node_selector=NodeSelector(node_selector_terms=(NodeSelectorTerm(),))),
        ),
        ({"all_nodes": False}, NO_NODES),
        ({"node_name": ""}, NO_NODES),
    ],
)
def test_access_of_a_slice(selection: dict[str, Any], access: NodeAccess) -> None:
    view = pool(tracking(slice_("a", "x", **selection)))
    assert view.devices[0].access == access
    assert view.accesses == (access,)


@pytest.mark.req("SVS-35")
def test_access_of_single_devices() -> None:
    tracker = tracking(
        slice_(
            "a",
            device("x", node_name="n1"),
            device("y", all_nodes=True),
            device("z"),
            device("x2", node_name="n1"),
            per_device_node_selection=True,
        )
    )
    x, y, z, x2 = [found.access for found in pool(tracker).devices]
    assert (x, y, z) == (NodeAccess(node_name="n1"), ALL_NODES, NO_NODES)
    assert x2 is x, "equal accesses of a pool are one object"
    assert pool(tracker).accesses == (x, y, z)


def test_a_pool_without_devices_says_where_it_is() -> None:
    assert pool(tracking(slice_("a", node_name="n7"))).accesses == (NodeAccess(node_name="n7"),)


def test_changes_name_exactly_the_pools_that_look_different() -> None:
    tracker = Tracker()
    assert tracker.apply(Upsert(slice_("a", "x"))) == CHANGED
    assert tracker.apply(Upsert(slice_("a", "x"))) == UNCHANGED
    assert tracker.apply(Upsert(slice_("old", "x", generation=0))) == UNCHANGED
    assert tracker.apply(Upsert(slice_("b", "x", pool="node-2"))) == Change(frozenset({(DRIVER, "node-2")}))
    assert tracker.apply(Upsert(slice_("a", "x", generation=2))) == CHANGED
    assert tracker.apply(Remove("ResourceSlice", "a")) == CHANGED
    assert tracker.apply(Remove("ResourceSlice", "a")) == UNCHANGED
    assert tracker.apply(Remove("ResourceSlice", "old")) == CHANGED
    assert list(tracker.pools) == [(DRIVER, "node-2")]


def test_a_slice_may_move_to_another_pool() -> None:
    tracker = tracking(slice_("a", "x"))
    change = tracker.apply(Upsert(slice_("a", "x", pool="node-2")))
    assert change.pools == {(DRIVER, POOL), (DRIVER, "node-2")}
    assert list(tracker.pools) == [(DRIVER, "node-2")]


def test_a_batch_is_computed_once() -> None:
    tracker = Tracker()
    gone = slice_("a", "x")
    assert tracker.apply_all([Upsert(gone), Remove.of(gone)]) == UNCHANGED
    change = tracker.apply_all([Upsert(slice_("b", "y", count=2)), Upsert(slice_("c", "z", count=2))])
    assert change == CHANGED
    assert pool(tracker).problem is None


def test_other_kinds_are_refused_before_anything_is_taken() -> None:
    tracker = Tracker()
    with pytest.raises(ValueError, match="does not follow objects of kind Pod"):
        tracker.apply_all([Upsert(slice_("a", "x")), Remove("Pod", "a")])
    assert not tracker.pools


def test_unchanged_devices_of_a_changed_slice_are_the_same_objects() -> None:
    tracker = tracking(slice_("a", device("x", {"model": "A"}, memory="8Gi"), device("y", {"model": "A"})))
    x, y = find(tracker, "x"), find(tracker, "y")
    changed = slice_("a", device("new"), device("x", {"model": "A"}, memory="8Gi"), device("y", {"model": "B"}))
    tracker.apply(Upsert(changed))
    assert find(tracker, "x") is x
    assert find(tracker, "y") is not y
    assert names(pool(tracker).devices) == ["new", "x", "y"]


def test_how_a_quantity_is_written_is_a_change() -> None:
    tracker = tracking(slice_("a", device("x", memory="1")))
    assert tracker.apply(Upsert(slice_("a", device("x", memory="1000m")))) == CHANGED


@pytest.mark.req("5055-76", "X-03")
def test_a_taint_slice_changes_without_a_new_generation() -> None:
    tracker = tracking(slice_("devices", "x", "y", count=2), slice_("taints", count=2))
    y = find(tracker, "y")
    change = tracker.apply(Upsert(slice_("taints", count=2, taints=(on("x", taint()),))))
    assert change == CHANGED
    assert taint_keys(find(tracker, "x")) == ["broken"]
    assert pool(tracker).problem is None
    assert find(tracker, "y") is y
