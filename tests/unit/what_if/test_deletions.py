"""What a deletion releases, and what stays because it is in use."""

from __future__ import annotations

from datetime import UTC, datetime

import dray
from builders import manifest
from dray.what_if.deletions import delete
from dray.what_if.difference import Difference, compare
from snapshot_objects import Manifest, claim, device, device_class, held, node, pod, resource_slice

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)


def what_if(used: Manifest, *refs: str) -> Difference:
    """One GPU, which ml/runs and others have; ml/waits wants it, too."""
    gpu = resource_slice("node-1", device("gpu-0"))
    pods = [pod(name, phase="Running") for name in ("runs", "also")]
    base = dray.load(node("node-1"), device_class(), gpu, used, claim("waits"), *pods)
    return compare(base, delete(base, refs, NOW), NOW)


def fits(difference: Difference) -> dict[str, str | None]:
    return {one.claim: one.node for one in difference.pending if one.claim}


def test_a_pod_that_goes_releases_what_nobody_else_uses() -> None:
    used = held(claim("train"), "node-1", "gpu-0", pods=("runs",))
    difference = what_if(used, "pod/ml/runs")
    assert fits(difference)["ml/waits"] == "node-1"
    assert "claim ml/train is released, with node-1/gpu-0" in str(difference)
    shared = held(claim("train"), "node-1", "gpu-0", pods=("runs", "also"))
    assert "ml/waits" not in fits(what_if(shared, "pod/ml/runs"))
    assert fits(what_if(shared, "pod/ml/runs", "pod/ml/also"))["ml/waits"] == "node-1"


def test_a_claim_that_was_made_for_a_pod_goes_with_it() -> None:
    used = held(claim("train"), "node-1", "gpu-0", pods=("runs",))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "runs", "uid": "uid-runs", "controller": True}
    used["metadata"]["ownerReferences"] = [owner]
    difference = what_if(used, "pod/ml/runs")
    assert {one.object: one.change for one in difference.objects} == {
        "Pod ml/runs": "removed",
        "ResourceClaim ml/train": "removed",
    }
    assert fits(difference) == {"ml/waits": "node-1"}


def test_a_claim_in_use_is_only_marked_and_frees_nothing() -> None:
    used = held(claim("train"), "node-1", "gpu-0", pods=("runs",))
    difference = what_if(used, "resourceclaim/ml/train")
    assert fits(difference) == {}
    said = "claim ml/train is in use: it keeps node-1/gpu-0, and goes once nobody uses it (runs)"
    assert difference.notes == (said,)
    both = what_if(used, "resourceclaim/ml/train", "pod/ml/runs")
    assert fits(both) == {"ml/waits": "node-1"}
    assert fits(what_if(held(claim("train"), "node-1", "gpu-0"), "resourceclaim/ml/train")) == {"ml/waits": "node-1"}


def test_a_claim_that_is_being_deleted_goes_with_its_last_user() -> None:
    used = held(claim("train"), "node-1", "gpu-0", pods=("runs",))
    used["metadata"] |= {
        "deletionTimestamp": "2026-06-01T11:00:00Z",
        "finalizers": ["resource.kubernetes.io/delete-protection"],
    }
    difference = what_if(used, "pod/ml/runs")
    assert {one.object: one.change for one in difference.objects}["ResourceClaim ml/train"] == "removed"
    assert "claim ml/train goes, and releases node-1/gpu-0" in difference.notes
    used["metadata"]["finalizers"].append("example.com/mine")
    kept = what_if(used, "pod/ml/runs")
    assert {one.object: one.change for one in kept.objects}["ResourceClaim ml/train"] == "changed"


def test_a_pod_group_that_is_being_deleted_goes_with_its_last_pod() -> None:
    group = manifest(
        "scheduling.k8s.io/v1beta1", "PodGroup", "g", "ml", spec={"schedulingPolicy": {"gang": {"minCount": 1}}}
    )
    group["metadata"] |= {
        "deletionTimestamp": "2026-06-01T11:00:00Z",
        "finalizers": ["scheduling.k8s.io/podgroup-protection"],
    }
    members = [pod(name, phase="Running") for name in ("a", "b")]
    for one in members:
        one["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    base = dray.load(node("node-1"), group, *members)
    assert delete(base, ["pod/ml/a"], NOW).get("podgroups.scheduling.k8s.io", "ml", "g") is not None
    assert delete(base, ["pod/ml/a", "pod/ml/b"], NOW).get("podgroups.scheduling.k8s.io", "ml", "g") is None
