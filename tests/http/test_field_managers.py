"""Who owns which field: every client over HTTP is on record, by its own name or by its User-Agent."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from dray.server.verbs.field_owners import LONGEST_REMEMBERED, manager_of
from live_server import Answer, Kubectl, LiveServer

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def owners(obj: dict[str, Any]) -> dict[tuple[str, str, str], dict[str, Any]]:
    """The fields of each manager, operation and subresource."""
    return {
        (entry["manager"], entry["operation"], entry.get("subresource", "")): entry["fieldsV1"]
        for entry in obj["metadata"].get("managedFields", ())
    }


@pytest.mark.parametrize(
    ("agent", "manager"),
    [
        ("kubectl/v1.37.0 (linux/amd64) kubernetes/0c0c1e3", "kubectl"),
        ("python-requests/2.0", "python-requests"),
        ("curl", "curl"),
        ("/odd", "unknown"),
        ("", "unknown"),
        ("a\tb/1", "ab"),
        ("x" * 200, "x" * 128),
        ("ü" * 100, "ü" * 64),
    ],
)
def test_a_user_agent_names_its_manager(agent: str, manager: str) -> None:
    assert manager_of(agent) == manager


def test_creates_updates_and_patches_are_recorded_by_user_agent(server: LiveServer, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    made = server.request("POST", path, config_map("m", a="1", b="1"), User_Agent="maker/1.0").json
    assert owners(made) == {("maker", "Update", ""): {"f:data": {".": {}, "f:a": {}, "f:b": {}}}}
    (entry,) = made["metadata"]["managedFields"]
    assert entry["time"] == made["metadata"]["creationTimestamp"]
    assert (entry["apiVersion"], entry["fieldsType"]) == ("v1", "FieldsV1")

    made["data"]["b"] = "2"
    updated = server.request("PUT", f"{path}/m", made, User_Agent="updater/1.0").json
    assert owners(updated)["updater", "Update", ""] == {"f:data": {"f:b": {}}}
    assert owners(updated)["maker", "Update", ""] == {"f:data": {".": {}, "f:a": {}}}

    patched = server.request("PATCH", f"{path}/m", {"data": {"c": "3"}}, MERGE, User_Agent="patcher/1.0").json
    assert owners(patched)["patcher", "Update", ""] == {"f:data": {"f:c": {}}}
    assert server.request("GET", f"{path}/m").json == patched
    listed = server.request("GET", path).json["items"]
    assert [owners(item) for item in listed if item["metadata"]["name"] == "m"] == [owners(patched)]


def test_a_client_without_a_name_is_unknown_and_one_with_a_field_manager_is_that(
    server: LiveServer, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    unnamed = server.request("POST", path, config_map("a", x="1")).json
    assert set(owners(unnamed)) == {("unknown", "Update", "")}
    named = server.request("POST", f"{path}?fieldManager=me", config_map("b", x="1"), User_Agent="curl/8").json
    assert set(owners(named)) == {("me", "Update", "")}


def test_status_writes_are_recorded_apart(server: LiveServer, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main", "image": "a"}]}}
    server.request("POST", path, pod, User_Agent="maker/1.0")
    status = {"status": {"conditions": [{"type": "Ready", "status": "True"}], "phase": "Running"}}
    patched = server.request("PATCH", f"{path}/p/status", status, STRATEGIC, User_Agent="kubelet/v1.37").json
    found = owners(patched)
    assert set(found) == {("maker", "Update", ""), ("kubelet", "Update", "status")}
    ready = found["kubelet", "Update", "status"]["f:status"]["f:conditions"]['k:{"type":"Ready"}']
    assert ready == {".": {}, "f:lastProbeTime": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {}}
    assert "f:status" not in found["maker", "Update", ""]
    assert 'k:{"name":"main"}' in found["maker", "Update", ""]["f:spec"]["f:containers"]


def test_objects_of_one_template_have_their_own_entries(server: LiveServer, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    first = config_map("first", a="1")
    first["metadata"]["labels"] = {"x": "1"}
    second = config_map("second", a="1")
    second["metadata"]["labels"] = {"y": "1"}
    made = [
        server.request("POST", path, one, User_Agent=f"{one['metadata']['name']}/1").json for one in (first, second)
    ]
    data: dict[str, Any] = {"f:data": {".": {}, "f:a": {}}}
    assert owners(made[0]) == {("first", "Update", ""): data | {"f:metadata": {"f:labels": {".": {}, "f:x": {}}}}}
    assert owners(made[1]) == {("second", "Update", ""): data | {"f:metadata": {"f:labels": {".": {}, "f:y": {}}}}}


def test_large_objects_and_other_versions_are_recorded_too(server: LiveServer, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    large = server.request("POST", path, config_map("large", a="x" * (2 * LONGEST_REMEMBERED))).json
    assert owners(large) == {("unknown", "Update", ""): {"f:data": {".": {}, "f:a": {}}}}
    beta = f"/apis/resource.k8s.io/v1beta1/namespaces/{namespace}/resourceclaims"
    claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [{"name": "r", "deviceClassName": "gpu"}]}}}
    made = server.request("POST", beta, claim).json
    (entry,) = made["metadata"]["managedFields"]
    assert entry["apiVersion"] == "resource.k8s.io/v1beta1"
    assert entry["fieldsV1"] == {"f:spec": {"f:devices": {"f:requests": {}}}}


def test_applying_what_another_client_made_conflicts_until_forced(
    kubectl: Kubectl, server: LiveServer, namespace: str
) -> None:
    text = json.dumps(config_map("settings", colour="red"))
    kubectl("create", "-n", namespace, "-f", "-", stdin=text)
    apply = ("apply", "--server-side", "-n", namespace, "-f", "-")
    refused = kubectl.run(*apply, stdin=text.replace("red", "blue"))
    assert refused.returncode == 1
    assert 'conflict with "kubectl-create" using v1: .data.colour' in refused.stderr
    assert kubectl.run(*apply, stdin=text).returncode == 0  # the same value is no conflict: both own it
    both = owners(server.request("GET", f"/api/v1/namespaces/{namespace}/configmaps/settings").json)
    assert set(both) == {("kubectl-create", "Update", ""), ("kubectl", "Apply", "")}
    kubectl(*apply, "--force-conflicts", stdin=text.replace("red", "blue"))
    forced = owners(server.request("GET", f"/api/v1/namespaces/{namespace}/configmaps/settings").json)
    assert ".data" not in json.dumps(forced.get(("kubectl-create", "Update", ""), {}))
    assert forced["kubectl", "Apply", ""] == {"f:data": {"f:colour": {}}}


def test_applying_over_a_plain_client_conflicts_with_its_user_agent(server: LiveServer, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    server.request("POST", path, config_map("plain", a="1"), User_Agent="OpenAPI-Generator/31.0/python")
    refused = server.request("PATCH", f"{path}/plain?fieldManager=me", config_map("plain", a="2"), APPLY)
    assert refused.code == 409
    assert refused.causes == {("FieldManagerConflict", ".data.a")}
    assert 'conflict with "OpenAPI-Generator"' in refused.json["message"]


SENSELESS = [
    [{}, {}],
    [{"manager": "m", "operation": "Delete"}],
    [{"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV2", "fieldsV1": {}}],
    [{"manager": "m", "operation": "Update", "apiVersion": "a/b/c", "fieldsType": "FieldsV1", "fieldsV1": {}}],
]
"""Entries that nobody can read, with which Kubernetes 1.37 leaves things as they are."""


def test_one_empty_entry_forgets_who_set_what(server: LiveServer, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    ways: tuple[tuple[str, Callable[[str], Answer]], ...] = (
        ("merged", lambda it: server.request("PATCH", f"{path}/{it}", {"metadata": {"managedFields": [{}]}}, MERGE)),
        (
            "put",
            lambda it: server.request(
                "PUT", f"{path}/{it}", {**config_map(it), "metadata": {"name": it, "managedFields": [{}]}}
            ),
        ),
        (
            "patched",
            lambda it: server.request(
                "PATCH",
                f"{path}/{it}",
                [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}],
                "application/json-patch+json",
            ),
        ),
    )
    for name, forget in ways:
        assert owners(server.request("POST", path, config_map(name, a="1")).json)
        forgotten = forget(name)
        assert forgotten.code == 200
        assert "managedFields" not in forgotten.json["metadata"]
    changed = server.request("PATCH", f"{path}/merged", {"data": {"b": "2"}}, MERGE).json
    assert owners(changed) == {}  # nobody is on record again until somebody applies


@pytest.mark.parametrize("entries", SENSELESS)
def test_entries_without_sense_change_nothing(server: LiveServer, namespace: str, entries: list[Any]) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    made = server.request("POST", path, config_map("kept", a="1"), User_Agent="maker/1.0").json
    given = {**made, "metadata": {**made["metadata"], "managedFields": entries}}
    same = server.request("PUT", f"{path}/kept", given).json
    assert same == made
    assert server.request("PATCH", f"{path}/kept", {"metadata": {"managedFields": entries}}, MERGE).json == made


def test_a_status_brings_no_entries(server: LiveServer, namespace: str) -> None:
    path = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"
    claim = {
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "g"}}]}},
    }
    made = server.request("POST", path, claim).json
    (entry,) = made["metadata"]["managedFields"]
    brought = {"metadata": {"managedFields": [{**entry, "manager": "x" * 129}]}, "status": {}}
    assert server.request("PATCH", f"{path}/c/status", brought, MERGE).json == made


def test_what_the_server_changes_belongs_to_nobody(server: LiveServer) -> None:
    """Recorded from Kubernetes 1.37: a new effect has the server set the time, which stays with whoever set it."""
    rules = "/apis/resource.k8s.io/v1/devicetaintrules"
    taint = {"key": "k", "effect": "NoExecute", "timeAdded": "2026-01-02T03:04:05Z"}
    server.request("POST", f"{rules}?fieldManager=maker", {"metadata": {"name": "timed"}, "spec": {"taint": taint}})
    changed = {"spec": {"taint": {"effect": "NoSchedule"}}}
    rule = server.request("PATCH", f"{rules}/timed?fieldManager=changer", changed, MERGE).json
    assert rule["spec"]["taint"]["timeAdded"] != taint["timeAdded"]
    assert owners(rule) == {
        ("maker", "Update", ""): {"f:spec": {"f:taint": {"f:key": {}, "f:timeAdded": {}}}},
        ("changer", "Update", ""): {"f:spec": {"f:taint": {"f:effect": {}}}},
    }


def test_what_a_policy_changes_belongs_to_nobody(server: LiveServer) -> None:
    """Recorded from Kubernetes 1.37, for new objects and for changed ones."""
    policies, name = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolic", {"name": "labels"}
    classes = {"apiGroups": ["resource.k8s.io"], "apiVersions": ["v1"], "resources": ["deviceclasses"]}
    labels = "Object{metadata: Object.metadata{labels: {'by-policy': request.operation}}}"
    spec = {
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [{**classes, "operations": ["CREATE", "UPDATE"]}]},
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": labels}}],
    }
    assert server.request("POST", f"{policies}ies", {"metadata": name, "spec": spec}).code == 201
    bound = {"metadata": name, "spec": {"policyName": "labels"}}
    assert server.request("POST", f"{policies}ybindings", bound).code == 201
    path = "/apis/resource.k8s.io/v1/deviceclasses"
    annotated = {"metadata": {"name": "labelled", "annotations": {"a": "b"}}, "spec": {}}
    server.request("POST", f"{path}?fieldManager=maker", annotated)
    extended = {"spec": {"extendedResourceName": "example.com/gpu"}}
    made = server.request("PATCH", f"{path}/labelled?fieldManager=changer", extended, MERGE).json
    server.request("DELETE", f"{policies}ybindings/labels")
    server.request("DELETE", f"{policies}ies/labels")
    assert made["metadata"]["labels"] == {"by-policy": "UPDATE"}
    assert owners(made) == {
        ("maker", "Update", ""): {"f:metadata": {"f:annotations": {".": {}, "f:a": {}}}},
        ("changer", "Update", ""): {"f:spec": {"f:extendedResourceName": {}}},
    }
