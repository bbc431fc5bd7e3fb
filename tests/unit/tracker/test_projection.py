"""Expressions are evaluated once per distinct combination of what they read, and never for what they cannot match."""

from __future__ import annotations

import pytest

from dray import cel
from dray.api.resource import Device, DeviceAttribute, ResourceSlice
from dray.tracker import Upsert
from tracker_objects import DRIVER, device, find, model_is, patch, rule, slice_, tainted, tracking, values

OWN = f'device.attributes["{DRIVER}"]'


class Counter:
    """How often expressions were evaluated."""

    def __init__(self) -> None:
        self.evaluations = 0

    def taken(self) -> int:
        """Since the last time."""
        taken, self.evaluations = self.evaluations, 0
        return taken


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    counted = Counter()
    original = cel.Selector.matches

    def matches(self: cel.Selector, view: cel.DeviceView) -> bool:
        counted.evaluations += 1
        return original(self, view)

    monkeypatch.setattr(cel.Selector, "matches", matches)
    return counted


def nodes(count: int) -> list[ResourceSlice]:
    """Slices of four devices: two models in turn, memory by half, everything else unique."""
    return [
        slice_(
            f"s{node}",
            *[
                device(f"gpu-{index}", {"model": "AB"[node % 2], "uuid": f"{node}-{index}"}, memory="84"[index // 2])
                for index in range(4)
            ],
            pool=f"node-{node}",
        )
        for node in range(count)
    ]


@pytest.mark.req("5055-82", "5027-30", "5027-51")
def test_once_per_distinct_projection(counter: Counter) -> None:
    tracker = tracking(*nodes(50))
    tracker.apply(Upsert(rule("model", f'{OWN}.model.startsWith("A")')))
    assert counter.taken() == 2
    tracker.apply(Upsert(rule("both", f'{OWN}.model != "A" && {OWN_MEMORY}.compareTo(quantity("5")) > 0')))
    assert counter.taken() == 4
    tracker.apply(Upsert(rule("driver", f'device.driver == "{DRIVER}"')))
    assert counter.taken() == 1
    tracker.apply(Upsert(rule("plain", pool="node-1")))
    tracker.apply(Upsert(patch("plain", {"note": "n"})))
    assert counter.taken() == 0


@pytest.mark.req("5055-82", "5027-51")
def test_slices_that_share_some_combinations_share_their_verdicts(counter: Counter) -> None:
    pairs = ["AB", "AC", "BC", "CA"]
    tracker = tracking(
        *[
            slice_(f"s-{pair}", *[device(f"gpu-{model}", {"model": model}) for model in pair], pool=pair)
            for pair in pairs
        ]
    )
    tracker.apply(Upsert(rule("model", f'{OWN}.model.startsWith("A")')))
    assert counter.taken() == 3
    assert tainted(tracker) == ["AB/gpu-A", "AC/gpu-A", "CA/gpu-A"]


OWN_MEMORY = f'device.capacity["{DRIVER}"].memory'


@pytest.mark.req("5027-30", "5027-38")
def test_reading_the_devices_evaluates_nothing(counter: Counter) -> None:
    """Scheduling looks at what is there already, with patches and rules or without."""
    tracker = tracking(
        *nodes(50),
        patch("p", {"tier": "fast"}, f'{OWN}.model.startsWith("A")'),
        rule("r", f'{OWN}.model == "B"'),
    )
    assert counter.taken() > 0
    for _ in range(3):
        assert sum("tier" in values(found) for found in tracker.devices()) == 100
        assert len(tainted(tracker)) == 100
    assert counter.taken() == 0


@pytest.mark.req("5027-30")
def test_a_change_evaluates_only_what_it_can_change(counter: Counter) -> None:
    tracker = tracking(*nodes(50), rule("r", f'{OWN}.model.startsWith("A")'))
    counter.taken()
    tracker.apply(Upsert(slice_("s7", device("gpu-0", {"model": "B", "uuid": "new"}), pool="node-7")))
    tracker.apply(Upsert(rule("other", driver=DRIVER)))
    assert counter.taken() == 1
    tracker.apply(Upsert(slice_("s8", device("gpu-0", {"model": "C"}), pool="node-8")))
    assert counter.taken() == 1


def test_a_required_text_is_looked_up(counter: Counter) -> None:
    tracker = tracking(*nodes(50))
    tracker.apply(Upsert(rule("r", f'device.driver == "{DRIVER}" && {OWN}.uuid == "7-1"')))
    assert tainted(tracker) == ["node-7/gpu-1"]
    assert counter.taken() == 4, "the devices of one slice"
    tracker.apply(Upsert(rule("r", f'{OWN}.uuid in ["8-2", "9-3", "none"]')))
    assert tainted(tracker) == ["node-8/gpu-2", "node-9/gpu-3"]
    assert counter.taken() == 8
    tracker.apply(Upsert(slice_("s7", device("gpu-0", {"uuid": "9-3"}), pool="node-7")))
    assert tainted(tracker) == ["node-7/gpu-0", "node-8/gpu-2", "node-9/gpu-3"]


@pytest.mark.parametrize(
    "expression",
    [
        f'{OWN}.uuid == "7-1"',
        f'has({OWN}.uuid) && "7-1" == {OWN}["uuid"]',
        f'{OWN}.uuid in ["7-1"]',
        f'{OWN}.uuid == "7-1" || false',
        f'{OWN}.model == "A" || {OWN}.uuid == "7-1"',
        f'!({OWN}.uuid == "7-1")',
        f'{OWN}.uuid == "7-1" ? true : {OWN}.model == "B"',
        f'{OWN}.missing == "x" || {OWN}.uuid == "7-1"',
        f'{OWN}.model == "B" && {OWN}.missing == "x" && {OWN}.uuid == "7-1"',
        f'{OWN}.exists(name, name == "uuid") && {OWN}.uuid == "7-1"',
    ],
)
def test_looking_up_changes_no_result(expression: str) -> None:
    tracker = tracking(*nodes(10), rule("r", expression))
    program = cel.compile(expression, mode="stored")
    expected, failures = [], 0
    for found in tracker.devices():
        try:
            if program.evaluate(found.device, DRIVER):
                expected.append(f"{found.id.pool}/{found.id.device}")
        except cel.EvaluationError:
            failures += 1
    assert tainted(tracker) == expected
    assert sum(problem.count for problem in tracker.problems) == failures


def test_a_device_without_the_required_text_fails() -> None:
    tracker = tracking(*nodes(2), slice_("s9", "gpu-0", pool="node-9"), rule("r", f'{OWN}.uuid == "none"'))
    assert [str(problem.device) for problem in tracker.problems] == [f"{DRIVER}/node-9/gpu-0"]


@pytest.mark.parametrize(
    ("expression", "yes", "no"),
    [
        (f"{OWN}.size == 1", device("x", {"size": 1}), device("x", {"size": True})),
        (f"{OWN}.size == true", device("x", {"size": True}), device("x", {"size": 1})),
        (f'{OWN}.size == "1"', device("x", {"size": "1"}), device("x", {"size": 1})),
        (f"{OWN_MEMORY}.isInteger()", device("x", memory="1"), device("x", memory="1000m")),
        (f"{OWN_MEMORY}.isInteger()", device("x", memory="1"), device("x", memory="1.0")),
        (
            "device.allowMultipleAllocations",
            device("x", allow_multiple_allocations=True),
            device("x", allow_multiple_allocations=False),
        ),
        (f'{OWN}.exists(name, name == "b")', device("x", {"a": 1, "b": 1}), device("x", {"a": 1, "c": 1})),
        (f'"b" in {OWN}', device("x", {"b": 1}), device("x", {"c": 1})),
        (
            f"size({OWN}.list) == 2",
            Device(name="x", attributes={"list": DeviceAttribute(ints=(1, 1))}),
            Device(name="x", attributes={"list": DeviceAttribute(ints=(1,))}),
        ),
    ],
)
def test_values_that_an_expression_can_tell_apart_are_kept_apart(expression: str, yes: Device, no: Device) -> None:
    for first, second in ((yes, no), (no, yes)):
        tracker = tracking(slice_("a", first), slice_("b", second, pool="node-2"), rule("r", expression))
        assert tainted(tracker) == (["node-1/x"] if first is yes else ["node-2/x"])
        later = tracking(rule("r", expression), slice_("a", first), slice_("b", second, pool="node-2"))
        assert tainted(later) == tainted(tracker)


def test_short_names_belong_to_the_driver() -> None:
    other = "nic.example.com"
    tracker = tracking(
        slice_("a", device("x", {"model": "A"})),
        slice_("b", device("x", {f"{DRIVER}/model": "A"}), pool="node-2"),
        slice_("c", device("x", {f"{DRIVER}/model": "A"}), driver=other, pool="node-3"),
        slice_("d", device("x", {"model": "A"}), driver=other, pool="node-4"),
        rule("r", f"has({OWN}.model)", model_is("A")),
    )
    assert tainted(tracker) == ["node-1/x", "node-2/x", "node-3/x"]
    assert tracker.problems == []


@pytest.mark.req("SVS-39")
@pytest.mark.parametrize("attributes", [{"model": "A", f"{DRIVER}/model": "B"}, {f"{DRIVER}/model": "B", "model": "A"}])
def test_of_two_forms_of_a_name_the_explicit_one_counts(attributes: dict[str, str]) -> None:
    tracker = tracking(slice_("a", device("x", attributes)), rule("r", model_is("B")))
    assert tainted(tracker) == ["node-1/x"]


def test_faults_of_one_slice_do_not_spread() -> None:
    sound = device("x", {"model": "A", "firmware": "v1.0.0"})
    broken = device("x", {"model": "A", "firmware": "v1"})
    for first, second in ((sound, broken), (broken, sound)):
        tracker = tracking(slice_("a", first), slice_("b", second, pool="node-2"), rule("r", model_is("A")))
        assert tainted(tracker) == (["node-1/x"] if first is sound else ["node-2/x"])


def test_patches_that_change_the_same_are_told_apart() -> None:
    tracker = tracking(slice_("a", "x"), patch("p", {"note": "n"}))
    assert find(tracker, "x").patches == ("p",)
    assert tracker.apply(Upsert(patch("q", {"note": "n"}, priority=1))).pools
    assert find(tracker, "x").patches == ("q",)
    assert values(find(tracker, "x")) == {"note": "n"}
