"""What an annotation of a node says about how fast pods leave it."""

from __future__ import annotations

import pytest

from dray.api.node_annotations import Ration, read_rations, write_entries
from dray.api.taints import TaintName

NAME = "dray.dev/evictions-per-second"


def name(key: str) -> TaintName:
    return TaintName(key, "NoExecute")


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("", {}),
        ("k:NoExecute=5", {name("k"): Ration(5)}),
        ("k:NoExecute=5@rack-3", {name("k"): Ration(5, "rack-3")}),
        (
            " example.com/k:NoExecute=5 , other:NoExecute=1@a ,",
            {name("example.com/k"): Ration(5), name("other"): Ration(1, "a")},
        ),
    ],
)
def test_each_taint_has_an_entry(text: str, entries: dict[TaintName, Ration]) -> None:
    assert read_rations({NAME: text}) == (entries, ())
    assert read_rations({NAME: write_entries(entries) or ""}).entries == entries


def test_nothing_to_say_is_no_annotation() -> None:
    assert write_entries({}) is None
    assert read_rations({}) == ({}, ())


@pytest.mark.req("implied-9")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("5", "'5' is not KEY:NoExecute=RATE"),
        ("k=5", "'k=5' is not KEY:NoExecute=RATE"),
        ("k:NoSchedule=5", "is not KEY:NoExecute=RATE"),
        (":NoExecute=5", "is not KEY:NoExecute=RATE"),
        ("k:NoExecute", "the rate of 'k:NoExecute' is not a whole number of at least 1"),
        ("k:NoExecute=0", "is not a whole number of at least 1"),
        ("k:NoExecute=-3", "is not a whole number of at least 1"),
        ("k:NoExecute=1.5", "is not a whole number of at least 1"),
        ("k:NoExecute=٣", "is not a whole number of at least 1"),
        (f"k:NoExecute={'9' * 400}", "is not a whole number of at least 1"),
        ("k:NoExecute=5@", "the group of 'k:NoExecute=5@' is not a name"),
        ("k:NoExecute=5@a b", "is not a name"),
    ],
)
def test_what_cannot_be_read_is_told_and_the_rest_counts(text: str, says: str) -> None:
    entries, problems = read_rations({NAME: f"good:NoExecute=7,{text}"})
    assert entries == {name("good"): Ration(7)}
    (problem,) = problems
    assert says in problem
    assert len(problem) < 200
