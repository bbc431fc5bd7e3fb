"""What is remembered of selectors is bounded in bytes: whoever makes claims may make them without end."""

from __future__ import annotations

import pytest

from dray.allocator import requests
from dray.allocator.judge import Judge, Memory
from dray.allocator.requests import CriteriaTable
from dray.allocator.selection import Selector
from dray.cel.backlog import Backlog
from dray.tracker import Tracker, Upsert
from dray.tracker.view import EffectiveDevice
from scheduler_objects import DRIVER, resource_slice


@pytest.fixture
def devices() -> list[EffectiveDevice]:
    tracker = Tracker()
    published = [{"name": f"gpu-{number}", "attributes": {"n": {"int": number}}} for number in range(20)]
    (key,) = tracker.apply(Upsert(resource_slice("a", *published))).pools
    return list(tracker.pools[key].devices)


def _at_least(number: int) -> str:
    return f'device.attributes["{DRIVER}"].n >= {number} && device.driver != "{"x" * 300}"'


def test_judges_together_keep_what_they_compiled_and_found_within_bounds(
    monkeypatch: pytest.MonkeyPatch, devices: list[EffectiveDevice]
) -> None:
    monkeypatch.setattr("dray.allocator.judge._COMPILED_BYTES", 200_000)
    monkeypatch.setattr("dray.allocator.judge._SHARED_VERDICTS", 50)
    memory = Memory()
    judges = [Judge((_at_least(number),), Backlog(), memory) for number in range(20)]
    for _ in range(2):
        for number, judge in enumerate(judges):
            matching = [at for at, device in enumerate(devices) if judge.judge(device) is None]
            assert matching == list(range(number, 20))
            assert len(memory.verdicts) <= 50
            assert sum(bool(judge._programs) for judge in judges) <= 200_000 // (85 * len(_at_least(0))) + 1


def test_a_table_of_criteria_is_bounded_in_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "_MOST_LETTERS", 10_000)
    table = CriteriaTable(Backlog())
    for number in range(100):
        selector = Selector(_at_least(number), 0, None)
        assert table.intern((selector,), (), {}) is table.intern((selector,), (), {})
    assert table._table.size <= 10_000
