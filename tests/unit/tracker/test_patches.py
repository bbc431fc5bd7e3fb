"""ResourceSlicePatches in the view of devices."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dray.api.resource import DevicePatch, NullableDeviceAttribute, ResourceSlicePatch
from dray.tracker import Change, Remove, Upsert
from tracker_objects import (
    DRIVER,
    Value,
    device,
    device_class,
    find,
    model_is,
    patch,
    rule,
    slice_,
    tainted,
    tracking,
    values,
)

OTHER = "nic.example.com"
CLUSTER = (
    slice_("a", device("x", {"model": "A"}, memory="8Gi"), device("y", {"model": "B"})),
    slice_("b", device("x", {"model": "A"}), pool="node-2"),
    slice_("c", device("x", {"model": "A"}), driver=OTHER),
)
EARLY, LATE = "2026-06-01T10:00:00Z", "2026-06-01T11:00:00Z"


def patched(*patches: ResourceSlicePatch) -> list[str]:
    """The devices that the patches changed, as driver/pool/device without the domain."""
    tracker = tracking(*CLUSTER, *patches)
    return [f"{found.id.driver[:3]}/{found.id.pool}/{found.id.device}" for found in tracker.devices() if found.patches]


@pytest.mark.req("5027-04", "5027-17", "5027-19", "5027-05", "X-02")
@pytest.mark.parametrize(
    ("applied", "expected"),
    [
        (patch("absent", {"note": "n"}), ["gpu/node-1/x", "gpu/node-1/y", "gpu/node-2/x", "nic/node-1/x"]),
        (patch("driver", {"note": "n"}, driver=OTHER), ["nic/node-1/x"]),
        (patch("pool", {"note": "n"}, pool="node-1"), ["gpu/node-1/x", "gpu/node-1/y", "nic/node-1/x"]),
        (patch("device", {"note": "n"}, device="x"), ["gpu/node-1/x", "gpu/node-2/x", "nic/node-1/x"]),
        (patch("partial", {"note": "n"}, driver=DRIVER, pool="node-9"), []),
        (patch("cel", {"note": "n"}, model_is("B"), driver=DRIVER), ["gpu/node-1/y"]),
        (patch("cel-false", {"note": "n"}, model_is("B"), "false", driver=DRIVER), []),
        (patch("no-class", {"note": "n"}, device_class_name="gpu"), []),
    ],
    ids=lambda value: value.metadata.name if isinstance(value, ResourceSlicePatch) else "",
)
def test_what_a_patch_selects(applied: ResourceSlicePatch, expected: list[str]) -> None:
    assert patched(applied) == expected


@pytest.mark.req("5027-18", "5027-30")
def test_patches_by_class_follow_the_class() -> None:
    tracker = tracking(*CLUSTER, patch("p", {"note": "n"}, device_class_name="gpu"))
    tracker.apply(Upsert(device_class("gpu", f'device.driver == "{DRIVER}"')))
    assert "note" in values(find(tracker, "y"))
    tracker.apply(Upsert(device_class("gpu", "false")))
    assert "note" not in values(find(tracker, "y"))


@pytest.mark.req("5027-04", "5027-20", "5027-24", "5027-25", "5027-26", "5027-27", "X-10")
@pytest.mark.parametrize(
    ("attributes", "capacity", "expected"),
    [
        ({"model": "B"}, {}, {"model": "B", "other.org/size": 3, "memory": "8Gi"}),
        ({"model": None}, {}, {"other.org/size": 3, "memory": "8Gi"}),
        ({"missing": None}, {}, {"model": "A", "other.org/size": 3, "memory": "8Gi"}),
        ({"other.org/size": True}, {}, {"model": "A", "other.org/size": True, "memory": "8Gi"}),
        ({"new": "v1.2.3"}, {}, {"model": "A", "other.org/size": 3, "new": "1.2.3", "memory": "8Gi"}),
        ({"third.org/n": 1}, {}, {"model": "A", "other.org/size": 3, "third.org/n": 1, "memory": "8Gi"}),
        ({}, {"memory": "0"}, {"model": "A", "other.org/size": 3, "memory": "0"}),
        ({}, {"other.org/slots": "2"}, {"model": "A", "other.org/size": 3, "memory": "8Gi", "other.org/slots": "2"}),
    ],
)
def test_what_a_patch_does(attributes: dict[str, Value], capacity: dict[str, str], expected: dict[str, Any]) -> None:
    published = device("x", {"model": "A", "other.org/size": 3}, memory="8Gi")
    tracker = tracking(slice_("a", published), patch("p", attributes, capacity=capacity))
    assert values(find(tracker, "x")) == expected


@pytest.mark.req("5027-27", "X-10")
def test_a_slice_may_spell_out_the_drivers_domain() -> None:
    tracker = tracking(
        slice_("a", device("x", {f"{DRIVER}/model": "A", f"{DRIVER}/size": 1, "size": 2})),
        patch("p", {"model": "B", "size": 3}),
    )
    assert values(find(tracker, "x")) == {f"{DRIVER}/model": "B", f"{DRIVER}/size": 3}
    tracker.apply(Upsert(patch("p", {"model": None, "size": None})))
    assert values(find(tracker, "x")) == {}


@pytest.mark.req("5027-21", "5027-22", "5027-23", "5027-07", "implied-10")
@pytest.mark.parametrize(
    ("patches", "winner"),
    [
        ([patch("a", {"model": "low"}, priority=1), patch("b", {"model": "high"}, priority=2)], "high"),
        ([patch("a", {"model": "zero"}), patch("b", {"model": "negative"}, priority=-1)], "zero"),
        ([patch("a", {"model": "new"}, created=LATE), patch("b", {"model": "old"}, created=EARLY)], "old"),
        ([patch("a", {"model": "unborn"}), patch("b", {"model": "old"}, created=LATE)], "old"),
        ([patch("b", {"model": "second"}, created=EARLY), patch("a", {"model": "first"}, created=EARLY)], "first"),
        ([patch("a", {"model": "old"}, created=EARLY), patch("b", {"model": "new"}, created=LATE, priority=1)], "new"),
        ([patch("a", {"model": None}, priority=1), patch("b", {"model": "weak"})], None),
    ],
    ids=["priority", "negative", "older", "unborn-is-youngest", "name", "priority-before-age", "null-wins"],
)
def test_who_wins(patches: list[ResourceSlicePatch], winner: str | None) -> None:
    for ordered in (patches, patches[::-1]):
        assert values(find(tracking(*CLUSTER, *ordered), "x")).get("model") == winner


@pytest.mark.req("5027-21")
def test_the_winner_is_found_per_name() -> None:
    strong = patch("strong", {"model": "S"}, capacity={"memory": "1Gi"}, priority=5)
    weak = patch("weak", {"model": "W", "note": "W"}, capacity={"memory": "2Gi", "slots": "2"})
    idle = patch("idle", {"model": "I"}, priority=-1)
    found = find(tracking(*CLUSTER, strong, weak, idle), "x")
    assert values(found) == {"model": "S", "note": "W", "memory": "1Gi", "slots": "2"}
    assert found.patches == ("strong", "weak")


@pytest.mark.req("5027-23")
def test_an_edit_of_the_older_patch_wins() -> None:
    tracker = tracking(
        *CLUSTER, patch("old", {"model": "1"}, created=EARLY), patch("new", {"model": "2"}, created=LATE)
    )
    tracker.apply(Upsert(patch("old", {"model": "3"}, created=EARLY)))
    assert values(find(tracker, "x"))["model"] == "3"


@pytest.mark.req("5027-28", "5027-29")
def test_patches_survive_slices_and_leave_them_alone() -> None:
    published = CLUSTER[0]
    before = msgspec.json.encode(published, enc_hook=str)
    tracker = tracking(*CLUSTER, patch("p", {"model": "Z"}))
    tracker.apply(Remove.of(published))
    tracker.apply(Upsert(published))
    assert values(find(tracker, "x"))["model"] == "Z"
    assert msgspec.json.encode(published, enc_hook=str) == before
    tracker.apply(Remove("ResourceSlicePatch", "p"))
    assert find(tracker, "x").device is published.spec.devices[0]


@pytest.mark.req("5027-31", "5027-24")
def test_expressions_of_rules_see_patched_devices() -> None:
    tracker = tracking(*CLUSTER, rule("r", model_is("Z"), driver=DRIVER))
    change = tracker.apply(Upsert(patch("p", {"model": "Z"}, device="y")))
    assert tainted(tracker) == ["node-1/y"]
    assert change.pools == {(DRIVER, "node-1")}
    tracker.apply(Upsert(patch("p", {"model": None}, device="y")))
    assert tainted(tracker) == []
    (problem,) = tracker.problems
    assert str(problem.device) == f"{DRIVER}/node-1/y"


def test_expressions_of_patches_see_published_devices() -> None:
    first, second = patch("a", {"model": "Z"}), patch("b", {"note": "n"}, model_is("Z"), driver=DRIVER)
    assert "note" not in values(find(tracking(*CLUSTER, first, second), "x"))


@pytest.mark.req("5027-33", "X-05")
def test_a_cel_error_skips_the_device_and_is_reported() -> None:
    tracker = tracking(*CLUSTER, patch("p", {"note": "n"}, model_is("A")))
    assert "note" in values(find(tracker, "x"))
    assert "note" not in values(find(tracker, "x", driver=OTHER))
    (problem,) = tracker.problems
    assert (problem.kind, problem.name, problem.reason) == ("ResourceSlicePatch", "p", "CELRuntimeError")
    assert (problem.selector, problem.count) == (0, 1)


@pytest.mark.req("5027-33")
def test_a_result_that_is_no_bool_is_an_error() -> None:
    tracker = tracking(*CLUSTER, patch("p", {"note": "n"}, f'device.attributes["{DRIVER}"].model', driver=DRIVER))
    assert [problem.count for problem in tracker.problems] == [3]


@pytest.mark.req("5027-12")
def test_an_unknown_value_is_not_a_removal() -> None:
    empty = patch("p", {"model": "Z"})
    spec = msgspec.structs.replace(empty.spec.devices, attributes={f"{DRIVER}/model": NullableDeviceAttribute()})
    tracker = tracking(*CLUSTER)
    tracker.apply(Upsert(msgspec.structs.replace(empty, spec=msgspec.structs.replace(empty.spec, devices=spec))))
    assert values(find(tracker, "x"))["model"] == "A"
    (problem,) = tracker.problems
    assert problem.reason == "UnknownAttributeValue"
    assert f"{DRIVER}/model" in problem.message


def test_more_than_32_attributes_are_fine() -> None:
    many = {f"a{number}": number for number in range(32)}
    tracker = tracking(slice_("a", device("x", many)), patch("p", {f"b{number}": number for number in range(32)}))
    assert len(find(tracker, "x").device.attributes) == 64


@pytest.mark.req("5027-52")
def test_devices_that_no_patch_changes_are_the_published_objects() -> None:
    tracker = tracking(*CLUSTER, patch("same", {"model": "A"}, capacity={"memory": "8Gi"}, device="x", driver=DRIVER))
    assert find(tracker, "y").device is CLUSTER[0].spec.devices[1]
    found = find(tracker, "x")
    assert found.device is CLUSTER[0].spec.devices[0]
    assert found.patches == ()


def test_only_patched_devices_change() -> None:
    tracker = tracking(*CLUSTER)
    before = {found.id: found for found in tracker.devices()}
    tracker.apply(Upsert(patch("p", {"model": "Z"}, device="y")))
    assert [found.id.device for found in tracker.devices() if found is not before[found.id]] == ["y"]
    assert tracker.apply(Upsert(patch("p", {"model": "Z"}, device="y"))) == Change()
    assert tracker.apply(Upsert(patch("q", {"model": "Q"}, device="y", priority=-1))) == Change()


@pytest.mark.req("5027-43", "5027-44", "5027-46")
def test_without_the_feature_patches_do_nothing() -> None:
    tracker = tracking(*CLUSTER, patch("p", {"model": "Z"}, "nonsense"), patches=False)
    assert values(find(tracker, "x"))["model"] == "A"
    assert tracker.problems == []
    again = (*CLUSTER, patch("p", {"model": "Z"}))
    assert [values(find(tracking(*again, patches=on), "x"))["model"] for on in (True, False, True)] == ["Z", "A", "Z"]


def test_the_view_is_of_the_patched_device() -> None:
    view = find(tracking(*CLUSTER, patch("p", {"model": "Z"})), "x").view
    assert view.attributes[DRIVER]["model"] == "Z"


@pytest.mark.req("X-01", "5027-57", "5027-36")
def test_taints_come_from_rules_only() -> None:
    assert "taints" not in DevicePatch.__struct_fields__
    tracker = tracking(*CLUSTER, patch("p", {"model": "Z"}), rule("r", model_is("Z"), driver=DRIVER, device="y"))
    assert tainted(tracker) == ["node-1/y"]
