"""Pod Security labels over HTTP: pods are refused, writers of workloads and of labels are warned."""

from __future__ import annotations

from typing import Any

from live_server import LiveServer

ENFORCE = "pod-security.kubernetes.io/enforce"
PRIVILEGED = {"containers": [{"name": "c", "image": "i", "securityContext": {"privileged": True}}]}


def label(server: LiveServer, namespace: str, **labels: str) -> list[str]:
    patch = {"metadata": {"labels": {f"pod-security.kubernetes.io/{name}": value for name, value in labels.items()}}}
    path = f"/api/v1/namespaces/{namespace}"
    answer = server.request("PATCH", path, patch, content_type="application/merge-patch+json")
    assert answer.code == 200, answer.body
    return answer.headers.get_all("Warning") or []


def create(server: LiveServer, path: str, name: str, **more: Any) -> Any:
    return server.request("POST", path, {"metadata": {"name": name}, **more})


def test_a_pod_that_a_namespace_does_not_allow(server: LiveServer, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    assert create(server, pods, "before", spec=PRIVILEGED).code == 201
    said = label(server, namespace, enforce="baseline")
    level = (
        f'existing pods in namespace \\"{namespace}\\" violate the new PodSecurity enforce level \\"baseline:latest\\"'
    )
    assert said == [f'299 - "{level}"', '299 - "before: privileged"']
    answer = create(server, pods, "p", spec=PRIVILEGED)
    assert answer.code == 403
    assert answer.json["message"] == (
        'pods "p" is forbidden: violates PodSecurity "baseline:latest": privileged (container "c" must not set '
        "securityContext.privileged=true)"
    )
    assert answer.json["reason"] == "Forbidden"


def test_writers_of_workloads_hear_what_becomes_of_their_pods(server: LiveServer, namespace: str) -> None:
    label(server, namespace, warn="restricted")
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    answer = create(server, f"/apis/apps/v1/namespaces/{namespace}/deployments", "d", spec=spec)
    assert answer.code == 201
    said = answer.headers.get_all("Warning") or []
    assert len(said) == 1
    assert 'would violate PodSecurity \\"restricted:latest\\": allowPrivilegeEscalation != false' in said[0]


def test_labels_that_nobody_understands(server: LiveServer, namespace: str) -> None:
    answer = server.request(
        "POST", "/api/v1/namespaces", {"metadata": {"name": f"{namespace}-x", "labels": {ENFORCE: "secure"}}}
    )
    assert answer.code == 422
    assert answer.causes == {("FieldValueInvalid", f"metadata.labels[{ENFORCE}]")}
    assert "must be one of privileged, baseline, restricted" in answer.json["message"]


def test_a_json_patch_with_members_that_no_operation_has(server: LiveServer, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}"
    patch = [{"op": "add", "path": "/metadata/labels/a", "value": "b", "bogus": 1}]
    warned = server.request("PATCH", path, patch, content_type="application/json-patch+json")
    assert warned.code == 200
    assert warned.headers.get_all("Warning") == ['299 - "json patch unknown field \\"[0].bogus\\""']
    strict = server.request(
        "PATCH", f"{path}?fieldValidation=Strict", patch, content_type="application/json-patch+json"
    )
    assert strict.code == 422
    assert 'strict decoding error: json patch unknown field \\"[0].bogus\\"' in strict.body.decode()
