"""What is sent to a part of an object must be of the kind that goes there, and about that object."""

from __future__ import annotations

from typing import Any

import pytest

from live_server import LiveServer

pytestmark = pytest.mark.req("implied-3")

NODE = {"kind": "Node", "name": "node-1"}
SPEC = {"containers": [{"name": "c", "image": "i"}], "serviceAccountName": "default"}


def eviction(**parts: Any) -> dict[str, Any]:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}, **parts}


def binding(**parts: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": NODE, **parts}


@pytest.mark.parametrize(
    ("part", "body", "code"),
    [
        ("eviction", {}, 400),
        ("eviction", eviction(metadata={}), 400),
        ("eviction", eviction(kind="Pod", apiVersion="v1"), 400),
        ("eviction", eviction(apiVersion="batch/v1"), 400),
        ("eviction", eviction(metadata={"name": "p", "namespace": "elsewhere"}), 400),
        ("eviction", eviction(deleteOptions={"dryRun": ["Some"]}), 422),
        ("eviction", eviction(deleteOptions={"propagationPolicy": "Some"}), 422),
        ("binding", binding(kind="Pod"), 400),
        ("binding", binding(target={"kind": "Node", "name": "A B"}), 400),
        ("binding", binding(metadata={"name": "p", "namespace": "elsewhere"}), 400),
    ],
)
def test_a_pod_stays_as_it_is(server: LiveServer, namespace: str, part: str, body: dict[str, Any], code: int) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    made = server.request("POST", pods, {"metadata": {"name": "p"}, "spec": SPEC})
    assert made.code == 201, made.body
    assert server.request("POST", f"{pods}/p/{part}", body).code == code
    after = server.request("GET", f"{pods}/p").json
    assert after["metadata"]["resourceVersion"] == made.json["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"kind": "Deployment", "apiVersion": "apps/v1"}, 400),
        ({"apiVersion": "apps/v1"}, 400),
        ({"metadata": {"name": "d", "namespace": "elsewhere"}}, 400),
        ({"unheard": 1}, 400),
        ({}, 200),
    ],
)
def test_a_scale_is_a_scale(server: LiveServer, namespace: str, body: dict[str, Any], code: int) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    labels = {"a": "b"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": SPEC["containers"]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    assert server.request("POST", path, {"metadata": {"name": "d"}, "spec": spec}).code == 201
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 2}}
    assert server.request("PUT", f"{path}/d/scale?fieldValidation=Strict", {**scale, **body}).code == code
    assert server.request("GET", f"{path}/d").json["spec"]["replicas"] == (2 if code == 200 else 0)
