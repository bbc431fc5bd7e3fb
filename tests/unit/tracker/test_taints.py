"""Taints of devices: from slices, from rules, and their identities."""

from __future__ import annotations

import msgspec
import pytest

from dray.api.resource import DeviceSelector, DeviceTaintRule
from dray.tracker import Change, Remove, Tracker, Upsert
from tracker_objects import (
    DRIVER,
    device,
    device_class,
    find,
    model_is,
    names,
    on,
    rule,
    slice_,
    taint,
    taint_keys,
    tainted,
    tracking,
)
from work import lines_run

OTHER = "nic.example.com"
A, B = taint("example.com/a"), taint("example.com/b")


@pytest.mark.req("5055-09", "5055-75", "5055-144", "SVS-01")
def test_taints_come_from_entries_and_from_any_slice_of_the_pool() -> None:
    tracker = tracking(
        slice_("b-taints", count=2, taints=(on("x", B),)),
        slice_("a-devices", device("x", taints=(A,)), "y", count=2),
        slice_("elsewhere", "x", pool="node-2"),
        slice_("other-driver", "x", driver=OTHER),
    )
    assert taint_keys(find(tracker, "x")) == ["a", "b"]
    assert tainted(tracker) == ["node-1/x"]


@pytest.mark.req("5055-07", "5055-37", "5055-38")
def test_several_taints_on_a_device() -> None:
    no_execute = taint("example.com/a", "NoExecute")
    entries = (on("x", A), on("x", no_execute), on("x", A))
    tracker = tracking(
        slice_("s", device("x", taints=(A,)), count=2),
        slice_("t", count=2, taints=entries),
        rule("r", everything=True, taint=A),
    )
    found = find(tracker, "x").taints
    assert [tracked.taint.effect for tracked in found] == ["NoSchedule", "NoExecute", "NoSchedule"]
    assert [tracked.rule for tracked in found] == [None, None, "r"]


@pytest.mark.req("5055-08")
def test_a_taint_on_an_unknown_device_is_ignored() -> None:
    tracker = tracking(slice_("s", "x", count=2))
    assert tracker.apply(Upsert(slice_("t", count=2, taints=(on("pool-health", A),)))).pools
    assert tainted(tracker) == []


@pytest.mark.req("implied-12")
def test_taints_of_an_outdated_generation_are_ignored() -> None:
    tracker = tracking(slice_("s", "x", generation=2), slice_("t", taints=(on("x", A),)))
    assert tainted(tracker) == []


@pytest.mark.req("SVS-08", "implied-17")
@pytest.mark.parametrize(
    ("effect", "counts_as"),
    [("NoSchedule", "NoSchedule"), ("NoExecute", "NoExecute"), ("None", "None"), ("NoConnect", "None"), ("", "None")],
)
def test_unknown_effects_count_like_none(effect: str, counts_as: str) -> None:
    (tracked,) = find(tracking(slice_("s", device("x", taints=(taint(effect=effect),)))), "x").taints
    assert tracked.taint.effect == effect
    assert tracked.effect == counts_as


CLUSTER = (
    slice_("a", device("x", {"model": "A"}), device("y", {"model": "B"})),
    slice_("b", device("x", {"model": "A"}), pool="node-2"),
    slice_("c", device("x", {"model": "A"}), driver=OTHER),
)
EVERYTHING = ["node-1/x", "node-1/y", "node-2/x", "node-1/x"]


