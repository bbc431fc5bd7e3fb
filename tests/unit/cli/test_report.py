"""`dray report`: what it writes, and what it says to what it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dray.cli.main import app

ROOT = Path(__file__).parents[3]
CLUSTER = str(ROOT / "examples" / "cluster")
CHANGE = str(ROOT / "examples" / "what-if" / "retire-node-1.yaml")
GROUPS = str(ROOT / "examples" / "scale-up")


@pytest.mark.parametrize(
    ("arguments", "begins"),
    [
        (["fleet", "-f", CLUSTER, "-o", "x.html"], b"<!doctype html>"),
        (["fleet", CLUSTER, "-o", "x.svg", "--by", "driver"], b"<svg "),
        (["fleet", CLUSTER, "-o", "x.png"], b"\x89PNG"),
        (["what-if", "-f", CLUSTER, "--apply", CHANGE, "-o", "x.html"], b"<!doctype html>"),
        (["what-if", "-f", CLUSTER, "--apply", CHANGE, "-o", "x.png"], b"\x89PNG"),
        (["scale-up", "-f", CLUSTER, "-f", GROUPS, "-o", "x.html"], b"<!doctype html>"),
    ],
)
def test_a_report_is_written(
    arguments: list[str], begins: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["report", *arguments])
    assert done.exit_code == 0, done.output
    (file,) = tmp_path.iterdir()
    assert file.read_bytes().startswith(begins)
    assert done.stdout.startswith(f"Written: {file.name}")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["fleet", "-f", CLUSTER, "-o", "x.pdf"], "told by the end of the name"),
        (["scale-up", "-f", CLUSTER, "-f", GROUPS, "-o", "x.svg"], "Give NAME.html."),
        (["fleet", "-f", CLUSTER, "-o", "none/x.html"], "cannot write none/x.html"),
        (["fleet", "-f", CLUSTER, "-o", "x.html", "--by", "nonsense"], "--by: cannot group by 'nonsense'"),
        (["fleet", "-f", "none.yaml", "-o", "x.html"], "none.yaml"),
        (["fleet", "-f", CLUSTER, "--context", "x", "-o", "x.html"], "give one of them"),
        (["what-if", "-f", CLUSTER, "-o", "x.html"], "nothing to compare"),
    ],
)
def test_what_cannot_be_written_is_told(
    arguments: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["report", *arguments])
    assert done.exit_code == 2
    assert told in done.stderr
    assert list(tmp_path.iterdir()) == []
