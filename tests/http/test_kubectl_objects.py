"""Stock kubectl reading and changing objects: get, describe, label, patch, wait, watch, taint, scale, drain, delete."""

from __future__ import annotations

import json

import pytest

from live_server import Kubectl, LiveServer
from patience import KUBECTL_PATIENCE, PATIENCE

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "pod"},
    "spec": {"containers": [{"name": "main", "image": "busybox"}]},
}
CLAIM = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "claim"},
    "spec": {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": "gpu"}}]}},
}


@pytest.fixture
def pod(server: LiveServer, namespace: str) -> str:
    """The path of a pod."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    assert server.request("POST", path, POD).code == 201
    return f"{path}/pod"


@pytest.fixture
def claim(server: LiveServer, namespace: str) -> str:
    """The path of a claim."""
    path = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"
    assert server.request("POST", path, CLAIM).code == 201
    return f"{path}/claim"


@pytest.mark.req("implied-1")
@pytest.mark.usefixtures("pod", "claim")
def test_get_in_all_forms(kubectl: Kubectl, namespace: str) -> None:
    table = kubectl("get", "pods,resourceclaims", "-n", namespace)
    assert "READY" in table
    assert "STATE" in table
    assert "pending" in table
    assert "NODE" in kubectl("get", "pods", "-n", namespace, "-o", "wide")
    assert "image: busybox" in kubectl("get", "pod", "pod", "-n", namespace, "-o", "yaml")
    assert kubectl("get", "pod", "-n", namespace, "-o", "jsonpath={.items[*].metadata.name}") == "pod"
    assert kubectl("get", "pod", "-n", namespace, "-o", "name") == "pod/pod\n"
    assert kubectl("get", "po", "-n", namespace, "-o", "custom-columns=N:.metadata.name", "--no-headers") == "pod\n"
    assert kubectl("get", "pod", "-n", namespace, "--field-selector", "spec.nodeName=other", "-o", "name") == ""
    assert "NotFound" in kubectl.run("get", "pod", "nope", "-n", namespace).stderr


@pytest.mark.req("4381-221", "implied-1")
def test_describe_pod_and_claim_with_their_events(
    kubectl: Kubectl, server: LiveServer, namespace: str, pod: str, claim: str
) -> None:
    for kind, name, path in (("Pod", "pod", pod), ("ResourceClaim", "claim", claim)):
        uid = server.request("GET", path).json["metadata"]["uid"]
        about = {"kind": kind, "name": name, "namespace": namespace, "uid": uid}
        event = {
            "metadata": {"name": f"{name}.1"},
            "involvedObject": about,
            "reason": "Testing",
            "message": "why it waits",
            "type": "Warning",
        }
        assert server.request("POST", f"/api/v1/namespaces/{namespace}/events", event).code == 201
    about_pod = kubectl("describe", "pod", "pod", "-n", namespace)
    assert "busybox" in about_pod
    assert "why it waits" in about_pod
    about_claim = kubectl("describe", "resourceclaim", "claim", "-n", namespace)
    assert "Device Class Name:  gpu" in about_claim
    assert "why it waits" in about_claim


@pytest.mark.req("implied-1")
@pytest.mark.usefixtures("pod")
def test_label_annotate_and_every_kind_of_patch(kubectl: Kubectl, namespace: str) -> None:
    def patch(form: str, document: object) -> None:
        kubectl("patch", "pod", "pod", "-n", namespace, f"--type={form}", "-p", json.dumps(document))

    kubectl("label", "pod", "pod", "-n", namespace, "tier=front")
    kubectl("annotate", "pod", "pod", "-n", namespace, "note=text")
    patch("json", [{"op": "add", "path": "/metadata/labels/a", "value": "1"}])
    patch("merge", {"metadata": {"labels": {"tier": None, "b": "2"}}})
    patch("strategic", {"spec": {"containers": [{"name": "main", "image": "other"}]}})
    shown = json.loads(kubectl("get", "pod", "pod", "-n", namespace, "-o", "json"))
    assert shown["metadata"]["labels"] == {"a": "1", "b": "2"}
    assert shown["metadata"]["annotations"] == {"note": "text"}
    assert [one["image"] for one in shown["spec"]["containers"]] == ["other"]


@pytest.mark.req("implied-1")
def test_wait_ends_when_the_condition_comes(kubectl: Kubectl, server: LiveServer, namespace: str, pod: str) -> None:
    timed_out = kubectl.run("wait", "pod/pod", "-n", namespace, "--for=condition=Ready", "--timeout=1s")
    assert timed_out.returncode == 1
    with kubectl.start("wait", "pod/pod", "-n", namespace, "--for=condition=Ready", KUBECTL_PATIENCE) as waiting:
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        assert server.request("PATCH", f"{pod}/status", ready, "application/merge-patch+json").code == 200
        assert "condition met" in waiting.communicate(timeout=PATIENCE)[0]


@pytest.mark.usefixtures("pod")
def test_watch_shows_each_change_as_a_row(kubectl: Kubectl, namespace: str) -> None:
    with kubectl.start("get", "pods", "-n", namespace, "--watch", f"--request-timeout={PATIENCE:g}s") as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline().split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
        assert watching.stdout.readline().split()[:3] == ["pod", "0/1", "Pending"]
        kubectl("delete", "pod", "pod", "-n", namespace, "--wait=false")
        assert watching.stdout.readline().startswith("pod ")
        watching.terminate()


@pytest.mark.req("implied-1")
@pytest.mark.usefixtures("pod", "claim")
def test_delete_waits_until_the_objects_are_gone(
    kubectl: Kubectl, server: LiveServer, namespace: str, pod: str
) -> None:
    said = kubectl("delete", "pod/pod", "resourceclaim/claim", "-n", namespace, KUBECTL_PATIENCE)
    assert said.count("deleted") == 2
    assert server.request("GET", pod).code == 404


def test_taint_and_cordon_a_node(kubectl: Kubectl, server: LiveServer) -> None:
    assert server.request("POST", "/api/v1/nodes", {"metadata": {"name": "tainted"}}).code == 201

    def taints() -> set[str]:
        spec = server.request("GET", "/api/v1/nodes/tainted").json["spec"]
        return {taint["key"] for taint in spec.get("taints", ())}

    before = taints()
    kubectl("taint", "node", "tainted", "example.com/k=v:NoExecute")
    assert taints() == before | {"example.com/k"}
    kubectl("taint", "node", "tainted", "example.com/k-")
    assert taints() == before
    kubectl("cordon", "tainted")
    assert server.request("GET", "/api/v1/nodes/tainted").json["spec"]["unschedulable"] is True


def test_drain_evicts_the_pods_of_a_node(kubectl: Kubectl, server: LiveServer, namespace: str, pod: str) -> None:
    assert server.request("POST", "/api/v1/nodes", {"metadata": {"name": "drained"}}).code == 201
    binding = {"metadata": {"name": "pod"}, "target": {"kind": "Node", "name": "drained"}}
    assert server.request("POST", f"{pod}/binding", binding).code == 201
    kubectl("drain", "drained", "--force", "--grace-period=0", KUBECTL_PATIENCE)
    assert server.request("GET", f"/api/v1/namespaces/{namespace}/pods").json["items"] == []


def test_scale_sets_replicas(kubectl: Kubectl, server: LiveServer, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": POD["spec"]}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    assert server.request("POST", path, {"metadata": {"name": "web"}, "spec": spec}).code == 201
    kubectl("scale", "deployment", "web", "-n", namespace, "--replicas=3", "--current-replicas=1")
    scale = server.request("GET", f"{path}/web/scale").json
    assert (scale["kind"], scale["spec"], scale["status"]["selector"]) == ("Scale", {"replicas": 3}, "a=b")
    refused = server.request("PATCH", f"{path}/web/scale", {"spec": {"replicas": -1}}, "application/merge-patch+json")
    assert (refused.code, refused.causes) == (422, {("FieldValueInvalid", "spec.replicas")})


def test_a_namespace_goes_when_it_is_finalized(kubectl: Kubectl, server: LiveServer, namespace: str) -> None:
    kubectl("delete", "namespace", namespace, "--wait=false")
    assert kubectl("get", "ns", namespace, "-o", "jsonpath={.status.phase}") == "Terminating"
    path = f"/api/v1/namespaces/{namespace}/finalize"
    wrong = server.request("PUT", path, {"metadata": {"name": namespace}, "spec": {"finalizers": ["unqualified"]}})
    assert (wrong.code, wrong.causes) == (422, {("FieldValueInvalid", "spec.finalizers[0]")})
    assert server.request("PUT", path, {"metadata": {"name": namespace}, "spec": {}}).code == 200
    assert server.request("GET", f"/api/v1/namespaces/{namespace}").code == 404


def test_api_resources_lists_what_is_served_and_nothing_else(kubectl: Kubectl, server: LiveServer) -> None:
    listed = kubectl("api-resources", "--no-headers", "-o", "name").split()
    assert {"pods", "resourceclaims.resource.k8s.io", "placements.cluster.open-cluster-management.io"} <= set(listed)
    core = server.request("GET", "/api/v1").json["resources"]
    led_on = {entry["name"] for entry in core if entry["name"].endswith(("/attach", "/exec", "/log", "/portforward"))}
    assert led_on == {"pods/attach", "pods/exec", "pods/log", "pods/portforward"}
    assert not [entry["name"] for entry in core if entry["name"].endswith("/proxy")]
