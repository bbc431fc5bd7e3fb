"""Replays of the example: the same every time, close to what was recorded, and different where rules are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from dray.cli.main import app
from dray.recording import read_recording
from dray.replay import ChangeError, History, Replayed, compare, load_changes, measure, read_history, replay
from dray.replay.measures import Measures

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "replay"
MORNING = EXAMPLES / "morning.recording"
SOFTER = str(EXAMPLES / "keep-running.yaml")
GROUPS = str(EXAMPLES / "node-groups.yaml")


@cache
def morning() -> History:
    return read_history(read_recording(MORNING))


@cache
def recorded() -> Measures:
    return measure(morning())


@cache
def replayed(*changes: str) -> Replayed:
    return replay(morning(), load_changes(changes, morning()) if changes else None)


def test_dray_decides_as_it_did_when_it_was_recorded() -> None:
    """The example was recorded from dray itself, so that a replay without changes is the same but for milliseconds."""
    before, after = recorded(), replayed().measures
    assert before.pods == after.pods == 63
    assert before.never_ran_count == after.never_ran_count == 0
    assert before.evictions_by_reason == after.evictions_by_reason == {"DeletionByDeviceTaintManager": 3}
    assert before.waits.p95 == pytest.approx(after.waits.p95, abs=30)
    assert before.waits.max == pytest.approx(after.waits.max, abs=30)
    assert before.utilisation == pytest.approx(after.utilisation, abs=0.02)
    assert before.fragmentation == pytest.approx(after.fragmentation, abs=0.05)
    assert replayed().refused == 0
    assert not replayed().problems


def test_another_effect_evicts_nobody() -> None:
    changed = replayed(SOFTER).measures
    assert changed.evictions == 0
    assert changed.pods == 60, "nobody had to come again"


def test_more_nodes_shorten_waits() -> None:
    found = replayed(GROUPS)
    assert 1 <= found.nodes_added["more"] <= 2
    assert found.measures.nodes == 4 + found.nodes_added["more"]
    assert (found.measures.waits.max or 0) < (recorded().waits.max or 0) / 2


def test_a_policy_decides_about_evictions() -> None:
    """`checkpoint` waits for pods to say that they have saved their work, which these never do."""
    found = replayed("checkpoint=deadline:24h").measures
    assert found.evictions < recorded().evictions


def test_the_same_file_is_the_same_answer_in_every_process() -> None:
    command = [sys.executable, "-c", "from dray.cli.main import main; main()", "replay", str(MORNING), "-o", "json"]
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    other = json.loads(subprocess.run(command, check=True, capture_output=True, env=environment).stdout)
    here = compare(morning(), recorded(), replayed()).to_dict()
    assert {key: other[key] for key in here} == json.loads(json.dumps(here))


def test_work_that_fits_nowhere_never_runs_and_it_is_said_why(tmp_path: Path) -> None:
    rule = tmp_path / "rule.yaml"
    rule.write_text(
        "apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: all}\n"
        "spec: {deviceSelector: {driver: gpu.example.com}, taint: {key: a, effect: NoSchedule}}\n"
    )
    hour = msgspec.structs.replace(morning(), end=morning().start + 3600)
    found = replay(hour, load_changes([str(rule)], hour)).measures
    assert found.pods == found.never_ran_count > 5
    assert found.placed == 0
    assert "taint" in found.never_ran[0].why
    assert found.utilisation == 0
    assert found.samples[-1].pending == found.pods


def dray(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["replay", *arguments])


def test_the_columns_are_side_by_side() -> None:
    rows = compare(morning(), recorded(), replayed(), replayed(SOFTER)).rows()
    assert ("evictions", "3", "3", "0") in rows
    assert len(compare(morning(), recorded(), replayed()).rows()[0]) == 3


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("nothing",), "nothing cannot be read: no such file"),
        ((SOFTER,), "is not a recording"),
        ((str(MORNING), "--speed", "fast"), "'fast' is not how many times as fast; write for example 60"),
        ((str(MORNING), "--speed", "0"), "is not how many times as fast"),
        ((str(MORNING), "--with", "nothing.yaml"), "nothing.yaml: cannot be read"),
        ((str(MORNING), "--with", "no-such-policy"), "no-such-policy"),
        ((str(MORNING), "--with", "pdb", "--with", "delete"), "give one eviction policy"),
        ((str(MORNING), "--with", str(ROOT / "examples" / "quota")), "cannot be given; there is"),
    ],
)
def test_what_cannot_be_used_is_refused(given: tuple[str, ...], why: str) -> None:
    done = dray(*given)
    assert done.exit_code == 2
    assert why in done.stderr
    assert "Traceback" not in done.stderr


def test_a_recording_that_was_cut_off_is_replayed_up_to_there(tmp_path: Path) -> None:
    data = MORNING.read_bytes()
    (tmp_path / "cut").write_bytes(data[: len(data) // 2])
    done = dray(str(tmp_path / "cut"), "--with", SOFTER)
    assert done.exit_code == 0
    assert "was cut off: it is read up to second" in done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0] == ["RECORDED", "REPLAYED", "WITH", "CHANGES"]
    assert next(line for line in lines if line[:2] == ["got", "one"])[2] != "0"


def test_a_pace_is_kept() -> None:
    """Ten minutes in half a second: what is asked for is slower than what goes."""
    short = msgspec.structs.replace(morning(), end=morning().start + 600)
    began = time.monotonic()
    replay(short, pace=1200)
    assert time.monotonic() - began >= 0.5


def test_a_node_group_that_is_wrong_is_named(tmp_path: Path) -> None:
    group = tmp_path / "group.yaml"
    group.write_text("apiVersion: dray.dev/v1\nkind: NodeGroup\nmetadata: {name: a}\nspec: {fromNode: nobody}\n")
    with pytest.raises(ChangeError, match="there is no node nobody"):
        load_changes([str(group)], morning())
