"""The recorded allocations of Kubernetes through the public API: the same outcome, and an explanation of every no."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

import dray

DATA = Path(__file__).parents[2] / "conformance" / "data" / "alloc.jsonl.xz"
CASES: list[dict[str, Any]] = [json.loads(line) for line in lzma.decompress(DATA.read_bytes()).splitlines()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_same_outcome_with_an_explanation(case: dict[str, Any]) -> None:
    out = dray.load(*case["objects"]).allocate(*case["claims"], node=case["node"])
    assert out.status == case["expect"]["outcome"]
    if out.status == "unsatisfiable":
        told = out.explain().text(width=72)
        assert "fit" in told
        assert all(len(line) <= 72 for line in told.splitlines())
        assert out.explain().brief()
        assert json.dumps(out.explain().to_dict())
    elif out.status == "error":
        assert out.error
        assert str(out.explain())
