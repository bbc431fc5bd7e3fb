"""Names of objects as people type them."""

from __future__ import annotations

import pytest

from dray.cli import explain
from dray.cli.confirm import WORDS
from dray.cli.names import KINDS, pair, read


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
