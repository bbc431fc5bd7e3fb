"""Pods that ask for extended resources that are devices: explained, moved, and given new nodes, with no cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import dray
from dray.api.generated.core import Pod
from dray.snapshot.pod_explanation import explain_pod
from dray.what_if.difference import compare
from scale_up_objects import added, group, plan_for
from snapshot_objects import DRIVER, Manifest, claim, device, device_class, held, node, pod, resource_slice, rule

GPU = "example.com/gpu"
NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
CLASS = {**device_class(), "spec": {**device_class()["spec"], "extendedResourceName": GPU}}
NODES = [node("node-1"), node("node-2")]
SLICES = [resource_slice("node-1", device("gpu-0"), device("gpu-1")), resource_slice("node-2", device("gpu-0"))]


def asking(name: str = "p", count: int = 1, on: str = "", **status: Any) -> Manifest:
    made = pod(name, on, phase="Pending", **status)
    amounts = {GPU: str(count)}
    container = {"name": "c", "image": "i", "resources": {"requests": amounts, "limits": amounts}}
    return {**made, "spec": {**made["spec"], "containers": [container]}}


def running(on: str = "node-1", device_name: str = "gpu-0") -> list[Manifest]:
    """A pod, and the claim that was made for it."""
    mapping = {"containerName": "c", "resourceName": GPU, "requestName": "container-0-request-0"}
    told = {"resourceClaimName": "p-made", "requestMappings": [mapping]}
    made = held(claim("p-made"), on, device_name, pods=("p",))
    made["metadata"]["annotations"] = {"resource.kubernetes.io/extended-resource-claim": "true"}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
    made["metadata"]["ownerReferences"] = [owner]
    return [asking(on=on, extendedResourceClaimStatus=told), made]


def test_why_a_pod_waits_for_an_extended_resource() -> None:
    found = explain_pod(dray.load(*NODES, *SLICES, CLASS, asking(count=3)), "ml/p")
    assert found.status == "pending"
    text = found.text()
    assert "3 cannot" not in text
    assert 'request "container-0-request-0" for example.com/gpu (class gpu, 3 devices) does not fit' in text
    assert "Closest: node-1, short by 1 device." in text
    nobody = explain_pod(dray.load(*NODES, *SLICES, asking()), "ml/p")
    assert set(nobody.unsuitable.values()) == {"Insufficient example.com/gpu (needs 1, and it has none)"}
    assert explain_pod(dray.load(*NODES, *SLICES, CLASS, asking()), "ml/p").status == "fits"


def test_a_release_that_would_help_is_named() -> None:
    holder = held(claim("other"), "node-1", "gpu-0", pods=("q",))
    found = explain_pod(dray.load(NODES[0], SLICES[0], CLASS, holder, asking(count=2)), "ml/p")
    assert "It would fit when gpu-0 (ml/other) is released" in found.text()


def test_a_pod_that_was_put_on_a_node_by_hand_gets_no_devices() -> None:
    found = explain_pod(dray.load(*NODES, *SLICES, CLASS, asking(on="node-1")), "ml/p")
    assert found.status == "stuck"
    assert found.notes[0].startswith("example.com/gpu is made of devices on node-1, and nobody is going to allocate")
    assert explain_pod(dray.load(*NODES, *SLICES, CLASS, *running()), "ml/p").status == "scheduled"
    lost = explain_pod(dray.load(*NODES, *SLICES, CLASS, running()[0]), "ml/p")
    assert lost.notes == ('Resourceclaim "p-made" not found.',)


def test_a_taint_moves_them_like_others() -> None:
    before = dray.load(*NODES, *SLICES, CLASS, *running())
    (eviction,) = compare(before, before.with_objects(rule("r", pool="node-1", driver=DRIVER)), NOW).evictions
    assert (eviction.pod, eviction.fits, eviction.fits_on) == ("ml/p", True, "node-2")
    assert [one.status.phase for one in before.objects(Pod)] == ["Pending"]  # nothing was changed by looking
    full = before.with_objects(held(claim("other"), "node-2", "gpu-0", pods=("q",)))
    (eviction,) = compare(full, full.with_objects(rule("r", pool="node-1", driver=DRIVER)), NOW).evictions
    assert eviction.fits is False


def test_new_nodes_help_them() -> None:
    pods = [asking(f"p{number}", 2) for number in range(5)]
    answer = plan_for([CLASS, *pods], group("big", devices=4), group("small", devices=1))
    assert added(answer) == {"big": 3}
    answer = plan_for([CLASS, asking(count=5)], group("big", devices=4))
    [left] = answer.unplaced
    assert "for example.com/gpu" in left.groups["big"]
