"""`dray apply`: what it says of a plan, and how often."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dray.cli import plan
from dray.cli.main import app
from dray.what_if.plan import Plan, effect_of

NOTE = "nothing on this server ends it"


@pytest.fixture
def planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plan of a command that says a note whenever it runs, and finds what it found before."""

    def invoke(words: Sequence[str]) -> int:
        print(f"dray: {NOTE}.", file=sys.stderr)
        print(json.dumps({"pods": []}) if "json" in words else "done")
        return 2 if "broken" in words else 0

    def call(_work: Any, _command: str, _cluster: Any) -> str:
        return "uid"

    monkeypatch.setattr(plan, "_invoke", invoke)
    monkeypatch.setattr("dray.cli.live.call", call)
    file = tmp_path / "p.plan"
    effect = effect_of({"pods": []})
    for name, command in ((file, ("taint", "device")), (tmp_path / "broken.plan", ("taint", "broken"))):
        plan._write(name, Plan(made="now", cluster="uid", command=command, manifests=(), effect=effect, summary=""))
    return file


@pytest.mark.parametrize(
    ("name", "options", "code"),
    [("p", (), 0), ("p", ("--dry-run",), 0), ("broken", (), 2), ("broken", ("--dry-run",), 2)],
)
def test_a_note_is_said_once(planned: Path, name: str, options: tuple[str, ...], code: int) -> None:
    done = CliRunner().invoke(app, ["apply", str(planned.with_stem(name)), *options])
    assert (done.exit_code, done.stderr.count(NOTE)) == (code, 1)


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        (
            {"apiVersion": "dray.dev/v1", "kind": "NodeGroup", "metadata": {"name": "g"}},
            "NodeGroup g cannot be applied",
        ),
        (
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-"}},
            "Pod (no name) cannot be applied: give it a metadata.name",
        ),
    ],
)
def test_what_cannot_be_applied_is_refused_before_anything_is_done(
    planned: Path, manifest: dict[str, Any], told: str
) -> None:
    """When it is planned, and in a plan that somebody changed."""
    file = planned.with_name("given.json")
    file.write_text(json.dumps(manifest))
    done = CliRunner().invoke(app, ["plan", "change", str(file), "-o", str(planned.with_name("new.plan"))])
    assert (done.exit_code, told in done.stderr) == (2, True)
    changed = planned.with_name("changed.plan")
    effect = effect_of({"pods": []})
    made = Plan(made="now", cluster="uid", command=("change",), manifests=(manifest,), effect=effect, summary="")
    plan._write(changed, made)
    done = CliRunner().invoke(app, ["apply", str(changed)])
    assert (done.exit_code, told in done.stderr) == (2, True)


def test_a_plan_that_could_not_be_made_leaves_no_older_one_to_apply(planned: Path) -> None:
    done = CliRunner().invoke(app, ["plan", "rule", "-o", str(planned)])
    assert done.exit_code == 2
    assert "no manifests. Give files right after the command; -f is a cluster to plan for." in done.stderr
    assert not planned.exists()


@pytest.mark.parametrize("content", ["apiVersion: v1\nkind: Pod\n", '{"kind": "Pod"}', "\x00"])
def test_a_plan_takes_the_place_of_another_plan_only(planned: Path, content: str) -> None:
    planned.write_text(content)
    done = CliRunner().invoke(app, ["plan", "taint", "device", "k:NoSchedule", "-o", str(planned)])
    assert done.exit_code == 2
    assert f"{planned} is there, and no plan: it stays." in done.stderr
    assert planned.read_text() == content


@pytest.mark.parametrize("words", ["drain pause node/a", "drain resume node/a", "get nodes", "untaint node a"])
def test_what_cannot_be_planned_is_named(words: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["plan", *words.split(), "-o", str(tmp_path / "p")])
    assert done.exit_code == 2
    assert f"{' '.join(words.split()[:2])!r} cannot be planned. Give taint" in done.stderr
