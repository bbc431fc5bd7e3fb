"""The requests that Kubernetes' own components make, as kube-scheduler 1.37 was seen to make them: nothing is missing.

They send JSON (--kube-api-content-type) and prefer protobuf in answers, list by streaming, elect leaders with leases,
report events in the new group, and ask for the authorities of the cluster.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from dray.server.upkeep.published_authority import NAME, NAMESPACE, PROXIES
from live_server import Answer, LiveServer, running_server

MEDIA = "application/vnd.kubernetes.protobuf"
ACCEPT = f"{MEDIA},application/json"
METADATA = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
STREAMING = (
    "allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=60&watch=true"
)
STRATEGIC = "application/strategic-merge-patch+json"
TOKENS = 'sched,system:kube-scheduler,1\nmanager,system:kube-controller-manager,2\nnobody,nobody,3,"some-group"\n'

WATCHED_BY_THE_SCHEDULER = (
    "/api/v1/nodes",
    "/api/v1/namespaces",
    "/api/v1/persistentvolumes",
    "/api/v1/persistentvolumeclaims",
    "/api/v1/replicationcontrollers",
    "/api/v1/services",
    "/apis/apps/v1/replicasets",
    "/apis/apps/v1/statefulsets",
    "/apis/policy/v1/poddisruptionbudgets",
    "/apis/resource.k8s.io/v1/deviceclasses",
    "/apis/resource.k8s.io/v1/devicetaintrules",
    "/apis/resource.k8s.io/v1/resourceclaims",
    "/apis/resource.k8s.io/v1/resourceslices",
    "/apis/storage.k8s.io/v1/csidrivers",
    "/apis/storage.k8s.io/v1/csinodes",
    "/apis/storage.k8s.io/v1/csistoragecapacities",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/storage.k8s.io/v1/volumeattachments",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server that knows the components by their tokens."""
    directory: Path = tmp_path_factory.mktemp("components")
    (directory / "tokens").write_text(TOKENS)
    with running_server(directory / "state", "--token-file", str(directory / "tokens")) as running:
        yield running


