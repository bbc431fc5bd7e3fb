"""The names under which Kubernetes knows the checks that a pod has to pass, for metrics and logs."""

from __future__ import annotations

from typing import Final

from dray.scheduler.decide import CANNOT_ALLOCATE, Refused

DYNAMIC_RESOURCES: Final = "DynamicResources"

_BY_PHRASE: Final = (
    ("Insufficient ", "NodeResourcesFit"),
    ("Too many pods", "NodeResourcesFit"),
    ("untolerated taint(s)", "TaintToleration"),
    ("node(s) were unschedulable", "NodeUnschedulable"),
    ("node affinity/selector", "NodeAffinity"),
    ("requested node name", "NodeName"),
    ("requested pod ports", "NodePorts"),
    ("scheduling gates", "SchedulingGates"),
    (CANNOT_ALLOCATE, DYNAMIC_RESOURCES),
    ("timed out trying to allocate", DYNAMIC_RESOURCES),
    ("resourceclaim", DYNAMIC_RESOURCES),
    ("ResourceClaim", DYNAMIC_RESOURCES),
)


def plugins_of(refused: Refused) -> tuple[str, ...]:
    """Which plugins had a part in a refusal; none for what no plugin of Kubernetes is about."""
    return tuple(dict.fromkeys(plugin for phrase, plugin in _BY_PHRASE if phrase in refused.message))
