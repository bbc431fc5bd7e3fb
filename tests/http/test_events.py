"""Events are one resource with two faces: what is written through one is read and selected through the other."""

from typing import Any

from live_server import LiveServer

CORE = "/api/v1/namespaces/default/events"
NEW = "/apis/events.k8s.io/v1/namespaces/default/events"


def new_style(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "eventTime": "2026-06-01T12:00:00.000000Z",
        "reportingController": "kube-scheduler",
        "reportingInstance": "kube-scheduler-1",
        "action": "Scheduling",
        "reason": "FailedScheduling",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p"},
        "note": "no room",
        "type": "Warning",
    }


def old_style(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "q"},
        "reason": "Started",
        "message": "runs",
        "type": "Normal",
        "count": 3,
        "source": {"component": "kubelet"},
    }


def ask(server: LiveServer, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
    answer = server.request(method, path, body, content_type)
    assert answer.code in (200, 201), answer.body
    return answer.json


def test_a_new_style_event_is_seen_in_the_core_group(server: LiveServer) -> None:
    ask(server, "POST", NEW, new_style("new"))
    seen = ask(server, "GET", f"{CORE}/new")
    assert (seen["apiVersion"], seen["message"], seen["involvedObject"]["name"]) == ("v1", "no room", "p")
    assert seen["reportingComponent"] == "kube-scheduler"
    listed = ask(server, "GET", f"{CORE}?fieldSelector=involvedObject.name=p")
    assert [item["metadata"]["name"] for item in listed["items"]] == ["new"]


def test_an_old_style_event_is_seen_in_the_new_group(server: LiveServer) -> None:
    ask(server, "POST", CORE, old_style("old"))
    seen = ask(server, "GET", f"{NEW}/old")
    assert (seen["apiVersion"], seen["note"], seen["regarding"]["name"]) == ("events.k8s.io/v1", "runs", "q")
    assert (seen["deprecatedCount"], seen["deprecatedSource"]) == (3, {"component": "kubelet"})
    listed = ask(server, "GET", f"{NEW}?fieldSelector=regarding.name=q")
    assert [item["note"] for item in listed["items"]] == ["runs"]
    assert "message" not in listed["items"][0]


def test_a_patch_through_one_face_shows_in_the_other(server: LiveServer) -> None:
    ask(server, "POST", NEW, new_style("patched"))
    series = {"series": {"count": 2, "lastObservedTime": "2026-06-01T12:01:00.000000Z"}}
    ask(server, "PATCH", f"{NEW}/patched", series, "application/merge-patch+json")
    assert ask(server, "GET", f"{CORE}/patched")["series"]["count"] == 2
    ask(server, "DELETE", f"{CORE}/patched")
    assert server.request("GET", f"{NEW}/patched").code == 404
