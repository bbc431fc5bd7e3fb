"""Days that are recorded are not lived through again, and what they came across is added up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fault_simulation.coverage import FAULTS, STATES
from soak import days


def _day(seed: int, problems: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"seed": seed, "problems": list(problems), "writes": 10, "met": [["slow", "pods wait", 2]]}


def test_goes_on_where_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "days.jsonl"
    known = [{"commit": "now", **_day(10_000)}, {"commit": "old", **_day(10_001)}]
    record.write_text("".join(json.dumps(day) + "\n" for day in known) + '{"commit": "now", "se')
    asked: list[int] = []

    def live_through(_kind: str, seeds: Any, _jobs: int, _seconds: float) -> Any:
        asked.extend(seeds)
        return [_day(seed) for seed in asked]

    monkeypatch.setattr(days, "commit", lambda: "now")
    monkeypatch.setattr(days, "live_through", live_through)
    assert days.main(["--seeds", "3", "--record", str(record)]) == 0
    assert asked == [10_001, 10_002]
    assert f"3 days, 30 writes checked, 1 of {len(FAULTS) * len(STATES)} pairs" in capsys.readouterr().out
    assert [day["seed"] for day in days.read(record, "now")] == [10_000, 10_001, 10_002]


def test_what_went_wrong_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(days, "live_through", lambda *_: [_day(10_000, ("at 3.000s: a device was given twice",))])
    assert days.main(["--seeds", "1", "--record", str(tmp_path / "days.jsonl")]) == 1
    assert "seed 10000: at 3.000s: a device was given twice" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["servers", "stores"])
def test_every_kind_of_day_is_lived_through(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "days.jsonl"
    monkeypatch.setattr(days, "commit", lambda: "now")
    assert days.main(["--kind", kind, "--first", "1", "--seeds", "1", "--record", str(record)]) == 0
    (day,) = days.read(record, "now")
    assert day["seed"] == 1
    assert day["writes"] > 0
    assert "1 days, " in capsys.readouterr().out


def test_a_history_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_seed: int) -> Any:
        raise AssertionError("an update was lost")

    monkeypatch.setitem(days.KINDS, "stores", days.Kind(fails, 0, 1))
    day = days.live("stores", 3)
    assert day["seed"] == 3
    assert "an update was lost" in day["problems"][0]
