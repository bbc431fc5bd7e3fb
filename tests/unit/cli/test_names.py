"""Names of objects as people type them."""

from __future__ import annotations

import pytest

from dray.cli.confirm import WORDS
from dray.cli.names import pair


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