@pytest.mark.req("5055-62", "5055-66", "5055-67", "5055-68", "5055-70", "5055-71", "5055-72", "5055-73")
@pytest.mark.req("SVS-10", "SVS-11", "X-02")
@pytest.mark.parametrize(
    ("applied", "expected"),
    [
        (rule("absent"), []),
        (rule("empty", everything=True), EVERYTHING),
        (rule("driver", driver=OTHER), ["node-1/x"]),
        (rule("pool", pool="node-1"), ["node-1/x", "node-1/y", "node-1/x"]),
        (rule("device", device="x"), ["node-1/x", "node-2/x", "node-1/x"]),
        (rule("device-y", device="y"), ["node-1/y"]),
        (rule("all", driver=DRIVER, pool="node-1", device="y"), ["node-1/y"]),
        (rule("pool-and-device", pool="node-1", device="x"), ["node-1/x", "node-1/x"]),
        (rule("wrong-pool", driver=DRIVER, pool="node-3"), []),
        (rule("empty-driver", driver=""), []),
        (rule("cel", f'device.driver == "{DRIVER}"', model_is("A")), ["node-1/x", "node-2/x"]),
        (rule("one-false", f'device.driver == "{DRIVER}"', "false"), []),
        (rule("cel-and-device", f'device.driver == "{DRIVER}"', device="x"), ["node-1/x", "node-2/x"]),
        (rule("cel-and-pool", model_is("A"), driver=DRIVER, pool="node-1"), ["node-1/x"]),
    ],
    ids=lambda value: value.metadata.name if isinstance(value, DeviceTaintRule) else "",
)
def test_what_a_rule_selects(applied: DeviceTaintRule, expected: list[str]) -> None:
    tracker = tracking(*CLUSTER, applied)
    assert tainted(tracker) == expected
    assert len(tracker.selected(applied.metadata.name)) == len(expected)
    assert not tracker.problems
    assert tainted(tracking(applied, *CLUSTER)) == expected, "the order of events does not matter"


@pytest.mark.req("5055-69", "5055-65")
def test_rules_by_class_follow_the_class() -> None:
    tracker = tracking(*CLUSTER, rule("r", device_class_name="gpu"))
    assert tainted(tracker) == [], "a class that is missing matches nothing"
    tracker.apply(Upsert(device_class("gpu", f'device.driver == "{DRIVER}"')))
    assert tainted(tracker) == ["node-1/x", "node-1/y", "node-2/x"]
    change = tracker.apply(Upsert(device_class("gpu", f'device.driver == "{DRIVER}"', model_is("B"))))
    assert tainted(tracker) == ["node-1/y"]
    assert change.pools == {(DRIVER, "node-1"), (DRIVER, "node-2")}
    tracker.apply(Upsert(device_class("gpu")))
    assert tainted(tracker) == EVERYTHING
    tracker.apply(Remove("DeviceClass", "gpu"))
    assert tainted(tracker) == []


def test_rules_by_class_need_their_own_selectors_too() -> None:
    by_class = device_class("gpu", f'device.driver == "{DRIVER}"')
    assert tainted(tracking(*CLUSTER, by_class, rule("r", model_is("B"), device_class_name="gpu"))) == ["node-1/y"]


def test_a_class_that_no_rule_names_changes_nothing() -> None:
    assert tracking(*CLUSTER, rule("r", everything=True)).apply(Upsert(device_class("gpu"))) == Change()


@pytest.mark.req("5055-63", "5055-81")
def test_rule_taints_add_to_driver_taints() -> None:
    tracker = tracking(slice_("s", device("x", taints=(A,))), rule("z", everything=True), rule("r", device="x"))
    assert taint_keys(find(tracker, "x")) == ["a", "r", "z"]
    assert [tracked.rule for tracked in find(tracker, "x").taints] == [None, "r", "z"]
    tracker.apply(Remove("DeviceTaintRule", "r"))
    tracker.apply(Remove("DeviceTaintRule", "z"))
    assert taint_keys(find(tracker, "x")) == ["a"]


@pytest.mark.req("5055-65", "5055-74")
def test_rules_leave_slices_alone_and_are_reported_as_changes_of_pools() -> None:
    published = slice_("s", device("x", {"model": "A"}))
    before = msgspec.json.encode(published, enc_hook=str)
    tracker = tracking(published)
    change = tracker.apply(Upsert(rule("r", model_is("A"))))
    assert change.pools == {(DRIVER, "node-1")}
    assert msgspec.json.encode(published, enc_hook=str) == before


@pytest.mark.req("5055-77")
def test_a_half_published_taint_set_cannot_be_used() -> None:
    tracker = tracking(slice_("s", "x", "y", count=2), slice_("t", count=2))
    tracker.apply(Upsert(slice_("t", count=3, generation=2, taints=(on("x", A),))))
    view = tracker.pool(DRIVER, "node-1")
    assert view is not None
    assert view.incomplete


