"""What is kept of objects: what decisions depend on, and nothing that people would not want to send around."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api import codec
from dray.api.meta import Object
from dray.recording.essence import essence
from dray.recording.hashed_names import HashedNames
from local_server import typed

SECRET = "hunter2"
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "train-0",
        "namespace": "ml",
        "uid": "u1",
        "labels": {"app": "train"},
        "annotations": {"note": SECRET, "dray.dev/run-seconds": "60"},
        "managedFields": [{"manager": SECRET, "operation": "Update"}],
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "j", "controller": True}],
    },
    "spec": {
        "nodeName": "node-1",
        "serviceAccountName": SECRET,
        "imagePullSecrets": [{"name": SECRET}],
        "priority": 7,
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}],
        "volumes": [{"name": "v", "secret": {"secretName": SECRET}}],
        "containers": [
            {
                "name": "main",
                "image": f"registry/{SECRET}",
                "command": [SECRET],
                "args": [f"--password={SECRET}"],
                "env": [{"name": "TOKEN", "value": SECRET}],
                "workingDir": f"/{SECRET}",
                "volumeMounts": [{"name": "v", "mountPath": f"/{SECRET}"}],
                "livenessProbe": {"exec": {"command": [SECRET]}},
                "ports": [{"name": SECRET, "containerPort": 1, "hostPort": 2}, {"containerPort": 3}],
                "resources": {"requests": {"cpu": "2"}, "claims": [{"name": "gpu"}]},
            }
        ],
    },
    "status": {
        "phase": "Running",
        "message": SECRET,
        "conditions": [
            {"type": "PodScheduled", "status": "True", "message": SECRET},
            {"type": "Ready", "status": "True", "message": SECRET},
        ],
    },
}
OPAQUE = [{"opaque": {"driver": "gpu.example.com", "parameters": {"key": SECRET}}}]
CLAIM: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "c", "namespace": "ml", "uid": "u2"},
    "spec": {
        "devices": {
            "requests": [{"name": "gpu", "exactly": {"deviceClassName": "big", "count": 2}}],
            "constraints": [{"requests": ["gpu"], "matchAttribute": "gpu.example.com/numa"}],
            "config": OPAQUE,
        }
    },
    "status": {
        "allocation": {
            "devices": {
                "results": [{"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-3"}],
                "config": [{"source": "FromClaim", **OPAQUE[0]}],
            }
        },
        "reservedFor": [{"resource": "pods", "name": "train-0", "uid": "u1"}],
        "devices": [{"driver": "gpu.example.com", "pool": "node-1", "device": "gpu-3", "data": {"key": SECRET}}],
    },
}
CLASS: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "big"},
    "spec": {"selectors": [{"cel": {"expression": "true"}}], "config": OPAQUE},
}
TEMPLATE: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "gpus", "namespace": "ml"},
    "spec": {"metadata": {"annotations": {"x": SECRET}}, "spec": CLAIM["spec"]},
}
NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "node-1", "annotations": {"token": SECRET}, "labels": {"kubernetes.io/hostname": "node-1"}},
    "spec": {"providerID": SECRET, "taints": [{"key": "a", "effect": "NoSchedule"}]},
    "status": {
        "allocatable": {"cpu": "8"},
        "addresses": [{"type": "InternalIP", "address": SECRET}],
        "conditions": [
            {"type": "Ready", "status": "True", "message": SECRET, "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
        ],
    },
}


def kept(document: dict[str, Any]) -> Any:
    obj: Object = typed(document)
    return codec.to_builtins(essence(obj))


@pytest.mark.parametrize("document", [POD, CLAIM, CLASS, TEMPLATE, NODE], ids=lambda one: one["kind"])
def test_no_secret_is_kept(document: dict[str, Any]) -> None:
    assert SECRET in str(document)
    assert SECRET not in str(kept(document))


def test_what_decisions_depend_on_is_kept() -> None:
    pod = kept(POD)
    assert pod["spec"]["priority"] == 7
    assert pod["spec"]["nodeName"] == "node-1"
    assert pod["spec"]["tolerations"] == [{"key": "a", "operator": "Exists"}]
    assert pod["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2"}, "claims": [{"name": "gpu"}]}
    assert [port["hostPort"] for port in pod["spec"]["containers"][0]["ports"]] == [2]
    assert pod["metadata"]["annotations"] == {"dray.dev/run-seconds": "60"}
    assert pod["metadata"]["ownerReferences"][0]["uid"] == "j"
    assert [one["type"] for one in pod["status"]["conditions"]] == ["PodScheduled"]
    claim = kept(CLAIM)
    assert claim["status"]["allocation"]["devices"]["results"][0]["device"] == "gpu-3"
    assert claim["status"]["reservedFor"][0]["uid"] == "u1"
    assert kept(NODE)["status"]["allocatable"] == {"cpu": "8"}


def test_a_heartbeat_changes_nothing_that_is_kept() -> None:
    ready = NODE["status"]["conditions"][0]
    later = {
        **NODE,
        "status": {**NODE["status"], "conditions": [{**ready, "lastHeartbeatTime": "2026-01-01T00:10:00Z"}]},
    }
    assert kept(later) == kept(NODE)


def test_hashed_names_lead_where_the_names_led() -> None:
    names = HashedNames(b"key")
    pod, claim, found, node = (names.document(kept(one)) for one in (POD, CLAIM, CLASS, NODE))
    told = str((pod, claim, found, node))
    assert not [name for name in ("train-0", "'ml'", "node-1", "gpu-3", "'big'", "'train'") if name in told]
    assert pod["spec"]["nodeName"] == node["metadata"]["name"] == node["metadata"]["labels"]["kubernetes.io/hostname"]
    request = claim["spec"]["devices"]["requests"][0]
    assert request["exactly"]["deviceClassName"] == found["metadata"]["name"]
    result = claim["status"]["allocation"]["devices"]["results"][0]
    assert result["request"] == request["name"] == claim["spec"]["devices"]["constraints"][0]["requests"][0]
    assert result["pool"] == node["metadata"]["name"]
    assert claim["status"]["reservedFor"][0]["name"] == pod["metadata"]["name"]
    assert result["driver"] == "gpu.example.com", "expressions speak of it"
    assert claim["spec"]["devices"]["constraints"][0]["matchAttribute"] == "gpu.example.com/numa"


def test_resources_that_are_made_of_the_name_of_a_class_lead_to_it() -> None:
    implicit = "deviceclass.resource.kubernetes.io/"
    amounts = {f"{implicit}secret-gpu": "1", "cpu": "2", "example.com/gpu": "1"}
    mapping = {"containerName": "c", "requestName": "r", "resourceName": f"{implicit}secret-gpu"}
    names = HashedNames()
    hashed = names.document({"requests": amounts, "limits": amounts, "allocatable": amounts, "mappings": [mapping]})
    expected = {f"{implicit}{names.name('secret-gpu')}": "1", "cpu": "2", "example.com/gpu": "1"}
    assert hashed["requests"] == hashed["limits"] == hashed["allocatable"] == expected
    assert hashed["mappings"][0]["resourceName"] == f"{implicit}{names.name('secret-gpu')}"
    assert "secret" not in str(hashed)


def test_each_recording_has_hashes_of_its_own() -> None:
    assert HashedNames().name("node-1") != HashedNames().name("node-1")
    same = HashedNames(b"key")
    assert same.name("a/b") == f"{same.name('a')}/{same.name('b')}"


def test_numbers_in_selectors_stay_numbers() -> None:
    names = HashedNames(b"key")
    terms = [{"key": "gpus", "operator": "Gt", "values": ["4"]}, {"key": "zone", "operator": "In", "values": ["a"]}]
    more, one_of = names.document({"matchExpressions": terms})["matchExpressions"]
    assert more["values"] == ["4"]
    assert one_of["values"] == [names.name("a")]
