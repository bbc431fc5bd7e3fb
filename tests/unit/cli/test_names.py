"""Names of objects as people type them."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dray.cli import explain
from dray.cli.confirm import WORDS
from dray.cli.main import app
from dray.cli.names import KINDS, pair, read

CLUSTER = Path(__file__).parents[3] / "examples" / "cluster"


@pytest.mark.parametrize(
    ("words", "targets"),
    [
        (["rule", "a"], ["rule/a"]),
        (["rule/a", "node", "b", "Slices", "c"], ["rule/a", "node/b", "Slices/c"]),
        (["rule"], ["rule"]),
        (["rule", "rule"], ["rule/rule"]),
        (["a"], ["a"]),
    ],
)
def test_a_kind_and_a_name_may_be_two_words(words: list[str], targets: list[str]) -> None:
    assert list(pair(words, WORDS)) == targets


@pytest.mark.parametrize("command", [one.name for one in explain.app.registered_commands])
def test_whatever_can_be_explained_may_have_its_namespace_and_its_kind_before_its_name(command: str) -> None:
    assert read("ml/train", "", command) == "ml/train"
    assert {read(f"{word}/ml/train", "", command) for word in KINDS[command]} == {"ml/train"}


def test_what_is_taken_away_is_in_the_namespace_of_n() -> None:
    def dray(*words: str) -> Result:
        return CliRunner().invoke(app, ["what-if", "-f", str(CLUSTER), *words])

    assert dray("--delete", "pod/trainer-1", "-n", "ml").stdout == dray("--delete", "pod/ml/trainer-1").stdout != ""
    assert dray("--delete", "claim/train-1", "-n", "ml").exit_code in (0, 1)
    assert dray("--delete", "node/node-1", "-n", "ml").stdout == dray("--delete", "node/node-1").stdout
    assert "give one of them" in dray("--delete", "pod/ml/trainer-1", "-n", "dev").stderr
