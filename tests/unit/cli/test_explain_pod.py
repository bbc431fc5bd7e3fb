"""`dray explain pod` with files."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner, Result

import builders
from dray.cli.main import app
from scale_up_objects import node, template, waiting
from snapshot_objects import Manifest, device, device_class, pod, resource_slice


def dray(name: str, *objects: Manifest, options: tuple[str, ...] = ()) -> Result:
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    return CliRunner().invoke(app, ["explain", "pod", name, "-f", "-", *options], input=items)


CLUSTER = [
    device_class(),
    template("one"),
    template("two", 2),
    node("small", cpu=1),
    node("gpus", cpu=8),
    resource_slice("gpus", device("gpu-0")),
]


@pytest.mark.req("4381-221")
def test_nodes_that_do_not_suit_and_claims_that_do_not_fit() -> None:
    done = dray("ml/a", *CLUSTER, waiting("a", cpu=4, claim_template="two"))
    assert done.exit_code == 1
    assert "ml/a is pending: 0/2 nodes are available: " in done.stdout
    assert "  small  Insufficient cpu (needs 4, 1 of 1 left)" in done.stdout
    assert 'ml/a/gpu is pending: request "gpu" (class gpu, 2 devices) does not fit on node gpus.' in done.stdout
    tree = json.loads(dray("ml/a", *CLUSTER, waiting("a", cpu=4, claim_template="two"), options=("-o", "json")).stdout)
    assert tree["status"] == "pending"
    assert tree["unsuitableNodes"] == {"small": "Insufficient cpu (needs 4, 1 of 1 left)"}
    assert [one["node"] for one in tree["claims"]["nodes"]] == ["gpus"]


def test_a_pod_that_fits_and_one_that_has_a_node() -> None:
    fits = dray("ml/a", *CLUSTER, waiting("a", cpu=4, claim_template="one"))
    assert (fits.exit_code, fits.stdout) == (0, "ml/a fits on gpus.\n")
    there = dray("ml/b", pod("b", node="gpus"))
    assert (there.exit_code, there.stdout) == (0, "ml/b is on gpus.\n")


def test_a_pod_without_claims() -> None:
    done = dray("ml/a", *CLUSTER, waiting("a", cpu=40))
    assert done.exit_code == 1
    assert "  gpus   Insufficient cpu (needs 40, 8 of 8 left)" in done.stdout


def test_a_template_that_is_missing() -> None:
    done = dray("ml/a", *CLUSTER, waiting("a", claim_template="gone"))
    assert done.exit_code == 1
    assert done.stdout == "ml/a is pending: there is no ResourceClaimTemplate ml/gone\n"


def test_a_pod_that_has_finished_is_leaving_or_lost_its_node_is_told_so() -> None:
    done = dray("ml/a", *CLUSTER, pod("a", node="gpus", phase="Succeeded"))
    assert (done.exit_code, done.stdout) == (0, "ml/a has finished on gpus (Succeeded).\n")
    never = {**waiting("a"), "status": {"phase": "Failed"}}
    assert dray("ml/a", *CLUSTER, never).stdout == "ml/a has finished (Failed).\n"
    lost = dray("ml/b", *CLUSTER, pod("b", node="gone", phase="Running"))
    assert lost.stdout == "ml/b is on gone. Node gone is not there.\n"
    deleted = pod("b", node="gpus", phase="Running")
    deleted["metadata"] |= {"deletionTimestamp": "2026-06-01T12:00:00Z", "deletionGracePeriodSeconds": 30}
    assert dray("ml/b", *CLUSTER, deleted).stdout == "ml/b is being deleted from gpus.\n"


def test_files_with_nodes_have_all_of_them_and_one_that_only_slices_mention_is_gone() -> None:
    orphan = resource_slice("gone", *(device(f"gpu-{number}") for number in range(2)))
    wants = waiting("a", claim_template="two")
    assert dray("ml/a", *CLUSTER, orphan, wants).exit_code == 1
    without_nodes = [one for one in CLUSTER if one["kind"] != "Node"]
    unlooked = "No Node gone, gpus was given: room, labels, taints and state were not looked at."
    assert dray("ml/a", *without_nodes, orphan, wants).stdout == f"ml/a fits on gone. {unlooked}\n"


def test_a_pod_whose_volume_is_in_the_making_is_told_for_what_it_waits() -> None:
    """A scheduler has decided, and `fits` alone does not say why the pod is pending still."""
    kind = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "slow"},
        "provisioner": "disks.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    asked = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "slow",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    wanted = waiting("a", cpu=1)
    wanted["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    for chosen in ({}, {"volume.kubernetes.io/selected-node": "gpus"}):
        meta = {"name": "data", "namespace": "ml", "annotations": chosen}
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": asked}
        done = dray("ml/a", *CLUSTER, kind, claim, wanted)
        assert done.exit_code == 0
        assert done.stdout.startswith("ml/a fits on ")
        assert ("PersistentVolumeClaim data, which provisioner disks.example.com has to make" in done.stdout) == bool(
            chosen
        )


def test_what_a_node_lacks_is_told_in_numbers_and_names() -> None:
    small = node("small", cpu=8)
    small["status"]["allocatable"] |= {"memory": "4Gi", "pods": "2"}
    ports = [{"containerPort": 80, "hostPort": 8080}]
    users = [pod(name, node="small") for name in ("b", "c")]
    users[0]["spec"]["containers"][0] |= {
        "ports": ports,
        "resources": {"requests": {"memory": "1536Mi", "cpu": "500m"}},
    }
    wanted = waiting("a", cpu=1)
    wanted["spec"]["containers"][0]["resources"]["requests"] |= {
        "memory": "3Gi",
        "example.com/fpga": "1",
        "cpu": "7800m",
    }
    wanted["spec"]["containers"][0]["resources"]["limits"] = {"example.com/fpga": "1"}
    tree = json.loads(dray("ml/a", small, *users, wanted, options=("-o", "json")).stdout)
    told = tree["unsuitableNodes"]["small"]
    for one in (
        "Too many pods (2 of 2 are there)",
        "Insufficient cpu (needs 7800m, 7500m of 8 left)",
        "Insufficient memory (needs 3Gi, 2560Mi of 4Gi left)",
        "Insufficient example.com/fpga (needs 1, and it has none)",
    ):
        assert one in told
    wanted["spec"]["containers"][0]["ports"] = ports
    ports_taken = json.loads(dray("ml/a", small, *users, wanted, options=("-o", "json")).stdout)["unsuitableNodes"]
    assert ports_taken["small"].endswith("(8080/TCP taken by ml/b)")
    wanted["spec"]["nodeSelector"] = {"zone": "a", "kubernetes.io/hostname": "small"}
    away = json.loads(dray("ml/a", small, wanted, options=("-o", "json")).stdout)["unsuitableNodes"]["small"]
    assert "didn't match Pod's node affinity/selector (wants zone=a" in away


def test_a_claim_that_a_quota_does_not_let_in_is_why_a_pod_waits() -> None:
    """Nothing that is given back helps then, and no node."""
    quota = builders.manifest(
        "v1", "ResourceQuota", "q", "ml", spec={"hard": {"gpu.deviceclass.resource.k8s.io/devices": "1"}}
    )
    pods = [waiting(name, claim_template="one") for name in ("a", "b")]
    several = [resource_slice("gpus", *(device(f"gpu-{number}") for number in range(4)))]
    cluster = [*(one for one in CLUSTER if one["kind"] != "ResourceSlice"), *several, *pods]
    assert dray("ml/b", *cluster).stdout == "ml/b fits on gpus.\n"
    assert dray("ml/a", *cluster, quota).stdout == "ml/a fits on gpus.\n"
    second = dray("ml/b", *cluster, quota)
    assert second.exit_code == 1
    assert second.stdout == (
        "ml/b is pending: the ResourceClaim for gpu cannot be made: not let in by quota ml/q: "
        "gpu.deviceclass.resource.k8s.io/devices used 1 of 1, 1 more needed\n"
    )
