"""What clients rely on, request by request: selectors, status isolation, preconditions, generations, quota, watches."""

from __future__ import annotations

from typing import Any

import pytest

import builders
from live_server import Answer, LiveServer

RESOURCE = "/apis/resource.k8s.io/v1"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


def claims(namespace: str) -> str:
    return f"{RESOURCE}/namespaces/{namespace}/resourceclaims"


def claim(name: str, **exactly: Any) -> dict[str, Any]:
    return builders.claim(name, builders.request("one", **exactly), namespace="")


def resource_slice(name: str, node: str, driver: str = "gpu.example.com") -> dict[str, Any]:
    return builders.resource_slice(name, driver=driver, nodeName=node)


def rule(name: str, **status: Any) -> dict[str, Any]:
    made = builders.taint_rule(name, {"driver": "gpu.example.com"}, builders.taint("example.com/x", "NoSchedule"))
    return {**made, "status": status} if status else made


def names(listing: Any) -> list[str]:
    return [item["metadata"]["name"] for item in listing["items"]]


@pytest.mark.req("4381-04")
def test_slices_by_node_and_driver(server: LiveServer) -> None:
    path = f"{RESOURCE}/resourceslices"
    for name, node, driver in (
        ("s1", "sel-1", "a.example.com"),
        ("s2", "sel-1", "b.example.com"),
        ("s3", "sel-2", "a.example.com"),
    ):
        assert server.request("POST", path, resource_slice(name, node, driver)).code == 201
    by_both = f"{path}?fieldSelector=spec.nodeName=sel-1,spec.driver=a.example.com"
    assert names(server.request("GET", by_both).json) == ["s1"]
    events = server.watch(f"{by_both}&watch=true&timeoutSeconds=5")
    assert next(events)["object"]["metadata"]["name"] == "s1"
    events.close()
    unknown = server.request("GET", f"{path}?fieldSelector=spec.colour=red")
    assert (unknown.code, unknown.json["reason"]) == (400, "BadRequest")
    assert server.request("DELETE", f"{path}?fieldSelector=spec.nodeName=sel-1").code == 200
    left = server.request("GET", f"{path}?fieldSelector=spec.nodeName=sel-1").json
    assert names(left) == []
    assert names(server.request("GET", f"{path}?fieldSelector=spec.nodeName=sel-2").json) == ["s3"]


@pytest.mark.req("4381-19")
def test_slices_have_no_status(server: LiveServer) -> None:
    path = f"{RESOURCE}/resourceslices"
    assert server.request("POST", path, resource_slice("no-status", "n")).code == 201
    assert server.request("GET", f"{path}/no-status/status").code == 404


@pytest.mark.req("4381-59")
def test_reserved_for_merges_by_uid(server: LiveServer, namespace: str) -> None:
    path = claims(namespace)
    assert server.request("POST", path, claim("shared")).code == 201
    allocation: dict[str, Any] = {"devices": {}}
    pods = [{"resource": "pods", "name": name, "uid": f"uid-{name}"} for name in ("a", "b")]
    status = {"status": {"allocation": allocation, "reservedFor": pods[:1]}}
    assert server.request("PATCH", f"{path}/shared/status", status, STRATEGIC).code == 200
    added = server.request("PATCH", f"{path}/shared/status", {"status": {"reservedFor": pods[1:]}}, STRATEGIC).json
    assert {entry["uid"] for entry in added["status"]["reservedFor"]} == {"uid-a", "uid-b"}
    removal = {"status": {"reservedFor": [{"$patch": "delete", "uid": "uid-a"}]}}
    removed = server.request("PATCH", f"{path}/shared/status", removal, STRATEGIC).json
    assert removed["status"]["reservedFor"] == pods[1:]