def test_a_rule_touches_only_the_devices_that_it_selects() -> None:
    tracker = tracking(*CLUSTER)
    before = {found.id: found for found in tracker.devices()}
    tracker.apply(Upsert(rule("r", device="y")))
    changed = [found for found in tracker.devices() if found is not before[found.id]]
    assert names(changed) == ["y"]
    assert tracker.apply(Upsert(rule("r", device="y"))) == Change()


class TestIdentity:
    """5055-80: ids stay while a taint stays."""

    @pytest.mark.req("5055-80")
    def test_of_a_rule_whatever_is_edited(self) -> None:
        tracker = tracking(slice_("s", "x", "y"), rule("r", device="x", taint=A, uid="1"))
        (before,) = find(tracker, "x").taints
        tracker.apply(Upsert(rule("r", everything=True, taint=taint(effect="NoExecute"), uid="1")))
        (after,) = find(tracker, "y").taints
        assert after.id == before.id
        assert after.effect == "NoExecute"
        assert find(tracker, "x").taints[0] is after

    @pytest.mark.req("5055-80")
    def test_of_another_rule_with_the_same_name(self) -> None:
        tracker = tracking(slice_("s", "x"), rule("r", everything=True, uid="1"))
        (before,) = find(tracker, "x").taints
        tracker.apply(Upsert(rule("r", everything=True, uid="2")))
        assert find(tracker, "x").taints[0].id != before.id

    @pytest.mark.req("5055-80")
    def test_of_taints_in_slices_by_their_attributes(self) -> None:
        tracker = tracking(slice_("s", device("x", taints=(A,)), device("y", taints=(A, B))))
        (before,) = find(tracker, "x").taints
        assert find(tracker, "y").taints[0] is before, "the same taint on several devices is one"
        tracker.apply(Upsert(slice_("s", device("x", taints=(B, A)), "y", generation=2)))
        assert find(tracker, "x").taints[1] is before
        edited = taint("example.com/a", data={"since": [1, 2]})
        tracker.apply(Upsert(slice_("s", device("x", taints=(edited,)), generation=2)))
        assert find(tracker, "x").taints[0].id != before.id

    @pytest.mark.req("5055-80")
    def test_of_different_pools_differ(self) -> None:
        tracker = tracking(slice_("s", device("x", taints=(A,))), slice_("t", device("x", taints=(A,)), pool="node-2"))
        assert find(tracker, "x").taints[0].id != find(tracker, "x", pool="node-2").taints[0].id

    def test_of_taints_with_equal_data(self) -> None:
        one, other = taint(data={"a": 1, "b": 2}), taint(data={"b": 2, "a": 1})
        tracker = tracking(slice_("s", device("x", taints=(one,))))
        (before,) = find(tracker, "x").taints
        tracker.apply(Upsert(slice_("s", device("x", taints=(other,)), generation=2)))
        assert find(tracker, "x").taints[0].id == before.id


