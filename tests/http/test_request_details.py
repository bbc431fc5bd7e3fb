"""Options, namespaces, owners and pages: what a request says besides its object, as kube-apiserver 1.37 takes it."""

from __future__ import annotations

from typing import Any

import pytest

from live_server import LiveServer

MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
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
        ("fieldManager=" + "%C3%A9" * 65, ("FieldValueTooLong", "fieldManager")),
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


def test_all_that_is_wrong_with_the_options_of_an_apply_is_told_at_once(server: LiveServer) -> None:
    patch = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "applied"}, "spec": {}}
    path = f"{CLASSES}/applied"
    refused = server.request("PATCH", f"{path}?dryRun=some&fieldValidation=strict", patch, APPLY)
    assert refused.causes == {
        ("FieldValueRequired", "fieldManager"),
        ("FieldValueNotSupported", "dryRun"),
        ("FieldValueNotSupported", "fieldValidation"),
    }
    assert server.request("PATCH", path, patch, APPLY).causes == {("FieldValueRequired", "fieldManager")}
    forced = server.request("PATCH", f"{path}?force=false&fieldManager=me", {}, MERGE)
    assert forced.causes == {("FieldValueForbidden", "force")}


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=", 400),
        ("timeoutSeconds=", 400),
        ("continue={token}&resourceVersion=1", 400),
        ("continue={token}&resourceVersion=0", 200),
        ("watch=true&continue={token}", 422),
        ("watch=true&continue={token}&resourceVersion=1&timeoutSeconds=1", 200),
        ("timeout=30", 400),
        ("timeout=soon", 400),
        ("timeout=30s", 200),
        ("timeout=1m0.5s", 200),
        ("timeout=-5s", 200),
        ("timeout=0", 200),
    ],
)
def test_options_of_a_list(server: LiveServer, query: str, code: int) -> None:
    for name in ("first", "second"):
        server.request("POST", CLASSES, device_class(name))
    token = server.request("GET", f"{CLASSES}?limit=1").json["metadata"]["continue"]
    assert server.request("GET", f"{CLASSES}?{query.format(token=token)}").code == code


def test_who_does_not_want_to_wait_any_longer_is_told_so(server: LiveServer) -> None:
    refused = server.request("POST", f"{CLASSES}?timeout=1ns", device_class("late"))
    assert (refused.code, refused.json["reason"]) == (504, "Timeout")
    watch = server.watch(f"{CLASSES}?watch=true&timeout=1ns&resourceVersion=0&timeoutSeconds=1")
    assert all(event["type"] != "ERROR" for event in watch)  # a watch goes on for as long as `timeoutSeconds` says


def test_shards_are_not_made_and_that_is_said(server: LiveServer) -> None:
    assert "shardSelector" in server.request("GET", f"{CLASSES}?shardSelector=all").headers["Warning"]


@pytest.mark.parametrize(
    "query", ["uid=another", "resourceVersion=1", "ignoreStoreReadErrorWithClusterBreakingPotential=true"]
)
def test_a_query_can_say_what_must_hold_for_a_delete(server: LiveServer, query: str) -> None:
    made = server.request("POST", CLASSES, device_class("kept-by-query"))
    assert made.code in (201, 409)
    assert server.request("DELETE", f"{CLASSES}/kept-by-query?{query}").code == 409
    uid = server.request("GET", f"{CLASSES}/kept-by-query").json["metadata"]["uid"]
    assert server.request("DELETE", f"{CLASSES}/kept-by-query?uid={uid}").code == 200


def test_what_must_hold_must_hold_for_each_of_a_collection(server: LiveServer) -> None:
    assert server.request("POST", CLASSES, device_class("of-many", labels={"of": "many"})).code == 201
    many = f"{CLASSES}?labelSelector=of%3Dmany"
    assert server.request("DELETE", many, {"preconditions": {"uid": "another"}}).code == 409
    refused = server.request("DELETE", f"{many}&ignoreStoreReadErrorWithClusterBreakingPotential=true")
    assert refused.causes == {("FieldValueInvalid", "ignoreStoreReadErrorWithClusterBreakingPotential")}
    assert server.request("GET", f"{CLASSES}/of-many").code == 200


def test_a_wish_to_delete_what_cannot_be_read_goes_with_nothing_else(server: LiveServer) -> None:
    given = {
        "ignoreStoreReadErrorWithClusterBreakingPotential": True,
        "gracePeriodSeconds": 0,
        "orphanDependents": True,
    }
    refused = server.request("DELETE", f"{CLASSES}/any", given)
    assert refused.code == 422
    assert len(refused.json["details"]["causes"]) == 2


def test_a_watch_ends_what_is_there_with_a_bookmark_if_it_may_send_some(server: LiveServer) -> None:
    query = f"{CLASSES}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"
    assert "BOOKMARK" not in {event["type"] for event in server.watch(query)}
    bookmarks = [one for one in server.watch(f"{query}&allowWatchBookmarks=true") if one["type"] == "BOOKMARK"]
    # Another may follow at the end of the time, where others write meanwhile.
    assert bookmarks[0]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    (error,) = server.watch(f"{query}&resourceVersion=999999999")
    assert error["object"]["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/apis/resource.k8s.io/v1/watch/deviceclasses?timeoutSeconds=1&resourceVersion=1", 200),
        ("GET", "/api/v1/watch/namespaces/default/pods/one?timeoutSeconds=1&resourceVersion=1", 200),
        ("GET", "/api/v1/watch/pods?timeoutSeconds=1&resourceVersion=1", 200),
        ("GET", "/api/v1/watch/namespaces/default/pods/one?fieldSelector=metadata.name%3Dother", 400),
        ("GET", "/api/v1/watch/namespaces/default/pods/one/status", 404),
        ("GET", "/api/v1/watch/nothing", 404),
        ("GET", "/api/v1/watch", 404),
        ("POST", "/api/v1/watch/namespaces/default/pods", 405),
        ("GET", "/api/v1/watch/componentstatuses", 405),
    ],
)
def test_watches_by_path(server: LiveServer, method: str, path: str, code: int) -> None:
    assert server.request(method, path, {} if method == "POST" else None).code == code


@pytest.mark.parametrize(("revision", "code"), [("", 201), ("0", 201), ("5", 400)])
def test_what_is_new_has_no_revision_yet(server: LiveServer, namespace: str, revision: str, code: int) -> None:
    made = {"metadata": {"name": f"new-{revision}".rstrip("-"), "resourceVersion": revision}}
    answer = server.request("POST", f"/api/v1/namespaces/{namespace}/configmaps", made)
    assert (answer.code, "resourceVersion should not be set" in answer.json.get("message", "")) == (code, code == 400)


def test_a_connection_that_ends_with_its_watch_says_so(server: LiveServer) -> None:
    connection = server.connect()
    path = f"{CLASSES}?watch=true&timeoutSeconds=1&resourceVersion=0"
    connection.request("GET", path, headers={"Authorization": f"Bearer {server.token}"})
    answer = connection.getresponse()
    assert (answer.headers["Transfer-Encoding"], answer.headers["Connection"]) == ("chunked", "close")
    connection.close()