@pytest.mark.req("4381-126")
def test_writes_for_an_earlier_object_of_the_name_are_refused(server: LiveServer, namespace: str) -> None:
    path = claims(namespace)
    old = server.request("POST", path, claim("twice")).json
    server.request("DELETE", f"{path}/twice")
    new = server.request("POST", path, claim("twice")).json
    for revision in (old["metadata"]["resourceVersion"], new["metadata"]["resourceVersion"]):
        metadata = old["metadata"] | {"resourceVersion": revision, "finalizers": ["example.com/hold"]}
        refused = server.request("PUT", f"{path}/twice", old | {"metadata": metadata})
        assert (refused.code, refused.json["reason"]) == (409, "Conflict")
    # A uid in a patch is a wish to change it, which Kubernetes calls invalid; a revision in a patch is a precondition.
    by_uid = {"metadata": {"uid": old["metadata"]["uid"], "finalizers": ["example.com/hold"]}}
    refused = server.request("PATCH", f"{path}/twice", by_uid, MERGE)
    assert (refused.code, refused.causes) == (422, {("FieldValueInvalid", "metadata.uid")})
    by_revision = {"metadata": {"resourceVersion": old["metadata"]["resourceVersion"], "labels": {"a": "b"}}}
    assert server.request("PATCH", f"{path}/twice", by_revision, MERGE).code == 409
    assert server.request("GET", f"{path}/twice").json == new
    # Once the name is free, an apply for the old object makes no new one.
    server.request("DELETE", f"{path}/twice")
    named = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    applied = claim("twice") | named | {"metadata": {"name": "twice", "uid": old["metadata"]["uid"]}}
    refused = server.request("PATCH", f"{path}/twice?fieldManager=test", applied, APPLY)
    assert (refused.code, refused.json["reason"]) == (409, "Conflict")
    assert server.request("GET", f"{path}/twice").code == 404


@pytest.mark.req("4381-130")
def test_status_writes_leave_finalizers_alone(server: LiveServer, namespace: str) -> None:
    path = claims(namespace)
    made = server.request("POST", path, claim("kept")).json
    made["metadata"]["finalizers"] = ["example.com/hold"]
    made["status"] = {"allocation": {"devices": {}}}
    answer = server.request("PUT", f"{path}/kept/status", made)
    assert answer.code == 200, answer.body
    assert "finalizers" not in answer.json["metadata"]
    assert answer.json["status"]["allocation"] == {"devices": {}}


@pytest.mark.req("5055-01")
def test_slice_taints_come_back_and_are_one_value_under_apply(server: LiveServer) -> None:
    path = f"{RESOURCE}/resourceslices"
    taint = {"key": "example.com/x", "effect": "NoSchedule", "timeAdded": "2026-06-01T12:00:00Z"}
    made = resource_slice("tainted", "n")
    made["spec"]["taints"] = [{"device": "gpu-0", "taint": taint}]
    assert server.request("POST", path, made).code == 201
    assert server.request("GET", f"{path}/tainted").json["spec"]["taints"] == made["spec"]["taints"]

    def apply(manager: str, *devices: str) -> Answer:
        taints = [{"device": device, "taint": taint} for device in devices]
        wanted = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "spec": {"taints": taints}}
        return server.request("PATCH", f"{path}/tainted?fieldManager={manager}", wanted, APPLY)

    assert apply("one", "gpu-0").code == 200
    refused = apply("two", "gpu-1")
    assert (refused.code, refused.causes) == (409, {("FieldManagerConflict", ".spec.taints")})
    forced = apply("two&force=true", "gpu-1")
    assert [found["device"] for found in forced.json["spec"]["taints"]] == ["gpu-1"]


@pytest.mark.req("5055-30", "5055-31")
def test_generation_counts_changes_of_a_rules_spec(server: LiveServer) -> None:
    path = f"{RESOURCE}/devicetaintrules"
    condition = {
        "type": "Seen",
        "status": "True",
        "reason": "Test",
        "message": "",
        "lastTransitionTime": "2026-06-01T12:00:00Z",
    }
    assert server.request("POST", path, rule("counted", conditions=[condition])).json.get("status", {}) == {}

    def patch(document: dict[str, Any], sub: str = "") -> Any:
        answer = server.request("PATCH", f"{path}/counted{sub}", document, MERGE)
        assert answer.code == 200, answer.body
        return answer.json

    assert patch({"metadata": {"labels": {"a": "b"}}})["metadata"]["generation"] == 1
    with_status = patch({"status": {"conditions": [condition]}, "spec": {"taint": {"value": "no"}}}, "/status")
    assert with_status["metadata"]["generation"] == 1
    assert "value" not in with_status["spec"]["taint"]
    changed = patch({"spec": {"taint": {"value": "yes"}}, "status": {"conditions": []}})
    assert changed["metadata"]["generation"] == 2
    assert changed["status"]["conditions"] == [condition]


