"""The fleet in rows, groups and picks, and one device in full."""

from __future__ import annotations

from typing import Any

import pytest

import dray
from dray.api.generated.core import Pod
from dray.api.resource import DeviceTaintRule, ResourceClaim, ResourceSlice, ResourceSlicePatch
from dray.snapshot import Snapshot
from dray.views import fleet, grouping
from dray.views.device import DevicePage, Surroundings, device_page
from snapshot_objects import DRIVER, claim, device, device_class, held, node, pod, resource_slice, rule

PATCH = {
    "apiVersion": "resource.k8s.io/v1alpha3",
    "kind": "ResourceSlicePatch",
    "metadata": {
        "name": "newer",
        "managedFields": [{"manager": "alice", "operation": "Update", "time": "2026-06-01T12:00:00Z"}],
    },
    "spec": {
        "devices": {
            "filter": {"device": "gpu-1"},
            "attributes": {f"{DRIVER}/model": {"string": "H200"}, f"{DRIVER}/numa": {"null": {}}},
        }
    },
}


@pytest.fixture
def snapshot() -> Snapshot:
    gpus = [device(f"gpu-{number}", numa=number % 2) for number in range(4)]
    return dray.load(
        node("node-1", labels={"zone": "a"}),
        node("node-2", labels={"zone": "b"}),
        resource_slice("node-1", *gpus),
        resource_slice("node-2", *gpus),
        device_class(),
        held(claim("train"), "node-1", "gpu-0", "gpu-1", pods=("trainer",)),
        pod("trainer"),
        rule("bad", "NoSchedule", device="gpu-1"),
        PATCH,
    )


def test_a_row_has_a_letter_for_each_device(snapshot: Snapshot) -> None:
    rows = {row.node: row for row in fleet.look_at(snapshot).rows.values()}
    told = {node: [fleet.words_of(letter) for letter in row.states] for node, row in rows.items()}
    assert told["node-1"] == [["held"], ["held", "tainted"], ["free"], ["free"]]
    assert told["node-2"] == [["free"], ["tainted"], ["free"], ["free"]]
    assert rows["node-1"].names == ("gpu-0", "gpu-1", "gpu-2", "gpu-3")
    totals = fleet.totals(rows.values())
    assert (totals.devices, totals.free, totals.held, totals.tainted, totals.whole) == (8, 5, 2, 2, 0)


def test_only_rows_that_changed_are_told_again(snapshot: Snapshot) -> None:
    rows = fleet.FleetRows()
    with snapshot.rehearsal() as rehearsal:
        cluster = rehearsal.cluster
        list(rows.refresh(cluster))
        first = rows.revision
        list(rows.refresh(cluster))
        assert rows.revision == first
        assert rows.since(first) == ([], [])
        list(rows.refresh(cluster, leaving={"ml/train"}))
        changed, gone = rows.since(first)
        assert [(row.node, fleet.words_of(row.states[0])) for row in changed] == [("node-1", ["held", "leaving"])]
        assert gone == []
        # Back as it was: nobody is leaving any more.
        list(rows.refresh(cluster))
        assert fleet.words_of(rows.rows[f"{DRIVER}/node-1/node-1"].states[0]) == ["held"]


def test_devices_are_grouped_and_picked_as_they_count(snapshot: Snapshot) -> None:
    labels = {"node-1": {"zone": "a"}, "node-2": {"zone": "b"}}
    devices = list(snapshot.devices())
    by = {
        how: [grouping.grouper(how, labels, snapshot.classes())(one) for one in devices]
        for how in ("driver", "node", "class", "label:zone", f"attribute:{DRIVER}/model", "attribute:none/x", "")
    }
    assert by["driver"] == [DRIVER] * 8
    assert by["label:zone"] == ["a"] * 4 + ["b"] * 4
    assert by["class"] == ["gpu"] * 8
    assert by[f"attribute:{DRIVER}/model"] == ["H100", "H200", "H100", "H100"] * 2
    assert by["attribute:none/x"] == ["(none)"] * 8
    assert by[""] == [""] * 8
    pick = grouping.picker(f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].model == "H100"')
    assert [pick(view).mask for view in snapshot.pools()] == ["1011", "1011"]
    assert grouping.failure(pick(view) for view in snapshot.pools()) is None
    for wrong in ("colour", "label", "label:", "attribute:"):
        with pytest.raises(grouping.GroupingError, match="cannot group by"):
            grouping.grouper(wrong, {}, {})
    with pytest.raises(grouping.GroupingError, match="line 1"):
        grouping.picker("device.nonsense")
    with pytest.raises(grouping.GroupingError, match="findAll"):
        grouping.picker('device.driver.findAll("g").size() > 0')


def test_a_filter_says_on_how_many_devices_it_fails_and_why(snapshot: Snapshot) -> None:
    pick = grouping.picker(f'device.attributes["{DRIVER}"].numa == 0')
    picked = [pick(view) for view in snapshot.pools()]
    assert [one.mask for one in picked] == ["1!10", "1!10"]  # the patch takes numa away from gpu-1
    failed = grouping.failure(picked)
    assert failed is not None
    assert failed.number == 2
    assert failed.why.startswith("no such key: numa; ")


