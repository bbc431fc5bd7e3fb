"""Fleets that a real Open Cluster Management 1.3 was shown: same decisions, conditions, scores and times.

Each case is decided twice: by `place`, and by the engine, which gets the objects one by one. The steps after the first
are what follows when time passes and nothing else happens.
"""

from __future__ import annotations

import datetime as dt
import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from dray.api.cluster import Placement, PlacementDecision
from dray.api.references import ObjectName
from dray.placement import Engine, Event, Fleet, PlacementResult, place
from placement_fleet import read

DATA = Path(__file__).parent / "data" / "placement.jsonl.xz"
CASES: list[dict[str, Any]] = [json.loads(line) for line in lzma.decompress(DATA.read_bytes()).splitlines()]


def key_of(case: dict[str, Any]) -> ObjectName:
    return ObjectName(*case["placement"].split("/"))


def compare(result: PlacementResult, step: dict[str, Any]) -> None:
    assert list(result.decisions) == step["decisions"]
    conditions = {kind: [entry.status, entry.reason] for kind, entry in result.conditions.items()}
    assert conditions == step["conditions"]
    assert result.requeue_after == step["requeueAfterSeconds"]
    if "groups" in step:
        groups = [{"name": group.name, "clusters": list(group.clusters)} for group in result.groups]
        assert groups == step["groups"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_place_decides_as_recorded(case: dict[str, Any]) -> None:
    objects = [read(document) for document in case["objects"]]
    wanted = next(
        obj
        for obj in objects
        if isinstance(obj, Placement) and key_of(case) == (obj.metadata.namespace, obj.metadata.name)
    )
    fleet = Fleet(objects)
    for step in case["steps"]:
        result = place(fleet, wanted, dt.datetime.fromisoformat(step["now"]))
        compare(result, step)
        if step.get("scores") is not None:
            assert result.scores == step["scores"]
        fleet.ledger.assume(key_of(case), result.decisions)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_engine_gets_there_step_by_step(case: dict[str, Any]) -> None:
    objects = [read(document) for document in case["objects"]]
    # What has been decided comes first: the engine would take decisions of its own for made.
    objects.sort(key=lambda obj: (not isinstance(obj, PlacementDecision), isinstance(obj, Placement)))
    engine = Engine()
    now = dt.datetime.fromisoformat(case["now"])
    for obj in objects:
        engine.apply(Event(obj), now)
    for step in case["steps"]:
        engine.due(dt.datetime.fromisoformat(step["now"]))
        result = engine.result(key_of(case))
        assert result is not None
        compare(result, step)
