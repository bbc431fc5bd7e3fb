"""Parts of a pool: what is complete for a node is not undone by slices of another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dray.api.quantity import Quantity
from dray.api.resource import Counter, CounterSet, DeviceCounterConsumption, ResourceSlice
from dray.tracker import PoolView, Remove, Tracker, Upsert
from dray.tracker.pool_parts import OTHERS, split
from tracker_objects import DRIVER, POOL, device, names, slice_, taint, tracking


def at(tracker: Tracker, node: str) -> PoolView | None:
    view = tracker.pool(DRIVER, POOL)
    return view.for_node(node) if view is not None else None


def own(name: str, node: str, generation: int = 1, count: int = 1) -> ResourceSlice:
    return slice_(name, f"gpu-of-{name}", node_name=node, generation=generation, count=count)


def for_all(name: str, generation: int = 1, count: int = 1) -> ResourceSlice:
    return slice_(name, f"gpu-of-{name}", all_nodes=True, generation=generation, count=count)


def shown(*slices: ResourceSlice) -> dict[str, list[str]]:
    return {node: [each.metadata.name for each in found] for node, found in split(slices).items()}


@pytest.mark.parametrize(
    ("slices", "parts"),
    [
        ((own("a", "n1"),), {"n1": ["a"]}),
        ((own("a", "n1"), own("b", "n1", 2)), {"n1": ["b"]}),
        ((own("a", "n1", count=2),), {"n1": ["a"]}),
        ((for_all("a"), for_all("b", 2)), {OTHERS: ["b"]}),
        ((own("a", "n1"), own("b", "n2", 9)), {"n1": ["a"], "n2": ["b"]}),
        ((own("a", "n1"), own("b", "n2")), {"n1": ["a"], "n2": ["b"]}),
        ((own("a", "n1"), own("b", "n2", 9, count=2)), {"n1": ["a"], OTHERS: ["b"]}),
        ((own("a", "n1", count=2), own("b", "n2", count=2)), {OTHERS: ["a", "b"]}),
        ((own("a", "n1", count=2), own("b", "n2", count=2), own("c", "n3", 9)), {OTHERS: ["a", "b"], "n3": ["c"]}),
        ((own("a", "n1", count=2), own("b", "n2", 2)), {"n2": ["b"]}),
        ((own("a", "n1", count=2), own("b", "n2", 2, count=2)), {OTHERS: ["b"]}),
        ((own("a", "n1"), for_all("b")), {OTHERS: ["b"]}),
        ((own("a", "n1", count=2), for_all("b", count=2)), {OTHERS: ["a", "b"]}),
        ((own("a", "n1", 9, count=2), for_all("b")), {OTHERS: ["b"]}),
        ((own("a", "n1", 9, count=3), for_all("b", count=2), for_all("c", count=2)), {OTHERS: ["b", "c"]}),
        ((own("a", "n1", 9, 3), for_all("b", count=2), own("c", "n2", count=2)), {OTHERS: ["b", "c"]}),
        ((own("a", "n1", 2, 2), own("b", "n2", 2, 2), for_all("c")), {OTHERS: ["a", "b"]}),
        ((for_all("a", 2, count=2), for_all("b")), {OTHERS: ["a"]}),
        ((own("a", "n1"), for_all("b", 2)), {OTHERS: ["b"]}),
        ((own("a", "n1", 2), for_all("b", 1)), {"n1": ["a"], OTHERS: ["b"]}),
    ],
    ids=[
        "one-node", "newest-of-one-node", "one-node-incomplete", "newest-for-all", "another-node-is-newer",
        "another-node-is-as-new", "another-node-publishes-half", "a-pool-of-two-nodes", "a-third-node-beside-two",
        "obsolete-and-incomplete", "an-update-under-way", "one-too-many-beside-one-for-all",
        "together-with-one-for-all", "half-of-a-newer-one", "half-beside-two-for-all", "half-beside-a-mixed-pool",
        "replaced-by-two-nodes", "an-update-for-all-under-way", "replaced-by-one-for-all",
        "newer-than-one-for-all",
    ],
)  # fmt: skip
def test_which_slices_count_for_whom(slices: tuple[ResourceSlice, ...], parts: dict[str, list[str]]) -> None:
    assert shown(*slices) == parts
    assert {node: sorted(found) for node, found in shown(*reversed(slices)).items()} == parts


@given(
    st.lists(st.tuples(st.sampled_from(["n2", "n3"]), st.integers(0, 9), st.integers(1, 3)), max_size=5),
    st.integers(1, 3),
    st.integers(1, 9),
)
def test_whatever_other_nodes_publish_a_complete_node_stays_as_it_is(
    foreign: list[tuple[str, int, int]], count: int, generation: int
) -> None:
    mine = [own(f"mine-{number}", "n1", generation, count) for number in range(count)]
    theirs = [own(f"theirs-{number}", node, newer, wanted) for number, (node, newer, wanted) in enumerate(foreign)]
    tracker = tracking(*mine)
    before = at(tracker, "n1")
    assert before is not None
    tracker.apply_all([Upsert(each) for each in theirs])
    assert at(tracker, "n1") is before
    tracker.apply_all([Remove("ResourceSlice", each.metadata.name) for each in theirs])
    assert at(tracker, "n1") is before


def test_neither_names_nor_counters_nor_taints_of_another_node_reach_it() -> None:
    """The same device and counter set, used up and tainted, in a slice of another node in the same pool."""
    draws = (DeviceCounterConsumption(counter_set="card", counters={"memory": Counter(value=Quantity.parse("4"))}),)
    card = (CounterSet(name="card", counters={"memory": Counter(value=Quantity.parse("4"))}),)
    mine = [
        slice_("mine", device("gpu-0", consumes_counters=draws), node_name="n1", count=2),
        slice_("mine-counters", node_name="n1", count=2, shared_counters=card),
    ]
    theirs = [
        slice_("a", device("gpu-0", consumes_counters=draws, taints=(taint(),)), node_name="n2", count=2),
        slice_("b", node_name="n2", count=2, shared_counters=card),
    ]
    tracker = tracking(*mine, *theirs)
    here, there = at(tracker, "n1"), at(tracker, "n2")
    assert here is not None
    assert there is not None
    assert (here.problem, there.problem) == (None, None)
    assert [len(found.taints) for found in here.devices] == [0]
    assert [len(found.taints) for found in there.devices] == [1]
    assert here.counter_sets == there.counter_sets == card


def test_the_whole_pool_has_the_devices_of_all_parts() -> None:
    tracker = tracking(own("b", "n1"), own("a", "n2", 2), own("c", "n3", 3, count=2))
    view = tracker.pool(DRIVER, POOL)
    assert view is not None
    assert names(view.devices) == ["gpu-of-a", "gpu-of-b", "gpu-of-c"]
    assert (view.problem, view.incomplete) == (None, False)
    assert {part.node: part.incomplete for part in view.each()} == {"n1": False, "n2": False, "": True}
    others = view.for_node("n4")
    assert others is not None
    assert others.incomplete
    assert others.hidden_from == {"n1", "n2"}


def test_a_node_with_a_newer_part_does_not_see_what_is_for_all() -> None:
    tracker = tracking(own("mine", "n1", 2), for_all("old"))
    assert names(at(tracker, "n1").devices) == ["gpu-of-mine"]  # type: ignore[union-attr]
    assert names(at(tracker, "n2").devices) == ["gpu-of-old"]  # type: ignore[union-attr]
