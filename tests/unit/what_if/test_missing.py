"""What pods refer to and is not there is odd."""

from __future__ import annotations

from typing import Any

import pytest

import dray
from builders import cel, claim, claim_template, manifest, pod_claim, request, slice_patch, taint, taint_rule, workload
from dray.api.resource import DeviceClass
from dray.what_if.lint import lint
from dray.what_if.missing import REFERRED
from snapshot_objects import Manifest, device, node, pod, resource_slice

WHOLE = frozenset(REFERRED)


def waiting(name: str, **spec: Any) -> Manifest:
    made = pod(name, "", phase="Pending")
    return {**made, "spec": {**made["spec"], **spec}}


def volumes(name: str, volume: str = "v") -> list[Manifest]:
    return [{"name": volume, "persistentVolumeClaim": {"claimName": name}}]


def maker(kind: str, template: Manifest, **spec: Any) -> Manifest:
    made = workload("web", kind=kind, namespace="ml", **spec)
    made["spec"]["template"]["spec"] |= template
    return made


SIZE = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
LACKING = [
    (waiting("p", resourceClaims=[pod_claim("a", template="t")]), "UnknownTemplate", "t"),
    (waiting("p", resourceClaims=[pod_claim("a", claim="c")]), "UnknownClaim", "c"),
    (waiting("p", volumes=volumes("data")), "UnknownVolumeClaim", "data"),
    (waiting("p", schedulingGroup={"podGroupName": "g"}), "UnknownGroup", "g"),
    (maker("Deployment", {"resourceClaims": [pod_claim("a", template="t")]}), "UnknownTemplate", "t"),
    (maker("StatefulSet", {"volumes": volumes("data")}), "UnknownVolumeClaim", "data"),
]
OTHERS = (
    claim_template("t", request(), namespace="ml"),
    claim("c", request(), namespace="ml"),
    manifest("v1", "PersistentVolumeClaim", "data", "ml", spec=SIZE),
    manifest("scheduling.k8s.io/v1beta1", "PodGroup", "g", "ml", spec={"schedulingPolicy": {"gang": {"minCount": 1}}}),
)


@pytest.mark.parametrize(("owner", "reason", "name"), LACKING)
def test_what_a_pod_waits_for_and_nobody_has_made_is_odd(owner: Manifest, reason: str, name: str) -> None:
    """In a running cluster; files may leave all objects of a kind out, but not some of them."""
    lacks = dray.load(node("node-1"), owner)
    (found,) = lint(lacks, WHOLE)
    assert (found.kind, found.namespace, found.reason) == (owner["kind"], "ml", reason)
    assert repr(name) in found.message
    value: Any = owner
    for step in found.field.replace("[0]", ".0").split("."):
        value = value[int(step)] if step.isdecimal() else value[step]
    assert value == name
    assert not lint(lacks)

    renamed = [{**one, "metadata": {**one["metadata"], "name": "another"}} for one in OTHERS]
    assert reason in {one.reason for one in lint(lacks.with_objects(*renamed))}
    assert reason not in {one.reason for one in lint(lacks.with_objects(*OTHERS), WHOLE)}


def test_what_is_missing_is_told_once_and_of_workloads_before_their_pods() -> None:
    claims = [pod_claim("a", template="t")]
    made = maker("Deployment", {"resourceClaims": claims})
    (found,) = lint(
        dray.load(node("n"), *(waiting(f"p{number}", resourceClaims=claims) for number in range(3)), made), WHOLE
    )
    assert (found.kind, found.name) == ("Deployment", "web")
    assert found.message == "there is no ResourceClaimTemplate 't' in namespace ml; 3 more refer to it"


def test_what_is_not_needed_any_more_may_be_gone() -> None:
    """A pod that runs has its claims; a StatefulSet makes volume claims of its own."""
    claims = [pod_claim("a", template="t")]
    running = pod("p", "n", phase="Running")
    running["spec"] |= {"resourceClaims": claims, "volumes": volumes("data")}
    made = waiting("q", resourceClaims=claims)
    made["status"] |= {"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "c"}]}
    own = {"metadata": {"name": "data"}, "spec": SIZE}
    mine = maker("StatefulSet", {"volumes": volumes("any", "data")}, volumeClaimTemplates=[own])
    assert not lint(dray.load(node("n"), running, made, mine, *OTHERS[1:2]), WHOLE)


def test_a_running_cluster_without_classes_has_none() -> None:
    asked = claim("c", request(deviceClassName="gpu"), namespace="ml")
    snapshot = dray.load(node("n"), asked)
    assert not lint(snapshot)
    (found,) = lint(snapshot, {DeviceClass})
    assert found.message == "there is no class 'gpu'; there is none at all"


def test_a_rule_or_patch_whose_selector_fails_passes_devices_over() -> None:
    selectors = cel('device.attributes["gpu.example.com"].rack == "r1"')
    broken = taint_rule("broken", {"selectors": selectors}, taint("k", "NoSchedule"))
    rack = slice_patch("rack", {"example.com/rack": {"int": 1}}, selectors=selectors)
    found = lint(dray.load(resource_slice("node-1", device("gpu-0"), device("gpu-1")), broken, rack))
    told = {(one.kind, one.name): one.message for one in found if one.reason == "MayFail"}
    assert told.keys() == {("DeviceTaintRule", "broken"), ("ResourceSlicePatch", "rack")}
    assert all("passes over 2 devices: " in message and "no such key: rack" in message for message in told.values())