def test_what_groups_nothing_is_not_offered(snapshot: Snapshot) -> None:
    labels = {f"node-{number}": {"hostname": f"node-{number}", "zone": str(number % 2)} for number in range(8)}
    offered = {choice.by for choice in grouping.choices(snapshot.pools(), labels)}
    assert {"none", "driver", "class", "label:zone", f"attribute:{DRIVER}/model"} <= offered
    assert "label:hostname" not in offered


def _page(snapshot: Snapshot, name: str) -> DevicePage:
    states = [one for one in snapshot.device_states() if one.device.access.node_name == "node-1"]
    around = Surroundings(
        slices={one.metadata.name: one for one in snapshot.objects(ResourceSlice)},
        patches={one.metadata.name: one for one in snapshot.objects(ResourceSlicePatch)},
        rules={one.metadata.name: one for one in snapshot.objects(DeviceTaintRule)},
        claims={f"ml/{one.metadata.name}": one for one in snapshot.objects(ResourceClaim)},
        pods={one.metadata.uid: one for one in snapshot.objects(Pod)},
        neighbours=states,
    )
    return device_page(next(one for one in states if one.device.id.device == name), around)


def test_a_device_is_told_as_published_and_as_patched(snapshot: Snapshot) -> None:
    page = _page(snapshot, "gpu-1")
    values = {value.name: (value.published, value.effective, value.patch, value.author) for value in page.values}
    assert values[f"{DRIVER}/model"] == ("H100", "H200", "newer", "alice")
    assert values[f"{DRIVER}/numa"] == ("1", None, "newer", "alice")
    assert values[f"{DRIVER}/memory"] == ("80Gi", "80Gi", None, None)
    assert page.state == ("held", "tainted")
    assert [(one.taint, one.rule) for one in page.taints] == [("example.com/bad:NoSchedule", "bad")]
    assert [(one.claim, one.pods) for one in page.holders] == [("ml/train", ("ml/trainer",))]
    untouched = _page(snapshot, "gpu-2")
    assert untouched.state == ("free",)
    assert all(value.patch is None for value in untouched.values)


def _part(name: str, **counters: int) -> dict[str, Any]:
    drawn = {key: {"value": str(value)} for key, value in counters.items()}
    return {"name": name, "consumesCounters": [{"counterSet": "gpu-0", "counters": drawn}]}


def _pages(sizes: dict[str, int], *parts: dict[str, Any]) -> dict[str, DevicePage]:
    """Of devices of a node that share a set of counters."""
    counters = {name: {"value": str(size)} for name, size in sizes.items()}
    counted = resource_slice("node-1", count=2)
    counted["metadata"] = {"name": "counters"}
    counted["spec"] = {**counted["spec"], "sharedCounters": [{"name": "gpu-0", "counters": counters}]}
    snapshot = dray.load(node("node-1", labels={"zone": "a"}), counted, resource_slice("node-1", *parts, count=2))
    states = list(snapshot.device_states())
    around = Surroundings(neighbours=states, counter_sets=next(iter(snapshot.pools())).counter_sets)
    return {state.device.id.device: device_page(state, around) for state in states}


def _tree(page: DevicePage) -> list[str]:
    return [f"{'  ' * one.depth}{'*' if one.is_own else ''}{one.name}" for one in page.partitions.tree]


def test_partitions_know_what_they_are_part_of() -> None:
    pages = _pages({"one": 1, "two": 1}, _part("whole", one=1, two=1), _part("half-1", one=1), _part("half-2", two=1))
    assert _tree(pages["whole"]) == ["*whole", "  half-1", "  half-2"]
    assert _tree(pages["half-1"]) == ["whole", "  *half-1"]  # half-2 draws from another counter
    assert [(one.counter, one.draws, one.of) for one in pages["half-2"].counters] == [("two", "1", "1")]


def test_what_can_be_had_beside_each_other_is_no_part_of_each_other() -> None:
    """A half draws more than a small one from the same counter, but both can be had: the small one is of the whole."""
    smalls = [_part(f"small-{number}", slices=1) for number in (1, 2)]
    pages = _pages({"slices": 7}, _part("whole", slices=7), _part("half", slices=3), *smalls)
    assert _tree(pages["small-1"]) == ["whole", "  half", "  *small-1", "  small-2"]


def test_parts_of_parts_are_below_them() -> None:
    """Each place of the device is a counter of its own."""
    pages = _pages(
        {"a": 1, "b": 1, "c": 1, "d": 1},
        _part("first", a=1),
        _part("left", a=1, b=1),
        _part("whole", a=1, b=1, c=1, d=1),
        _part("last", d=1),
        _part("right", c=1, d=1),
    )
    assert _tree(pages["whole"]) == ["*whole", "  left", "    first", "  right", "    last"]
    assert _tree(pages["last"]) == ["whole", "  right", "    *last"]


def test_a_tree_of_very_many_keeps_what_is_near() -> None:
    smalls = [_part(f"small-{number}", slices=1) for number in range(100)]
    pages = _pages({"slices": 100}, *smalls, _part("whole", slices=100))
    page = pages["small-99"]
    assert len(page.partitions.tree) == 64
    assert page.partitions.more == 37
    assert {"whole", "  *small-99"} <= set(_tree(page))