@pytest.mark.req("5055-34")
def test_conditions_of_a_rule_merge_by_type_and_are_few(server: LiveServer) -> None:
    path = f"{RESOURCE}/devicetaintrules"
    assert server.request("POST", path, rule("judged")).code == 201

    def conditions(*types: str) -> list[dict[str, str]]:
        rest = {"status": "True", "reason": "Test", "message": "", "lastTransitionTime": "2026-06-01T12:00:00Z"}
        return [{"type": name, **rest} for name in types]

    for manager, name in (("one", "First"), ("two", "Second")):
        document = rule("judged", conditions=conditions(name))
        del document["spec"]
        answer = server.request("PATCH", f"{path}/judged/status?fieldManager={manager}", document, APPLY)
        assert answer.code == 200, answer.body
    assert {found["type"] for found in answer.json["status"]["conditions"]} == {"First", "Second"}
    nine = {"status": {"conditions": conditions(*(f"C{number}" for number in range(9)))}}
    refused = server.request("PATCH", f"{path}/judged/status", nine, MERGE)
    assert (refused.code, refused.causes) == (422, {("FieldValueTooMany", "status.conditions")})


QUOTA = "gpu.deviceclass.resource.k8s.io/devices"


def with_quota(server: LiveServer, namespace: str, hard: int) -> str:
    """A quota as its controller leaves it; the path of its status."""
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    limits = {QUOTA: str(hard)}
    assert server.request("POST", path, {"metadata": {"name": "quota"}, "spec": {"hard": limits}}).code == 201
    status = {"status": {"hard": limits, "used": {QUOTA: "0"}}}
    assert server.request("PATCH", f"{path}/quota/status", status, MERGE).code == 200
    return f"{path}/quota"


@pytest.mark.req("4381-145", "4381-146", "4381-267")
def test_quota_counts_devices_over_claims(server: LiveServer, namespace: str) -> None:
    quota = with_quota(server, namespace, 9)
    assert server.request("POST", claims(namespace), claim("five", count=5)).code == 201
    assert server.request("POST", claims(namespace), claim("three", count=3)).code == 201
    assert server.request("GET", quota).json["status"]["used"] == {QUOTA: "8"}
    refused = server.request("POST", claims(namespace), claim("two", count=2))
    assert (refused.code, refused.json["reason"]) == (403, "Forbidden")
    assert "exceeded quota: quota" in refused.json["message"]
    assert server.request("POST", f"{claims(namespace)}?dryRun=All", claim("one", count=1)).code == 201
    assert server.request("GET", quota).json["status"]["used"] == {QUOTA: "8"}


@pytest.mark.req("4381-147")
def test_all_devices_count_as_thirty_two(server: LiveServer, namespace: str) -> None:
    with_quota(server, namespace, 31)
    assert server.request("POST", claims(namespace), claim("all", allocationMode="All")).code == 403


@pytest.mark.req("4381-149")
def test_quota_is_about_objects_and_not_about_allocations(server: LiveServer, namespace: str) -> None:
    quota = with_quota(server, namespace, 2)
    assert server.request("POST", claims(namespace), claim("held", count=2)).code == 201
    status: dict[str, Any] = {"status": {"allocation": {"devices": {}}}}
    assert server.request("PATCH", f"{claims(namespace)}/held/status", status, MERGE).code == 200
    assert server.request("GET", quota).json["status"]["used"] == {QUOTA: "2"}  # allocated or not, it counts the same