class TestErrors:
    """X-05, SVS-12: a CEL error skips the device and is reported, once per selector."""

    @pytest.mark.req("X-05", "SVS-12")
    def test_at_run_time(self) -> None:
        tracker = tracking(slice_("a", device("x", {"model": "A"}), "y", "z"), rule("r", "true", model_is("A")))
        assert tainted(tracker) == ["node-1/x"]
        (problem,) = tracker.problems
        assert (problem.kind, problem.name, problem.reason) == ("DeviceTaintRule", "r", "CELRuntimeError")
        assert (problem.selector, problem.device_class, problem.count) == (1, None, 2)
        assert problem.device is not None
        assert str(problem.device) == f"{DRIVER}/node-1/y"
        assert problem.message.startswith("selector #1: runtime error: no such key: model")

    @pytest.mark.req("SVS-12")
    def test_follow_what_is_there(self) -> None:
        tracker = tracking(slice_("a", "x"), slice_("b", "y", pool="node-2"), rule("r", model_is("A")))
        assert [problem.count for problem in tracker.problems] == [2]
        tracker.apply(Upsert(slice_("a", device("x", {"model": "A"}))))
        (problem,) = tracker.problems
        assert (problem.count, str(problem.device)) == (1, f"{DRIVER}/node-2/y")
        tracker.apply(Remove("ResourceSlice", "b"))
        assert tracker.problems == []

    def test_only_of_devices_that_the_other_criteria_select(self) -> None:
        assert tracking(*CLUSTER, rule("r", model_is("A"), driver=DRIVER)).problems == []
        assert tracking(*CLUSTER, rule("r", model_is("A"), pool="node-2", driver=DRIVER)).problems == []
        assert (
            tracking(slice_("a", "x", device("y", {"model": "A"})), rule("r", model_is("A"), device="y")).problems == []
        )

    def test_of_a_class_name_the_class(self) -> None:
        tracker = tracking(slice_("a", "x"), device_class("gpu", model_is("A")), rule("r", device_class_name="gpu"))
        (problem,) = tracker.problems
        assert (problem.selector, problem.device_class) == (0, "gpu")
        assert problem.message.startswith("device class gpu: selector #0: runtime error: ")

    def test_at_compile_time(self) -> None:
        tracker = tracking(*CLUSTER, rule("r", "device.nonsense", "true"))
        assert tainted(tracker) == []
        (problem,) = tracker.problems
        assert (problem.reason, problem.selector, problem.device, problem.count) == ("CELCompileError", 0, None, 0)

    def test_selectors_of_an_unknown_kind_match_nothing(self) -> None:
        tracker = tracking(*CLUSTER)
        tracker.apply(Upsert(rule("r", everything=True, selectors=(DeviceSelector(),))))
        assert tainted(tracker) == []
        assert [problem.reason for problem in tracker.problems] == ["UnsupportedSelector"]

    def test_a_value_that_cannot_be_read_fails_every_expression(self) -> None:
        tracker = tracking(
            slice_("a", device("x", {"model": "A", "version": "v1.x"}), device("y", {"model": "A"})),
            rule("r", model_is("A")),
            rule("s", model_is("B")),
        )
        assert tainted(tracker) == ["node-1/y"]
        assert [(problem.name, problem.count) for problem in tracker.problems] == [("r", 1), ("s", 1)]


@pytest.mark.req("5055-114", "SVS-14")
def test_switches() -> None:
    objects = (slice_("s", device("x", taints=(A,)), count=2), slice_("t", count=2, taints=(on("x", B),)))
    everything = rule("r", everything=True)
    assert taint_keys(find(tracking(*objects, everything), "x")) == ["a", "b", "r"]
    without_rules = tracking(*objects, everything, taint_rules=False)
    assert taint_keys(find(without_rules, "x")) == ["a", "b"]
    assert without_rules.apply(Remove.of(everything)) == Change()
    without_taints = tracking(*objects, everything, taints=False)
    assert find(without_taints, "x").taints == ()
    assert tracking(rule("r", "nonsense"), taint_rules=False).problems == []


def test_unknown_rules_select_nothing() -> None:
    assert Tracker().selected("nobody") == ()


@pytest.mark.req("5055-139", "5055-82")
def test_one_rule_among_many_touches_only_what_it_selects() -> None:
    slices = [slice_(f"s{number}", "x", "y", pool=f"node-{number}") for number in range(1_000)]
    tracker = tracking(*slices, *(rule(f"r{number}", pool=f"node-{number}", taint=A) for number in range(10)))
    before = {found.id: found for found in tracker.devices()}
    assert tracker.apply(Upsert(rule("one-more", pool="node-500", taint=B))).pools == {(DRIVER, "node-500")}
    assert [found.id.pool for found in tracker.devices() if before[found.id] is not found] == ["node-500"] * 2
    last, fewer = Upsert(rule("last", pool="node-50", taint=B)), tracking(*slices[:100])
    assert lines_run(lambda: tracker.apply(last)).total() < 2 * lines_run(lambda: fewer.apply(last)).total()
