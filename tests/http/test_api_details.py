"""Small things that clients of Kubernetes rely on, each as kube-apiserver 1.37 was seen to answer."""

from __future__ import annotations

from typing import Any

import pytest

import builders
from live_server import Kubectl, LiveServer

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
PODS = "/api/v1/namespaces/default/pods"


def config_map(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, "data": {"a": "1"}}


def deployment(name: str) -> dict[str, Any]:
    return builders.workload(name, namespace="")


@pytest.fixture
def maps(server: LiveServer, namespace: str) -> str:
    """The path of ConfigMaps, of which there is one, `one`."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    assert server.request("POST", path, config_map("one")).code == 201
    return path


def pod(server: LiveServer, namespace: str) -> str:
    path = f"/api/v1/namespaces/{namespace}/pods"
    made = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main", "image": "a"}]}}
    assert server.request("POST", path, made).code == 201
    return f"{path}/p"


@pytest.mark.req("implied-2")
@pytest.mark.parametrize(
    ("query", "code", "causes"),
    [
        ("resourceVersion=x", 400, set()),
        ("resourceVersionMatch=Exact", 422, {("FieldValueForbidden", "resourceVersionMatch")}),
        ("resourceVersionMatch=Exact&resourceVersion=0", 422, {("FieldValueForbidden", "resourceVersionMatch")}),
        ("resourceVersionMatch=Some&resourceVersion=1", 422, {("FieldValueNotSupported", "resourceVersionMatch")}),
        ("sendInitialEvents=true", 422, {("FieldValueForbidden", "sendInitialEvents")}),
        ("watch=1&sendInitialEvents=true", 422, {("FieldValueForbidden", "resourceVersionMatch")}),
        ("watch=1&sendInitialEvents=false", 422, {("FieldValueForbidden", "resourceVersionMatch")}),
        ("watch=1&resourceVersionMatch=NotOlderThan", 422, {("FieldValueForbidden", "resourceVersionMatch")}),
        ("watch=1&continue=x", 422, {("FieldValueForbidden", "resourceVersionMatch")}),
        (
            "watch=1&resourceVersion=5&resourceVersionMatch=Exact",
            422,
            {("FieldValueForbidden", "resourceVersionMatch"), ("FieldValueNotSupported", "resourceVersionMatch")},
        ),
    ],
)
def test_lists_and_watches_have_rules_of_their_own(
    server: LiveServer, query: str, code: int, causes: set[tuple[str, str]]
) -> None:
    answer = server.request("GET", f"{PODS}?{query}")
    assert answer.code == code, answer.body
    assert (answer.causes if causes else set()) == causes


@pytest.mark.req("implied-2")
def test_a_revision_of_the_future_tells_clients_to_list_again(server: LiveServer) -> None:
    answer = server.request("GET", f"{PODS}?resourceVersion=99999999999")
    assert (answer.code, answer.json["reason"]) == (504, "Timeout")
    (cause,) = answer.json["details"]["causes"]
    assert cause["reason"] == "ResourceVersionTooLarge"
    assert answer.headers["Retry-After"] == "1"


def test_an_unknown_version_of_a_served_group_is_a_status_and_an_unknown_group_is_text(server: LiveServer) -> None:
    known = server.request("GET", "/apis/apps/v9/deployments")
    assert (known.code, known.json["reason"]) == (404, "NotFound")
    assert server.request("GET", "/apis/nope.example.com/v1/things").body == b"404 page not found\n"


@pytest.mark.req("implied-3")
@pytest.mark.parametrize(
    "wanted", [{"data": 5}, {"kind": "Secret"}, {"apiVersion": "v2"}, {"metadata": {"labels": "x"}}]
)
def test_a_patch_that_leaves_no_object_of_the_kind_is_invalid(
    server: LiveServer, maps: str, wanted: dict[str, Any]
) -> None:
    refused = server.request("PATCH", f"{maps}/one", wanted, MERGE)
    assert (refused.code, refused.causes) == (422, {("FieldValueInvalid", "patch")})
    strict = server.request("PATCH", f"{maps}/one?fieldValidation=Strict", {"colour": "red"}, MERGE)
    assert (strict.code, strict.causes) == (422, {("FieldValueInvalid", "patch")})
    assert "unknown field" in strict.json["message"]


def test_only_an_apply_is_forced(server: LiveServer, maps: str) -> None:
    refused = server.request("PATCH", f"{maps}/one?force=true", {"data": {"a": "2"}}, MERGE)
    assert (refused.code, refused.causes) == (422, {("FieldValueForbidden", "force")})


@pytest.mark.req("implied-2")
def test_deletes_with_preconditions_name_the_kind(server: LiveServer, maps: str) -> None:
    for wrong in ({"uid": "x"}, {"resourceVersion": "1"}):
        refused = server.request("DELETE", f"{maps}/one", {"preconditions": wrong})
        assert (refused.code, refused.json["reason"]) == (409, "Conflict")
        assert refused.json["details"] == {"name": "one", "kind": "ConfigMap"}
    other = server.request("DELETE", f"{maps}/one", {"kind": "Pod"})
    assert (other.code, other.json["reason"]) == (400, "BadRequest")
    assert server.request("GET", f"{maps}/one").code == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/apis/resource.k8s.io/v1/devicetaintrules", {"spec": {"taint": {"key": "a", "effect": "NoExecute"}}}),
        ("/apis/cluster.open-cluster-management.io/v1beta2/managedclustersets", {"spec": {}}),
        ("/apis/node.k8s.io/v1/runtimeclasses", {"handler": "h"}),
    ],
)
def test_some_kinds_are_only_replaced_by_who_has_seen_them(server: LiveServer, path: str, body: dict[str, Any]) -> None:
    named = body | {"metadata": {"name": "conditional"}}
    made = server.request("POST", path, named)
    assert made.code == 201, made.body
    blind = server.request("PUT", f"{path}/conditional", named)
    assert (blind.code, blind.causes) == (422, {("FieldValueInvalid", "metadata.resourceVersion")})
    assert server.request("PUT", f"{path}/conditional", made.json).code == 200
    assert server.request("PUT", f"{path}/nope", body | {"metadata": {"name": "nope"}}).code == 404


def test_rules_of_earlier_versions_may_be_replaced_blindly(server: LiveServer) -> None:
    path = "/apis/resource.k8s.io/v1alpha3/devicetaintrules"
    rule = {"metadata": {"name": "blind"}, "spec": {"taint": {"key": "a", "effect": "NoExecute"}}}
    assert server.request("POST", path, rule).code == 201
    assert server.request("PUT", f"{path}/blind", rule).code == 200


def test_the_status_of_a_deployment_carries_its_revision(server: LiveServer, namespace: str) -> None:
    # kube-controller-manager writes the annotation through the status, and tries for ever if it does not stay.
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    made = server.request("POST", path, deployment("d")).json
    made["metadata"] |= {"annotations": {"deployment.kubernetes.io/revision": "1"}, "labels": {"new": "label"}}
    made["status"] = {"observedGeneration": 1}
    written = server.request("PUT", f"{path}/d/status", made).json
    assert written["metadata"]["annotations"] == {"deployment.kubernetes.io/revision": "1"}
    assert "labels" not in written["metadata"]
    assert written["metadata"]["generation"] == 1


def test_the_generation_of_a_deployment_counts_annotations(server: LiveServer, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    server.request("POST", path, deployment("d"))
    generations = [
        server.request("PATCH", f"{path}/d", {"metadata": change}, MERGE).json["metadata"]["generation"]
        for change in ({"labels": {"a": "b"}}, {"annotations": {"a": "b"}})
    ]
    assert generations == [1, 2]


@pytest.mark.req("implied-3")
def test_what_is_created_in_a_namespace_that_goes_is_refused_with_a_cause(server: LiveServer) -> None:
    namespace = server.new_namespace()
    pod(server, namespace)
    server.request("DELETE", f"/api/v1/namespaces/{namespace}")
    refused = server.request("POST", f"/api/v1/namespaces/{namespace}/configmaps", config_map("late"))
    assert (refused.code, refused.causes) == (403, {("NamespaceTerminating", "metadata.namespace")})
    assert refused.json["details"]["name"] == "late"


def test_a_pod_that_is_gone_says_when_it_went(server: LiveServer, namespace: str) -> None:
    path = pod(server, namespace)
    gone = server.request("DELETE", path).json["metadata"]
    assert gone["deletionGracePeriodSeconds"] == 0
    assert gone["deletionTimestamp"] >= gone["creationTimestamp"]
    assert gone["generation"] == 2
    assert server.request("GET", path).code == 404


@pytest.mark.parametrize(
    ("target", "said"),
    [({"kind": "Pod", "name": "n"}, "target.kind"), ({"kind": "Node"}, "target.name"), ({}, "target.name")],
)
def test_a_binding_needs_a_node(server: LiveServer, namespace: str, target: dict[str, str], said: str) -> None:
    path = pod(server, namespace)
    refused = server.request("POST", f"{path}/binding", {"metadata": {"name": "p"}, "target": target})
    assert refused.code == 400
    assert said in refused.json["message"]


def test_bindings_and_evictions_are_about_the_pod_of_the_path_and_have_no_other_fields(
    server: LiveServer, namespace: str
) -> None:
    path = pod(server, namespace)
    for action, body in (("binding", {"target": {"name": "n"}}), ("eviction", {})):
        other = server.request("POST", f"{path}/{action}", body | {"metadata": {"name": "q"}})
        assert (other.code, other.json["reason"]) == (400, "BadRequest")
        strict = server.request("POST", f"{path}/{action}?fieldValidation=Strict", body | {"colour": "red"})
        assert strict.code == 400
        assert 'unknown field "colour"' in strict.json["message"]
    warned = server.request("POST", f"{path}/binding", {"target": {"name": "n"}, "colour": "red"})
    assert warned.headers["Warning"] == '299 - "unknown field \\"colour\\""'


def test_unknown_fields_are_named_as_kubernetes_names_them(server: LiveServer) -> None:
    device = {"name": "d", "attributes": {"a": {"int": 1, "é": 1}}, "capacity": {"x.y/c": {"value": "1", "a\tb": 1}}}
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d.x", "nodeName": "n", "pool": pool, "devices": [device]}
    path = "/apis/resource.k8s.io/v1/resourceslices?dryRun=All"
    answer = server.request("POST", path, {"metadata": {"name": "s"}, "spec": spec})
    assert answer.code == 201, answer.body
    said = [text.encode("latin-1").decode() for text in answer.headers.get_all("Warning", [])]
    assert said == [
        '299 - "unknown field \\"spec.devices[0].attributes.a.é\\""',
        '299 - "unknown field \\"spec.devices[0].capacity.x.y/c.a\\\\tb\\""',
    ]


@pytest.mark.parametrize(("finalizer", "code"), [("orphan", 201), ("kubernetes", 201), ("a.b/c", 201), ("mine", 422)])
def test_finalizers_are_qualified_or_standard(server: LiveServer, namespace: str, finalizer: str, code: int) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps?dryRun=All"
    answer = server.request("POST", path, config_map("f", finalizers=[finalizer]))
    assert answer.code == code
    if code == 422:
        assert answer.causes == {("FieldValueInvalid", "metadata.finalizers[0]")}


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("busybox", "Always"),
        ("busybox:latest", "Always"),
        ("busybox:1", "IfNotPresent"),
        ("registry.example.com:5000/a/b", "Always"),
        (f"a@sha256:{'0' * 64}", "IfNotPresent"),
        ("img:v1/y", "IfNotPresent"),
        ("Upper", "IfNotPresent"),
    ],
)
def test_images_are_pulled_by_their_tags(server: LiveServer, image: str, policy: str) -> None:
    made = {"metadata": {"name": "i"}, "spec": {"containers": [{"name": "main", "image": image}]}}
    answer = server.request("POST", f"{PODS}?dryRun=All", made)
    assert answer.json["spec"]["containers"][0]["imagePullPolicy"] == policy


@pytest.mark.parametrize("command", ["logs p", "exec p -- ls", "attach p"])
def test_kubectl_is_told_that_there_is_no_node(
    kubectl: Kubectl, server: LiveServer, namespace: str, command: str
) -> None:
    path = pod(server, namespace)
    server.request("POST", f"{path}/binding", {"target": {"name": "n"}})
    server.request("PATCH", f"{path}/status", {"status": {"phase": "Running"}}, STRATEGIC)
    refused = kubectl.run("-n", namespace, *command.split())
    assert refused.returncode == 1
    assert 'nodes "n" not found' in refused.stderr


def test_what_leads_to_containers_is_for_those_who_may(server: LiveServer) -> None:
    as_eve = {"Impersonate_User": "eve"}
    assert server.request("GET", f"{PODS}/p/log", **as_eve).code == 403
    assert server.request("GET", f"{PODS}/p/log").code == 404
    asked = server.request("GET", f"{PODS}/p/proxy")
    assert (asked.code, asked.json["details"]) == (501, {"name": "p", "kind": "pods"})
