"""What concerns thousands of devices is done with some of them at a time, if the tracker is made so."""

from __future__ import annotations

import pytest

from dray.tracker import Event, Remove, Tracker, Upsert
from dray.tracker.current_slice import CurrentSlice
from tracker_objects import device, device_class, patch, rule, slice_, taint, tainted

POOLS = 60
DEVICES = 16
AT_ONCE = 10 * DEVICES


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The devices that are tainted anew."""
    done: list[str] = []
    original = CurrentSlice.taint

    def count(self: CurrentSlice, *arguments: object) -> None:
        done.extend(each.name for each in self.patched.devices)
        original(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(CurrentSlice, "taint", count)
    return done


def made(devices: int = DEVICES, pools: int = POOLS) -> Tracker:
    tracker = Tracker(at_once=AT_ONCE)
    entries = [device(f"d{number}") for number in range(devices)]
    tracker.apply_all(Upsert(slice_(f"s{number}", *entries, pool=f"pool-{number:02}")) for number in range(pools))
    assert not tracker.is_behind
    return tracker


CHANGES: dict[str, tuple[list[Event], Event]] = {
    "rule": ([], Upsert(rule("r", everything=True))),
    "rule that is gone": ([Upsert(rule("r", everything=True))], Remove("DeviceTaintRule", "r")),
    "taint": (
        [Upsert(rule("r", everything=True))],
        Upsert(rule("r", everything=True, taint=taint("example.com/other"))),
    ),
    "patch": ([], Upsert(patch("p", {"model": "A"}))),
    "class": ([Upsert(rule("r", device_class_name="c"))], Upsert(device_class("c", "true"))),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_change_takes_effect_on_some_devices_at_a_time(work: list[str], kind: str) -> None:
    before, event = CHANGES[kind]
    tracker = made()
    tracker.apply_all(before)
    while tracker.is_behind:
        tracker.go_on()
    work.clear()
    changed = [*tracker.apply(event).pools]
    assert len(changed) == len(work) // DEVICES == AT_ONCE // DEVICES
    while tracker.is_behind:
        work.clear()
        changed += tracker.go_on().pools
        assert len(work) <= AT_ONCE
    assert len(changed) == len(set(changed)) == POOLS


def test_pools_count_by_what_they_cost(work: list[str]) -> None:
    """Thousands of small ones are as much work as fewer large ones; one that is larger than all is done as a whole."""
    for devices, pools in ((1, 20), (8, 20), (40, 4), (100, 1), (200, 1)):
        tracker = made(devices, 30)
        work.clear()
        assert len(tracker.apply(CHANGES["rule"][1]).pools) == pools


def test_to_find_very_many_slices_is_enough_for_a_turn(work: list[str]) -> None:
    tracker = made(1, AT_ONCE + 1)
    work.clear()
    assert tracker.apply(CHANGES["rule"][1]).pools == frozenset()
    assert work == []
    while tracker.is_behind:
        tracker.go_on()
        assert len(tracker.selected("r")) == AT_ONCE + 1
    assert len(work) == AT_ONCE + 1


def test_slices_and_what_concerns_few_devices_take_effect_at_once() -> None:
    tracker = made()
    tracker.apply(Upsert(rule("few", pool="pool-59")))
    assert len(tainted(tracker)) == DEVICES
    tracker.apply(Upsert(rule("r", everything=True)))
    assert tracker.is_behind
    tracker.apply(Upsert(slice_("s50", device("other"), pool="pool-50", generation=2)))
    tracker.apply(Upsert(slice_("new", device("d"), pool="new")))
    assert {"pool-50/other", "new/d"} <= set(tainted(tracker))


def test_what_comes_while_it_is_behind_waits_for_its_turn(work: list[str]) -> None:
    """Many rules may come in one turn of a loop."""
    tracker = made()
    tracker.apply(Upsert(rule("r0", everything=True)))
    work.clear()
    for number in range(1, 50):
        assert not tracker.apply(Upsert(rule(f"r{number}", everything=True))).pools
    assert work == []
    while tracker.is_behind:
        tracker.go_on()
    assert len(work) == POOLS * DEVICES
    assert all(len(found.taints) == 50 for found in tracker.devices())


def test_a_rule_that_is_taken_away_meanwhile_taints_nothing() -> None:
    tracker = made()
    tracker.apply(Upsert(rule("r", everything=True)))
    tracker.go_on()
    tracker.apply(Remove("DeviceTaintRule", "r"))
    count = len(tainted(tracker))
    while tracker.is_behind:
        tracker.go_on()
        assert len(tainted(tracker)) <= count
    assert tainted(tracker) == []


def test_slices_that_are_gone_wait_no_more() -> None:
    tracker = made()
    tracker.apply(Upsert(rule("r", everything=True)))
    tracker.apply_all(Remove("ResourceSlice", f"s{number}") for number in range(POOLS))
    assert not tracker.is_behind
    assert not tracker.pools