class Component:
    """A component that speaks as client-go does."""

    def __init__(self, server: LiveServer, token: str) -> None:
        self._server = server
        self._headers = {"Authorization": f"Bearer {token}", "Accept": ACCEPT, "User_Agent": "kube-scheduler/v1.37.0"}

    def send(self, method: str, path: str, api_version: str, kind: str, value: dict[str, Any]) -> Answer:
        """A request with a typed body."""
        typed = {"apiVersion": api_version, "kind": kind, **value}
        return self._server.request(method, path, typed, "application/json", **self._headers)

    def ask(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Answer:
        """A request with a body in JSON, or without one."""
        return self._server.request(method, path, body, content_type, **self._headers)

    def stream(self, path: str, accept: str = ACCEPT) -> Generator[dict[str, Any], None, None]:
        """A list by streaming."""
        headers = {"Authorization": self._headers["Authorization"], "Accept": accept}
        return self._server.watch(path, **headers)


@pytest.fixture
def scheduler(server: LiveServer) -> Component:
    """kube-scheduler, with its own rights and no more."""
    return Component(server, "sched")


def until_bookmark(events: Generator[dict[str, Any], None, None]) -> tuple[list[str], dict[str, Any]]:
    """The names that a streaming list gives, and the bookmark that ends it."""
    names: list[str] = []
    with contextlib.closing(events):
        for event in events:
            if event["type"] == "BOOKMARK":
                return names, event["object"]
            assert event["type"] == "ADDED"
            names.append(event["object"]["metadata"]["name"])
    raise AssertionError("the stream ended without a bookmark")


@pytest.mark.parametrize("path", WATCHED_BY_THE_SCHEDULER)
def test_everything_that_the_scheduler_lists_is_streamed_to_it(scheduler: Component, path: str) -> None:
    _, bookmark = until_bookmark(scheduler.stream(f"{path}?{STREAMING}"))
    assert bookmark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(bookmark["metadata"]["resourceVersion"]) > 0


def test_pods_that_are_not_finished(server: LiveServer, scheduler: Component) -> None:
    namespace = server.new_namespace()
    for name, phase in (("going", "Running"), ("done", "Succeeded")):
        pod = {"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "a"}]}}
        assert server.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod).code == 201
        status = {"status": {"phase": phase}}
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/status"
        assert server.request("PATCH", path, status, STRATEGIC).code == 200
    selector = quote("status.phase!=Succeeded,status.phase!=Failed")
    names, bookmark = until_bookmark(scheduler.stream(f"/api/v1/pods?fieldSelector={selector}&{STREAMING}"))
    assert names == ["going"]
    assert (bookmark["kind"], bookmark["apiVersion"]) == ("Pod", "v1")


def test_metadata_alone_is_streamed_with_a_bookmark_of_the_same_kind(server: LiveServer) -> None:
    manager = Component(server, "manager")
    accept = f"{MEDIA};{METADATA},application/json;{METADATA},application/json"
    names, bookmark = until_bookmark(manager.stream(f"/api/v1/namespaces?{STREAMING}", accept))
    assert "kube-system" in names
    assert (bookmark["kind"], bookmark["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")


def test_a_pod_is_bound(server: LiveServer, scheduler: Component) -> None:
    namespace = server.new_namespace()
    path = f"/api/v1/namespaces/{namespace}/pods"
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main", "image": "a"}]}}
    uid = server.request("POST", path, pod).json["metadata"]["uid"]

    waiting = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no nodes"}
    told = scheduler.ask("PATCH", f"{path}/p/status", {"status": {"conditions": [waiting]}}, STRATEGIC)
    assert (told.code, told.json["status"]["conditions"][0]["reason"]) == (200, "Unschedulable")

    binding = {
        "metadata": {"name": "p", "namespace": namespace, "uid": uid},
        "target": {"kind": "Node", "name": "n1"},
    }
    bound = scheduler.send("POST", f"{path}/p/binding", "v1", "Binding", binding)
    assert (bound.code, bound.json["status"]) == (201, "Success")
    again = scheduler.send("POST", f"{path}/p/binding", "v1", "Binding", binding)
    assert (again.code, again.json["reason"]) == (409, "Conflict")
    seen = server.request("GET", f"{path}/p").json
    assert seen["spec"]["nodeName"] == "n1"
    assert {entry["type"]: entry["status"] for entry in seen["status"]["conditions"]}["PodScheduled"] == "True"


def test_a_claim_is_allocated_and_reserved(server: LiveServer, scheduler: Component) -> None:
    namespace = server.new_namespace()
    path = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}
    made = server.request("POST", path, claim).json

    made["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    made["metadata"].pop("managedFields")
    made["metadata"].pop("creationTimestamp")
    api_version, kind = made.pop("apiVersion"), made.pop("kind")
    held = scheduler.send("PUT", f"{path}/c", api_version, kind, made)
    assert held.code == 200, held.body

    result = {"request": "r", "driver": "gpu.example.com", "pool": "p", "device": "d"}
    made["metadata"]["resourceVersion"] = held.json["metadata"]["resourceVersion"]
    made["status"] = {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
    }
    allocated = scheduler.send("PUT", f"{path}/c/status", api_version, kind, made)
    assert allocated.code == 200, allocated.body
    assert allocated.json["status"] == made["status"]
    stale = scheduler.send("PUT", f"{path}/c/status", api_version, kind, made)
    assert (stale.code, stale.json["reason"]) == (409, "Conflict")


def test_a_leader_is_elected_with_a_lease(scheduler: Component) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    assert scheduler.ask("GET", f"{path}/kube-scheduler?timeout=5s").code == 404
    spec: dict[str, Any] = {"holderIdentity": "host_1", "leaseDurationSeconds": 15, "leaseTransitions": 0}
    lease: dict[str, dict[str, Any]] = {
        "metadata": {"name": "kube-scheduler", "namespace": "kube-system"},
        "spec": spec,
    }
    made = scheduler.send("POST", f"{path}?timeout=5s", "coordination.k8s.io/v1", "Lease", lease)
    assert (made.code, made.json["spec"]) == (201, spec)
    lease["metadata"]["resourceVersion"] = made.json["metadata"]["resourceVersion"]
    spec["holderIdentity"] = ""
    released = scheduler.send("PUT", f"{path}/kube-scheduler?timeout=5s", "coordination.k8s.io/v1", "Lease", lease)
    assert (released.code, released.json["spec"]["holderIdentity"]) == (200, "")


def test_events_of_the_new_group(server: LiveServer, scheduler: Component) -> None:
    assert scheduler.ask("GET", "/apis/events.k8s.io/v1").code == 200
    namespace = server.new_namespace()
    path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    event = {
        "metadata": {"name": "p.1", "namespace": namespace},
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-host",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {"kind": "Pod", "namespace": namespace, "name": "p", "apiVersion": "v1"},
        "note": "Successfully assigned",
        "type": "Normal",
    }
    made = scheduler.ask("POST", path, event | {"eventTime": "2026-06-01T12:00:00.000000Z"})
    assert made.code == 201, made.body
    series = {"series": {"count": 2, "lastObservedTime": "2026-06-01T12:00:01.000000Z"}}
    patched = scheduler.ask("PATCH", f"{path}/p.1", series, STRATEGIC)
    assert (patched.code, patched.json["series"]["count"]) == (200, 2)


@pytest.mark.parametrize("token", ["sched", "manager"])
def test_components_read_whom_to_trust(server: LiveServer, token: str) -> None:
    component = Component(server, token)
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    found = component.ask("GET", f"{path}/{NAME}").json["data"]
    assert found["client-ca-file"] == (server.directory / "pki" / "ca.crt").read_text()
    assert json.loads(found["requestheader-allowed-names"]) == ["front-proxy-client"]
    assert found[PROXIES] != found["client-ca-file"]  # who has a certificate speaks for nobody else
    selector = quote(f"metadata.name={NAME}")
    names, _ = until_bookmark(component.stream(f"{path}?fieldSelector={selector}&{STREAMING}"))
    assert names == [NAME]


def test_others_do_not(server: LiveServer) -> None:
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{NAME}"
    assert Component(server, "nobody").ask("GET", path).code == 403


def test_components_ask_who_sends_them_requests_and_what_they_may(server: LiveServer, scheduler: Component) -> None:
    token = {"spec": {"token": server.token}}
    who = scheduler.send(
        "POST", "/apis/authentication.k8s.io/v1/tokenreviews", "authentication.k8s.io/v1", "TokenReview", token
    )
    assert (who.code, who.json["status"]["authenticated"]) == (201, True)
    asked = {"spec": {"user": "eve", "nonResourceAttributes": {"path": "/metrics", "verb": "get"}}}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    may = scheduler.send("POST", path, "authorization.k8s.io/v1", "SubjectAccessReview", asked)
    assert (may.code, may.json["status"]["allowed"]) == (201, False)
