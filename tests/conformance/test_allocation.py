"""Allocations that Kubernetes' allocator made: the same outcome, a valid result, and nearly always the same devices.

The cases come from `tools/import_alloc_cases.py`.
"""

from __future__ import annotations

import json
import lzma
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from allocation_checker import Checker
from allocation_cluster import Cluster
from dray.allocator import Allocated, Failed, Outcome, Unsatisfiable, allocate
from dray.api import codec

DATA = Path(__file__).parent / "data" / "alloc.jsonl.xz"
CASES: list[dict[str, Any]] = [json.loads(line) for line in lzma.decompress(DATA.read_bytes()).splitlines()]
BY_ID = {case["id"]: case for case in CASES}
OUTCOMES = {Allocated: "allocated", Unsatisfiable: "unsatisfiable", Failed: "error"}


@cache
def outcome_of(case_id: str) -> Outcome:
    case = BY_ID[case_id]
    cluster = Cluster(case["objects"])
    claims = [cluster.claims[name] for name in case["claims"]]
    return allocate(cluster.inventory, cluster.classes, claims, case["node"])


def allocations_of(case_id: str) -> dict[str, Any]:
    outcome = outcome_of(case_id)
    assert isinstance(outcome, Allocated)
    return {name: json.loads(codec.encode(allocation)) for name, allocation in outcome.allocations.items()}


def without_share_ids(allocations: dict[str, Any]) -> dict[str, Any]:
    """Share ids are random in Kubernetes and recorded as a placeholder."""
    copy: dict[str, Any] = json.loads(json.dumps(allocations))
    for allocation in copy.values():
        for result in allocation["devices"].get("results", ()):
            if "shareID" in result:
                result["shareID"] = "SHARE-ID"
    return copy


@pytest.mark.req("4381-45", "4381-47", "4381-55", "4381-65", "4381-89", "4381-90", "4381-91", "4381-98", "SVS-51")
@pytest.mark.parametrize("case_id", BY_ID)
def test_same_outcome(case_id: str) -> None:
    assert OUTCOMES.get(type(outcome_of(case_id))) == BY_ID[case_id]["expect"]["outcome"]


@pytest.mark.req("4381-64", "4381-66", "4381-67", "4381-68", "4381-92", "4381-94", "5055-50", "5055-51", "5055-52")
@pytest.mark.parametrize("case_id", [case["id"] for case in CASES if case["expect"]["outcome"] == "allocated"])
def test_valid_allocation(case_id: str) -> None:
    case = BY_ID[case_id]
    assert Checker(case["objects"], case["node"], allocations_of(case_id)).find_faults() == []


def test_same_devices_and_details() -> None:
    allocated = [case for case in CASES if case["expect"]["outcome"] == "allocated"]
    other = [
        case["id"]
        for case in allocated
        if without_share_ids(allocations_of(case["id"])) != case["expect"]["allocations"]
    ]
    assert len(other) <= 0.05 * len(allocated), other


@pytest.mark.parametrize("case_id", [case["id"] for case in CASES if case["expect"]["outcome"] == "allocated"])
def test_the_checker_accepts_the_recorded_allocation(case_id: str) -> None:
    case = BY_ID[case_id]
    assert Checker(case["objects"], case["node"], case["expect"]["allocations"]).find_faults() == []
