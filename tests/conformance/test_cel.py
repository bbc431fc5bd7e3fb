"""Expressions whose verdicts, results and costs were recorded from Kubernetes 1.37."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from dray import cel

DATA = Path(__file__).parent / "data" / "cel.jsonl.xz"
CASES: list[dict[str, Any]] = [json.loads(line) for line in lzma.decompress(DATA.read_bytes()).decode().splitlines()]


def _compiles(expression: str, mode: cel.Mode) -> str:
    try:
        cel.compile(expression, mode=mode)
    except cel.CompileError:
        return "error"
    return "ok"


@pytest.mark.req("4381-50", "4381-51", "4381-52", "4381-81", "4381-83")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_compiles_as_recorded(case: dict[str, Any]) -> None:
    expect = case["expect"]
    verdict = expect["compile"], expect.get("storedCompile", expect["compile"])
    assert (_compiles(case["expression"], "new"), _compiles(case["expression"], "stored")) == verdict


@pytest.mark.req("4381-51")
@pytest.mark.parametrize("case", [c for c in CASES if "estimatedCost" in c["expect"]], ids=lambda case: case["id"])
def test_estimated_cost_is_exact(case: dict[str, Any]) -> None:
    selector = cel.compile(case["expression"], mode="stored")
    assert selector.estimated_cost == case["expect"]["estimatedCost"]


@pytest.mark.req("4381-82", "4381-83", "4381-84", "4381-85", "4381-86", "4381-87")
@pytest.mark.parametrize("case", [c for c in CASES if "actualCost" in c["expect"]], ids=lambda case: case["id"])
def test_result_and_actual_cost_are_exact(case: dict[str, Any]) -> None:
    selector = cel.compile(case["expression"], mode="stored")
    device, expect = case["device"], case["expect"]
    try:
        outcome: tuple[bool | None, int] = selector.evaluate_with_cost(device, driver=device["driver"])
        fails = False
    except cel.EvaluationError as error:
        outcome = None, error.cost
        fails = True
    assert (fails, *outcome) == (expect["fails"], expect["result"], expect["actualCost"])
