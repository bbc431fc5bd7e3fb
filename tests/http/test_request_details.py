"""Options, namespaces, owners and pages: what a request says besides its object, as kube-apiserver 1.37 takes it."""

from __future__ import annotations

from typing import Any

import pytest

from live_server import LiveServer

MERGE = "application/merge-patch+json"
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"

pytestmark = pytest.mark.req("implied-3")


def device_class(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, "spec": {}}


@pytest.mark.parametrize(
    ("query", "cause"),
    [
        ("dryRun=", ("FieldValueNotSupported", "dryRun")),
        ("dryRun=all", ("FieldValueNotSupported", "dryRun")),
        ("dryRun=some&dryRun=All", ("FieldValueNotSupported", "dryRun")),
        ("fieldManager=a%0Ab", ("FieldValueInvalid", "fieldManager")),
        ("fieldManager=a%C2%A0b", ("FieldValueInvalid", "fieldManager")),
    ],
)
def test_options_that_cannot_be_meant(server: LiveServer, query: str, cause: tuple[str, str]) -> None:
    """They are told before anything that is wrong with the object."""
    refused = server.request("POST", f"{CLASSES}?{query}", device_class("BAD NAME"))
    assert (refused.code, refused.causes) == (422, {cause})
    assert refused.json["details"]["kind"] == "CreateOptions"


def test_an_empty_dry_run_deletes_nothing(server: LiveServer) -> None:
    assert server.request("POST", CLASSES, device_class("kept")).code == 201
    refused = server.request("DELETE", f"{CLASSES}/kept?dryRun=")
    assert (refused.code, refused.causes) == (422, {("FieldValueNotSupported", "dryRun")})
    assert server.request("GET", f"{CLASSES}/kept").code == 200


def test_of_a_parameter_that_is_given_twice_the_first_counts(server: LiveServer) -> None:
    body = {**device_class("once"), "unknown": 1}
    strict, ignoring = "fieldValidation=Strict", "fieldValidation=Ignore"
    assert server.request("POST", f"{CLASSES}?dryRun=All&{strict}&{ignoring}", body).code == 400
    assert server.request("POST", f"{CLASSES}?dryRun=All&{ignoring}&{strict}", body).code == 201


def test_the_namespace_of_a_kind_without_namespaces_does_not_count(server: LiveServer) -> None:
    made = server.request("POST", CLASSES, device_class("nowhere", namespace="somewhere"))
    assert made.code == 201
    assert "namespace" not in made.json["metadata"]
    path = f"{CLASSES}/nowhere"
    put = server.request("PUT", path, device_class("nowhere", namespace="elsewhere"))
    patched = server.request("PATCH", path, {"metadata": {"namespace": "elsewhere"}}, MERGE)
    assert (put.code, patched.code) == (200, 200)
    assert "namespace" not in patched.json["metadata"]


def test_an_object_may_leave_its_namespace_to_the_path_and_not_contradict_it(
    server: LiveServer, namespace: str
) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    assert server.request("POST", maps, {"metadata": {"name": "a"}}).code == 201
    emptied = server.request("PATCH", f"{maps}/a", {"metadata": {"namespace": None}}, MERGE)
    assert (emptied.code, emptied.json["metadata"]["namespace"]) == (200, namespace)
    for refused in (
        server.request("POST", maps, {"metadata": {"name": "b", "namespace": "other"}}),
        server.request("PUT", f"{maps}/a", {"metadata": {"name": "a", "namespace": "other"}}),
        server.request("PATCH", f"{maps}/a", {"metadata": {"namespace": "other"}}, MERGE),
    ):
        assert (refused.code, refused.json["reason"]) == (400, "BadRequest")


def test_an_owner_that_is_named_twice_is_kept_once(server: LiveServer) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u", "controller": True}
    other = {"apiVersion": "v1", "kind": "Pod", "name": "b", "uid": "v"}
    made = server.request("POST", CLASSES, device_class("owned", ownerReferences=[owner, other, owner]))
    assert (made.code, made.json["metadata"]["ownerReferences"]) == (201, [owner, other])
    assert "duplicate UID(s) observed: u" in made.headers["Warning"]
    path = f"{CLASSES}/owned"
    put = server.request("PUT", path, device_class("owned", ownerReferences=[other, other]))
    patched = server.request("PATCH", path, {"metadata": {"ownerReferences": [owner, owner]}}, MERGE)
    assert put.json["metadata"]["ownerReferences"] == [other]
    assert patched.json["metadata"]["ownerReferences"] == [owner]
    assert "duplicate UID(s) observed: u" in patched.headers["Warning"]
    assert "Warning" not in server.request("PUT", path, device_class("owned", ownerReferences=[owner])).headers


def test_nulls_in_the_lists_of_a_merge_patch_say_nothing(server: LiveServer) -> None:
    assert server.request("POST", CLASSES, device_class("listed")).code == 201
    selector = {"cel": {"expression": "true", "unknown": None}, "unknown": None}
    patch = {"spec": {"selectors": [selector]}}
    patched = server.request("PATCH", f"{CLASSES}/listed?fieldValidation=Strict", patch, MERGE)
    assert patched.code == 200, patched.body
    assert patched.json["spec"]["selectors"] == [{"cel": {"expression": "true"}}]


@pytest.mark.parametrize(
    ("path", "is_status"),
    [
        ("/apis/resource.k8s.io/v9", True),
        ("/apis/resource.k8s.io/v9/things", True),
        ("/apis/resource.k8s.io/v1/things", True),
        ("/api/v2", True),
        ("/apis/nobody.example.com", False),
        ("/apis/nobody.example.com/v1", False),
        ("/nothing", False),
    ],
)
def test_pages_that_are_not_there(server: LiveServer, path: str, is_status: bool) -> None:
    """What belongs to a group that is served is missed in words of the API, anything else in those of the web."""
    missing = server.request("GET", path)
    assert missing.code == 404
    if is_status:
        assert missing.json["reason"] == "NotFound"
    else:
        assert missing.body == b"404 page not found\n"


@pytest.mark.parametrize(("field", "value"), [("priority", 5), ("preemptionPolicy", "Never")])
def test_a_pod_does_not_choose_its_priority(server: LiveServer, namespace: str, field: str, value: Any) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"

    def pod(given: Any) -> dict[str, Any]:
        containers = [{"name": "main", "image": "image"}]
        return {"metadata": {"generateName": "p-"}, "spec": {"containers": containers, field: given}}

    refused = server.request("POST", pods, pod(value))
    assert (refused.code, refused.json["reason"]) == (403, "Forbidden")
    assert f"({value}) must not be provided" in refused.json["message"]
    computed = server.request("POST", pods, pod(None)).json["spec"][field]
    assert server.request("POST", pods, pod(computed)).code == 201
