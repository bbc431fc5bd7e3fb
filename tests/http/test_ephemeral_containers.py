"""pods/ephemeralcontainers: containers that come into a running pod, and stay."""

from __future__ import annotations

from typing import Any

import pytest

from live_server import Answer, LiveServer

STRATEGIC = "application/strategic-merge-patch+json"


@pytest.fixture
def pod(server: LiveServer, namespace: str) -> str:
    """The path of a pod with one container."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    made = server.request(
        "POST", path, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "i"}]}}
    )
    assert made.code == 201, made.body
    return f"{path}/p"


def add(server: LiveServer, pod: str, **container: Any) -> Answer:
    patch = {"spec": {"ephemeralContainers": [container]}}
    return server.request("PATCH", f"{pod}/ephemeralcontainers", patch, STRATEGIC)


def test_one_comes_in_and_nothing_else_changes(server: LiveServer, pod: str) -> None:
    patch = {
        "metadata": {"labels": {"x": "y"}},
        "spec": {
            "containers": [{"name": "a", "image": "other"}],
            "ephemeralContainers": [{"name": "eye", "image": "busybox", "targetContainerName": "a"}],
        },
    }
    answer = server.request("PATCH", f"{pod}/ephemeralcontainers", patch, STRATEGIC)
    assert answer.code == 200, answer.body
    stored = server.request("GET", pod).json
    assert stored["spec"]["containers"][0]["image"] == "i"
    assert "labels" not in stored["metadata"]
    assert stored["metadata"]["generation"] == 2
    (eye,) = stored["spec"]["ephemeralContainers"]
    assert (eye["name"], eye["imagePullPolicy"], eye["targetContainerName"]) == ("eye", "Always", "a")
    assert add(server, pod, name="second", image="i").code == 200
    labelled = server.request("PATCH", pod, {"metadata": {"labels": {"x": "y"}}}, STRATEGIC)
    assert len(labelled.json["spec"]["ephemeralContainers"]) == 2


@pytest.mark.parametrize(
    ("container", "cause"),
    [
        ({"name": "A", "image": "i"}, ("FieldValueInvalid", "name")),
        ({"name": "e", "image": ""}, ("FieldValueRequired", "image")),
        ({"name": "a", "image": "i"}, ("FieldValueDuplicate", "name")),
        ({"name": "e", "image": "i", "targetContainerName": "z"}, ("FieldValueNotFound", "targetContainerName")),
        ({"name": "e", "image": "i", "ports": [{"containerPort": 80}]}, ("FieldValueForbidden", "ports")),
        ({"name": "e", "image": "i", "resources": {"limits": {"cpu": "1"}}}, ("FieldValueForbidden", "resources")),
        (
            {"name": "e", "image": "i", "livenessProbe": {"exec": {"command": ["x"]}}},
            ("FieldValueForbidden", "livenessProbe"),
        ),
    ],
)
def test_what_cannot_come_in(server: LiveServer, pod: str, container: dict[str, Any], cause: tuple[str, str]) -> None:
    answer = add(server, pod, **container)
    assert answer.code == 422
    reason, field = cause
    assert (reason, f"spec.ephemeralContainers[0].{field}") in answer.causes


def test_those_that_are_there_stay_as_they_are(server: LiveServer, pod: str) -> None:
    assert add(server, pod, name="eye", image="i").code == 200
    changed = add(server, pod, name="eye", image="other")
    assert (changed.code, changed.causes) == (422, {("FieldValueForbidden", "spec.ephemeralContainers")})
    without = {"spec": {"ephemeralContainers": None}}
    removed = server.request("PATCH", f"{pod}/ephemeralcontainers", without, "application/merge-patch+json")
    assert (removed.code, removed.causes) == (422, {("FieldValueForbidden", "spec.ephemeralContainers")})


def test_there_is_no_other_way_in(server: LiveServer, pod: str) -> None:
    patch = {"spec": {"ephemeralContainers": [{"name": "eye", "image": "i"}]}}
    answer = server.request("PATCH", pod, patch, STRATEGIC)
    assert (answer.code, answer.causes) == (422, {("FieldValueForbidden", "spec")})
