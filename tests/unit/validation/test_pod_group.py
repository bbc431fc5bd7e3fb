"""What an API server says of PodGroups and Workloads."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api.registry import by_kind
from dray.process.clock import as_time
from dray.validation.context import Context
from dray.validation.table import rules_of
from scheduler_objects import typed

API = "scheduling.k8s.io/v1beta1"
GANG = {"gang": {"minCount": 2}}
CLAIM = {"name": "c", "resourceClaimName": "shared"}


def group(**spec: Any) -> Any:
    meta = {"name": "g", "namespace": "ns"}
    made = {"schedulingPolicy": GANG, **spec}
    return typed({"apiVersion": API, "kind": "PodGroup", "metadata": meta, "spec": made})


def workload(*templates: dict[str, Any], **spec: Any) -> Any:
    meta = {"name": "w", "namespace": "ns"}
    made = {"podGroupTemplates": list(templates), **spec}
    return typed({"apiVersion": API, "kind": "Workload", "metadata": meta, "spec": made})


def template(name: str = "t", **fields: Any) -> dict[str, Any]:
    return {"name": name, "schedulingPolicy": GANG, **fields}


def found(new: Any, old: Any = None, *off: str) -> list[str]:
    errors: list[Any] = []
    rules_of(by_kind(API, new.kind)).check(errors, new, old, Context(as_time(0), frozenset(off)))
    return [str(error) for error in errors]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"schedulingPolicy": {}}, "spec.schedulingPolicy: Invalid value"),
        ({"schedulingPolicy": {"basic": {}, **GANG}}, "exactly one of: `basic`, `gang`"),
        ({"schedulingPolicy": {"gang": {"minCount": 0}}}, "spec.schedulingPolicy.gang.minCount: Required"),
        ({"schedulingPolicy": {"gang": {"minCount": -1}}}, "must be greater than or equal to 1"),
        ({"schedulingConstraints": {"topology": [{"key": "a b"}]}}, "schedulingConstraints.topology[0].key"),
        ({"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}}, "at most 1"),
        ({"resourceClaims": [CLAIM, CLAIM]}, "Duplicate"),
        ({"resourceClaims": [{"name": "c"}]}, "must specify one of: `resourceClaimName`"),
        ({"resourceClaims": [{**CLAIM, "name": str(number)} for number in range(5)]}, "at most 4"),
        ({"disruptionMode": {"all": {}, "single": {}}}, "spec.disruptionMode"),
        ({"priority": 1_000_000_001}, "spec.priority"),
        ({"preemptionPolicy": "Maybe"}, "spec.preemptionPolicy: Unsupported"),
        ({"workloadRef": {"workloadName": "w"}}, "spec.workloadRef.templateName: Required"),
        ({"parentCompositePodGroupName": "p", "workloadRef": {"workloadName": "w", "templateName": "t"}}, "groups of"),
    ],
)
def test_what_a_group_may_not_say(spec: dict[str, Any], says: str) -> None:
    [error] = found(group(**spec))
    assert says in error


def test_only_how_many_pods_a_gang_needs_may_change() -> None:
    old = group(disruptionMode={"all": {}}, resourceClaims=[CLAIM])
    more = {"disruptionMode": {"all": {}}, "resourceClaims": [CLAIM]}
    assert found(group(schedulingPolicy={"gang": {"minCount": 5}}, **more), old) == []
    assert "schedulingPolicy.basic" in found(group(schedulingPolicy={"basic": {}}, **more), old)[0]
    assert "spec.disruptionMode" in found(group(resourceClaims=[CLAIM]), old)[0]
    assert "spec.resourceClaims" in found(group(disruptionMode={"all": {}}), old)[0]


@pytest.mark.parametrize(
    ("new", "old", "says"),
    [
        (workload(), None, "spec.podGroupTemplates: Required"),
        (workload(template(), template()), None, "Duplicate"),
        (workload(template(), template("u", priorityClassName="high")), None, "multiple priority"),
        (workload(template(), controllerRef={"kind": "Job"}), None, "spec.controllerRef.name: Required"),
        (workload(template(), template("u")), workload(template()), "may not be added"),
        (workload(template()), workload(template(), template("u")), "may not be removed"),
        (workload(compositePodGroupTemplates=[{"name": "c"}]), None, "groups of groups are not supported"),
    ],
)
def test_what_a_workload_may_not_say(new: Any, old: Any, says: str) -> None:
    assert says in found(new, old)[0]


def test_what_is_not_said_is_filled_in_and_what_is_off_is_dropped() -> None:
    rules = rules_of(by_kind(API, "PodGroup"))
    assert rules.default(group(), as_time(0)).spec.disruption_mode.single is not None
    asked = group(resourceClaims=[CLAIM], schedulingConstraints={"topology": [{"key": "rack"}]})
    off = Context(as_time(0), frozenset({"DRAWorkloadResourceClaims", "TopologyAwareWorkloadScheduling"}))
    dropped = rules.change(asked, None, off).spec
    assert (dropped.resource_claims, dropped.scheduling_constraints) == ((), None)
    assert rules.change(asked, asked, off).spec == asked.spec
