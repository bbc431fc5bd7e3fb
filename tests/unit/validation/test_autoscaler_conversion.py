"""HorizontalPodAutoscaler in autoscaling/v1: what it cannot say is not lost."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api import codec, registry
from dray.api.generated import autoscaling as hub
from dray.validation import from_hub, to_hub
from dray.validation.autoscaler_conversion import ANNOTATION

CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
MEMORY = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}}
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def stored(**spec: Any) -> hub.HorizontalPodAutoscaler:
    value = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "a", "annotations": {"note": "kept"}},
        "spec": {"scaleTargetRef": TARGET, "minReplicas": 2, "maxReplicas": 5, **spec},
        "status": {"currentReplicas": 3, "desiredReplicas": 4, "currentMetrics": []},
    }
    reading = codec.read(value, hub.HorizontalPodAutoscaler)
    assert reading.obj is not None, reading.errors
    return reading.obj


def test_it_is_served_in_both_versions() -> None:
    kind = registry.by_kind("autoscaling/v1", "HorizontalPodAutoscaler")
    assert kind.versions == ("v2", "v1")
    assert kind.type_of("v2") is hub.HorizontalPodAutoscaler


def test_the_use_of_processors_is_a_field() -> None:
    shown = codec.to_builtins(from_hub(stored(metrics=[CPU]), "autoscaling/v1"))
    assert shown["spec"] == {
        "scaleTargetRef": TARGET,
        "minReplicas": 2,
        "maxReplicas": 5,
        "targetCPUUtilizationPercentage": 50,
    }
    assert shown["apiVersion"] == "autoscaling/v1"
    assert shown["metadata"]["annotations"] == {"note": "kept"}


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"metrics": [CPU]},
        {"metrics": [CPU, MEMORY]},
        {"metrics": [MEMORY, CPU]},
        {"metrics": [MEMORY], "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}}},
    ],
)
def test_nothing_is_lost_on_the_way_through_v1(spec: dict[str, Any]) -> None:
    before = stored(**spec)
    assert to_hub(from_hub(before, "autoscaling/v1"), "autoscaling/v2") == before


@pytest.mark.parametrize("text", ["", "{", "[]", '{"metrics": 3}'])
def test_a_spoilt_annotation_holds_nothing(text: str) -> None:
    kind = registry.by_kind("autoscaling/v1", "HorizontalPodAutoscaler").type_of("v1")
    value = {
        "apiVersion": "autoscaling/v1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "a", "annotations": {ANNOTATION: text}},
        "spec": {"scaleTargetRef": TARGET, "maxReplicas": 1},
    }
    obj = codec.read(value, kind).obj
    assert obj is not None
    made = to_hub(obj, "autoscaling/v2")
    assert isinstance(made, hub.HorizontalPodAutoscaler)
    assert (made.spec.metrics, made.metadata.annotations) == ((), {})
