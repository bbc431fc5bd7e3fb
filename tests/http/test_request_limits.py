"""What requests may say in numbers, versions and forms: the same answers as Kubernetes gives, or clearer ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

import builders
from dray.api import manifest
from live_server import Answer, LiveServer

YAML = "application/yaml"
HUGE = 5_000_000_000


@pytest.fixture
def secrets(server: LiveServer, namespace: str) -> str:
    """The path of four secrets: of those nobody else makes any."""
    path = f"/api/v1/namespaces/{namespace}/secrets"
    for number in range(4):
        assert server.request("POST", path, {"metadata": {"name": f"m{number}"}}).code == 201
    return path


def deployment(replicas: Any) -> dict[str, Any]:
    return builders.workload(replicas=replicas, namespace="")


@pytest.mark.parametrize("content_type", ["application/json", YAML])
def test_a_number_beyond_its_field_is_refused(server: LiveServer, namespace: str, content_type: str) -> None:
    """It would be stored, and no client in Go could read the list any more."""
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    body = json.dumps(deployment(HUGE)).encode()
    answer = server.request("POST", path, body, content_type)
    assert (answer.code, answer.json["reason"]) == (400, "BadRequest")
    assert f"spec.replicas: the number {HUGE} does not fit into 32 bits" in answer.json["message"]


@pytest.mark.parametrize(
    ("form", "patch"),
    [
        ("merge-patch+json", {"spec": {"replicas": HUGE}}),
        ("strategic-merge-patch+json", {"spec": {"replicas": -HUGE}}),
        ("json-patch+json", [{"op": "replace", "path": "/spec/replicas", "value": HUGE}]),
    ],
)
def test_nor_does_a_patch_bring_it_in(server: LiveServer, namespace: str, form: str, patch: Any) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    assert server.request("POST", path, deployment(1)).code == 201
    answer = server.request("PATCH", f"{path}/web", patch, f"application/{form}")
    assert (answer.code, answer.json["reason"]) == (422, "Invalid")
    assert "does not fit into 32 bits" in answer.json["message"]
    scaled = server.request("PATCH", f"{path}/web/scale", {"spec": {"replicas": HUGE}}, "application/merge-patch+json")
    assert scaled.code == 400
    assert "does not fit into 32 bits" in scaled.json["message"]


def test_nor_does_an_apply(server: LiveServer, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/web?fieldManager=me"
    answer = server.request("PATCH", path, deployment(HUGE), "application/apply-patch+yaml")
    assert answer.code == 422
    assert "does not fit into 32 bits" in answer.json["message"]


def test_large_numbers_where_they_belong(server: LiveServer, namespace: str) -> None:
    pod = {
        "metadata": {"name": "p", "annotations": {"number": "9999999999", "list": "[1,9999999999]"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": HUGE},
    }
    made = server.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod)
    assert made.code == 201, made.body
    assert made.json["spec"]["terminationGracePeriodSeconds"] == HUGE


def test_whoever_takes_any_state_gets_all_of_it(server: LiveServer, secrets: str) -> None:
    for more in ("", "&resourceVersionMatch=NotOlderThan"):
        listed = server.request("GET", f"{secrets}?limit=2&resourceVersion=0{more}").json
        assert len(listed["items"]) == 4
        assert "continue" not in listed["metadata"]
    assert len(server.request("GET", f"{secrets}?limit=2").json["items"]) == 2


def test_pages_of_an_earlier_state(server: LiveServer, secrets: str) -> None:
    before = server.request("GET", secrets).json["metadata"]["resourceVersion"]
    server.request("DELETE", f"{secrets}/m0")
    page = server.request("GET", f"{secrets}?limit=3&resourceVersion={before}").json
    assert [item["metadata"]["name"] for item in page["items"]] == ["m0", "m1", "m2"]
    rest = server.request("GET", f"{secrets}?limit=3&continue={page['metadata']['continue']}").json
    assert [item["metadata"]["name"] for item in rest["items"]] == ["m3"]


@pytest.mark.parametrize("name", ["m0", "missing"])
def test_a_get_of_a_state_that_is_not_there_yet(server: LiveServer, secrets: str, name: str) -> None:
    answer = server.request("GET", f"{secrets}/{name}?resourceVersion=99999999")
    assert (answer.code, answer.json["reason"]) == (504, "Timeout")
    assert answer.json["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert server.request("GET", f"{secrets}/m0?resourceVersion=0").code == 200


@pytest.mark.parametrize(
    "query",
    ["resourceVersion=abc", "resourceVersion=-1", "resourceVersion=%C2%B2", "resourceVersion=99999999999999999999"],
)
def test_versions_that_are_none(server: LiveServer, secrets: str, query: str) -> None:
    for path in (f"{secrets}/m0?{query}", f"{secrets}?{query}", f"{secrets}?watch=1&{query}"):
        answer = server.request("GET", path)
        assert (answer.code, answer.json["reason"]) == (400, "BadRequest")
        assert "resourceVersion" in answer.json["message"]


@pytest.mark.parametrize("query", ["limit=--5", "limit=%C2%B2", "limit=1e3", "timeoutSeconds=-", "limit=+1"])
def test_numbers_that_are_none(server: LiveServer, secrets: str, query: str) -> None:
    answer = server.request("GET", f"{secrets}?{query}")
    assert (answer.code, answer.json["reason"]) == (400, "BadRequest")
    assert query.partition("=")[0] in answer.json["message"]


def test_a_grace_period_that_is_no_number(server: LiveServer, secrets: str) -> None:
    answer = server.request("DELETE", f"{secrets}/m0?gracePeriodSeconds=--1")
    assert (answer.code, answer.json["reason"]) == (400, "BadRequest")
    assert server.request("GET", f"{secrets}/m0").code == 200


def test_every_dry_run_must_be_all(server: LiveServer, secrets: str) -> None:
    def sent(method: str, path: str, query: str) -> Answer:
        return server.request(method, f"{path}?{query}", {"metadata": {"name": "new"}} if method == "POST" else None)

    assert sent("POST", secrets, "dryRun=All&dryRun=All").code == 201
    for method, path in (("POST", secrets), ("DELETE", f"{secrets}/m0"), ("DELETE", secrets)):
        refused = sent(method, path, "dryRun=All&dryRun=Some")
        assert refused.code == 422
        assert ("FieldValueNotSupported", "dryRun") in refused.causes
    assert len(server.request("GET", secrets).json["items"]) == 4


def test_answers_in_yaml(server: LiveServer, namespace: str) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    texts = {"a": "y", "b": "012", "c": "1e3", "d": "- x: #\n", "e": "ü 🙂\x85", "f": "plain text", "g": ""}
    made = server.request("POST", maps, {"metadata": {"name": "yaml"}, "data": texts}, Accept=YAML)
    assert (made.code, made.headers["Content-Type"]) == (201, YAML)
    for path in (f"{maps}/yaml", maps, f"{maps}/missing", "/api/v1", "/version"):
        answer = server.request("GET", path, Accept=f"{YAML},application/json")
        assert answer.headers["Content-Type"] == YAML
        (document,) = manifest.parse(answer.body)
        wanted = server.request("GET", path)
        assert (answer.code, document.value) == (wanted.code, wanted.json)
    assert b"\n  f: plain text\n" in server.request("GET", f"{maps}/yaml", Accept=YAML).body


def test_json_comes_first_if_it_is_named_first(server: LiveServer, secrets: str) -> None:
    for accept in (f"application/json,{YAML}", f"{YAML};q=0.5,*/*"):
        assert server.request("GET", f"{secrets}/m0", Accept=accept).headers["Content-Type"] == "application/json"
    table = server.request("GET", secrets, Accept=f"{YAML};as=Table;v=v1;g=meta.k8s.io")
    (document,) = manifest.parse(table.body)
    assert isinstance(document.value, dict)
    assert document.value["kind"] == "Table"


@pytest.mark.parametrize(
    "accept", ["application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io", "text/html", "application/cbor"]
)
def test_forms_that_there_are_not(server: LiveServer, secrets: str, accept: str) -> None:
    answer = server.request("GET", f"{secrets}/m0", Accept=accept)
    assert (answer.code, answer.json["reason"]) == (406, "NotAcceptable")
    assert "application/json" in answer.json["message"]


def test_a_watch_is_not_in_yaml(server: LiveServer, secrets: str) -> None:
    answer = server.request("GET", f"{secrets}?watch=1", Accept=YAML)
    assert answer.code == 406
    assert b"application/json;stream=watch" in answer.body
