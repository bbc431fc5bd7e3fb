"""Placeholders and repetition in profiles."""

from __future__ import annotations

from typing import Any

import pytest

from dray.simulation.templates import TemplateError, Values, fill, repeat

VALUES: Values = {"node": "node-3", "number": 3, "gpu": 5}


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("plain", "plain"),
        ("GPU-{node}-{gpu}", "GPU-node-3-5"),
        ("{gpu/2}", "2"),
        ("{gpu%2}", "1"),
        ("{gpu*10}{gpu+1}{gpu-1}", "5064"),
        ("{{literal}} {gpu}", "{literal} 5"),
    ],
)
def test_fill(text: str, filled: str) -> None:
    assert fill(text, VALUES) == filled


def test_fill_goes_into_lists_and_keys_and_leaves_other_values_alone() -> None:
    value = {"a-{gpu}": ["{node}", 7, True, None, {"b": "{number}"}]}
    assert fill(value, VALUES) == {"a-5": ["node-3", 7, True, None, {"b": "3"}]}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{slot}", r"\{slot\} is not known here; there is gpu, node, number"),
        ("{node/2}", "computes with node, which is no number"),
        ("{gpu/0}", "divides by zero"),
        ("{gpu", "a brace that is no placeholder"),
        ("{gpu^2}", "a brace that is no placeholder"),
    ],
)
def test_a_bad_placeholder_is_named(text: str, why: str) -> None:
    with pytest.raises(TemplateError, match=why):
        fill(text, VALUES)


def test_count_numbers_entries_by_index() -> None:
    assert list(repeat({"count": 3, "name": "gpu-{index}"}, {})) == [{"name": f"gpu-{index}"} for index in range(3)]


def test_each_makes_every_combination_in_order() -> None:
    made = [entry["name"] for entry in repeat({"each": {"gpu": 2, "slot": 3}, "name": "{gpu}-{slot}"}, {})]
    assert made == ["0-0", "0-1", "0-2", "1-0", "1-1", "1-2"]


def test_an_entry_without_repetition_stands_for_itself() -> None:
    assert list(repeat({"name": "{node}"}, VALUES)) == [{"name": "node-3"}]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"count": 1, "each": {"gpu": 1}}, "exclude each other"),
        ({"count": "8"}, "index must be counted by a number"),
        ({"count": True}, "index must be counted by a number"),
        ({"count": -1}, "index must be counted by a number"),
        ({"each": ["gpu"]}, "each must be a map"),
        ({"each": {"a": 1000, "b": 1000}}, "stands for 1000000 devices"),
    ],
)
def test_a_bad_repetition_is_refused_before_anything_is_made(entry: dict[str, Any], why: str) -> None:
    with pytest.raises(TemplateError, match=why):
        list(repeat(entry, {}))