def test_one_object_can_be_watched_by_its_path(server: LiveServer, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for name in ("a", "b"):
        server.request("POST", path, {"metadata": {"name": name}})
    assert server.request("GET", f"{path}/b?watch=true").json["kind"] == "ConfigMap"  # a plain GET, as in Kubernetes
    events = server.watch(f"/api/v1/watch/namespaces/{namespace}/configmaps/b?timeoutSeconds=5")
    assert next(events)["object"]["metadata"]["name"] == "b"
    server.request("DELETE", f"{path}/a")
    server.request("DELETE", f"{path}/b")
    last = next(events)
    assert (last["type"], last["object"]["metadata"]["name"]) == ("DELETED", "b")
    events.close()


def test_watches_give_rows_of_a_table_when_asked(server: LiveServer, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for name in ("a", "b"):
        server.request("POST", path, {"metadata": {"name": name}})
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    events = server.watch(f"{path}?watch=true&timeoutSeconds=5", Accept=accept)
    first, second = next(events)["object"], next(events)["object"]
    events.close()
    assert first["columnDefinitions"][0]["name"] == "Name"
    assert second["columnDefinitions"] is None
    assert [table["rows"][0]["cells"][0] for table in (first, second)] == ["a", "b"]


def test_pages_fit_together_while_others_write(server: LiveServer, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/secrets"
    for number in range(5):
        server.request("POST", path, {"metadata": {"name": f"c{number}"}})
    first = server.request("GET", f"{path}?limit=2").json
    server.request("DELETE", f"{path}/c3")
    rest = server.request("GET", f"{path}?limit=10&continue={first['metadata']['continue']}").json
    assert names(first) + names(rest) == ["c0", "c1", "c2", "c3", "c4"]
    assert first["metadata"]["remainingItemCount"] == 3


def test_what_a_dry_run_answers_can_be_created(server: LiveServer, namespace: str) -> None:
    tried = server.request("POST", f"{claims(namespace)}?dryRun=All", claim("tried"))
    assert tried.code == 201
    assert "resourceVersion" not in tried.json["metadata"]
    assert server.request("POST", claims(namespace), tried.json).code == 201
    again = server.request(
        "PATCH", f"{claims(namespace)}/tried?dryRun=All", {"metadata": {"labels": {"a": "b"}}}, MERGE
    )
    assert again.json["metadata"]["resourceVersion"]


def test_rows_carry_objects_in_the_version_that_was_asked_for(server: LiveServer, namespace: str) -> None:
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    server.request("POST", claims(namespace), claim("one"))
    old = claims(namespace).replace("/v1/", "/v1beta1/")
    for path in (old, f"{old}/one"):
        (row,) = server.request("GET", f"{path}?includeObject=Object", Accept=accept).json["rows"]
        assert row["object"]["apiVersion"] == "resource.k8s.io/v1beta1"
        assert "deviceClassName" in row["object"]["spec"]["devices"]["requests"][0]
    refused = server.request("GET", f"{old}?includeObject=Everything", Accept=accept)
    assert (refused.code, refused.json["reason"]) == (400, "BadRequest")
    assert "includeObject" in refused.json["message"]


@pytest.mark.parametrize(
    ("resource", "has_own_fields"),
    [
        (f"{RESOURCE}/deviceclasses", False),
        (f"{RESOURCE}/devicetaintrules", False),
        ("/apis/storage.k8s.io/v1/storageclasses", False),
        (f"{RESOURCE}/resourceslices", True),
        ("/api/v1/nodes", True),
        ("/api/v1/namespaces", True),
    ],
)
def test_what_has_no_namespace_is_in_none(server: LiveServer, resource: str, has_own_fields: bool) -> None:
    """Recorded from Kubernetes 1.37, where only cluster-scoped kinds with fields of their own refuse to be asked."""
    server.request("POST", f"{RESOURCE}/deviceclasses", {"metadata": {"name": "selected"}, "spec": {}})
    found = server.request("GET", f"{resource}?fieldSelector=metadata.namespace=default")
    if has_own_fields:
        assert found.code == 400
        return
    assert found.json["items"] == []
    everything = server.request("GET", resource).json["items"]
    assert len(server.request("GET", f"{resource}?fieldSelector=metadata.namespace=").json["items"]) == len(everything)


def test_a_deleted_rule_is_told_as_in_its_version(server: LiveServer) -> None:
    """Recorded from Kubernetes 1.37: what was deleted in the older versions, and a Status in v1."""
    for version, kind in (("v1", "Status"), ("v1beta2", "DeviceTaintRule"), ("v1alpha3", "DeviceTaintRule")):
        server.request("POST", f"{RESOURCE}/devicetaintrules", rule("told"))
        path = f"{RESOURCE.removesuffix('v1')}{version}/devicetaintrules/told"
        assert server.request("DELETE", path).json["kind"] == kind
