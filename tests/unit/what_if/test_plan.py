"""A plan keeps what matters of a preview, and tells in what another one differs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dray.what_if.plan import Plan, PlanError, differences, effect_of, read_plan

PREVIEW = {
    "now": "2026-06-01T12:00:00Z",
    "nodes": ["node-1"],
    "pods": [
        {"pod": "ml/b", "uid": "2", "due": "2026-06-01T12:00:00Z", "fits": True, "fitsOn": "node-2"},
        {"pod": "ml/a", "uid": "1", "expected": "2026-06-01T12:00:00Z", "fits": False},
    ],
}


def test_time_and_order_are_no_part_of_an_effect() -> None:
    later = {**PREVIEW, "now": "2026-06-01T13:00:00Z", "pods": list(reversed(PREVIEW["pods"]))}
    assert effect_of(PREVIEW) == effect_of(later)
    assert list(differences(effect_of(PREVIEW), effect_of(later))) == []


@pytest.mark.parametrize(
    ("pods", "told"),
    [
        ([{"pod": "ml/a", "uid": "1", "fits": False}], ["pods: ml/b is not among them any more"]),
        (
            [*PREVIEW["pods"], {"pod": "ml/c", "uid": "3"}],
            ["pods: ml/c is new"],
        ),
        (
            [{"pod": "ml/b", "uid": "9", "fits": True}, PREVIEW["pods"][1]],
            ["pods[ml/b].uid: 9 instead of 2"],
        ),
        (
            [{"pod": "ml/b", "uid": "2", "fits": False}, PREVIEW["pods"][1]],
            ["pods[ml/b].fits: false instead of true"],
        ),
    ],
)
def test_what_is_different_is_named(pods: list[object], told: list[str]) -> None:
    assert list(differences(effect_of(PREVIEW), effect_of({**PREVIEW, "pods": pods}))) == told


def test_a_list_that_is_left_out_is_empty() -> None:
    """Nobody is shown the whole of what is gone."""
    then = {"pods": effect_of(PREVIEW)["pods"]}
    gone = ["pods: ml/a is not among them any more", "pods: ml/b is not among them any more"]
    assert list(differences(then, {})) == gone
    assert list(differences({"pods": []}, {})) == []
    assert list(differences({}, then)) == ["pods: ml/a is new", "pods: ml/b is new"]


def test_a_plan_is_read_as_it_was_written_and_other_files_are_refused() -> None:
    plan = Plan(made="2026-06-01T12:00:00Z", command=("drain", "node", "a"), effect={"x": 1}, summary="s").sealed()
    assert read_plan(msgspec.json.encode(plan)) == plan
    for data in (b"", b"{}", b'{"kind":"Plan"}', b"[]", msgspec.json.encode(plan).replace(b"dray.dev/v1", b"v2")):
        with pytest.raises(PlanError, match="is "):
            read_plan(data)


@pytest.mark.parametrize(
    ("written", "changed"), [(b'"5"', b'"50"'), (b'"node-1"', b'"node-2"'), (b'"5 a second"', b'"1 a second"')]
)
def test_a_plan_that_was_changed_since_is_refused(written: bytes, changed: bytes) -> None:
    """Its pace, for one, is no part of the effect that is compared."""
    command = ("taint", "node", "node-1", "k:NoExecute", "--evictions-per-second", "5")
    plan = Plan(made="2026-06-01T12:00:00Z", command=command, effect={}, summary="5 a second").sealed()
    data = msgspec.json.format(msgspec.json.encode(plan), indent=1)
    assert read_plan(data) == plan
    with pytest.raises(PlanError, match="was changed after it was planned"):
        read_plan(data.replace(written, changed))


def test_a_budget_matters_as_far_as_it_is_needed() -> None:
    def effect(allowed: int) -> Any:
        budget = {"name": "web", "allowed": allowed, "needed": 2}
        return effect_of({"pods": [{"pod": "ml/a", "budget": budget, "moreBudgets": [budget]}]})

    assert list(differences(effect(5), effect(2))) == []
    assert len(list(differences(effect(5), effect(1)))) == 2
