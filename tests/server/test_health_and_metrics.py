"""Health checks that look at the real thing, and metrics that count what happened."""

from __future__ import annotations

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dray.server.instance import Instance
from live_server import LiveServer
from patience import eventually

MAPS = "/api/v1/namespaces/default/configmaps"


def samples(server: LiveServer) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every number of a scrape, by name and labels."""
    answer = server.request("GET", "/metrics")
    assert answer.code == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    families = text_string_to_metric_families(answer.body.decode())
    return {(it.name, tuple(sorted(it.labels.items()))): it.value for family in families for it in family.samples}


def sample(server: LiveServer, name: str, **labels: str) -> float:
    return samples(server).get((name, tuple(sorted(labels.items()))), 0.0)


@pytest.mark.req("implied-15")
@pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz", "/readyz/ping", "/readyz/store", "/livez/ping"])
def test_a_healthy_server_says_ok(server: LiveServer, path: str) -> None:
    answer = server.request("GET", path)
    assert (answer.code, answer.body) == (200, b"ok")


def test_verbose_lists_every_check_and_exclude_leaves_one_out(server: LiveServer) -> None:
    told = server.request("GET", "/readyz?verbose").body.decode()
    assert told.splitlines() == ["[+]ping ok", "[+]store ok", "[+]shutdown ok", "readyz check passed"]
    assert "store" not in server.request("GET", "/readyz?verbose&exclude=store").body.decode()


def test_a_check_that_there_is_not_is_not_found(server: LiveServer) -> None:
    assert server.request("GET", "/readyz/nothing").code == 404


@pytest.mark.req("implied-15")
def test_requests_are_counted_by_what_they_are_about(server: LiveServer) -> None:
    labels = {"group": "", "version": "v1", "resource": "configmaps", "subresource": ""}
    created = {**labels, "verb": "CREATE", "scope": "namespace"}
    server.request("POST", MAPS, {"metadata": {"name": "counted"}})
    server.request("POST", MAPS, {"metadata": {"name": "counted"}})
    server.request("GET", f"{MAPS}/counted")
    assert sample(server, "apiserver_request_total", **created, code="201") == 1
    assert sample(server, "apiserver_request_total", **created, code="409") == 1
    read = {**labels, "verb": "GET", "scope": "resource"}
    assert sample(server, "apiserver_request_total", **read, code="200") == 1
    assert sample(server, "apiserver_request_duration_seconds_count", **created) == 2
    assert sample(server, "apiserver_request_duration_seconds_bucket", **created, le="+Inf") == 2
    assert 0 < sample(server, "apiserver_request_duration_seconds_sum", **created) < 10


def test_only_the_scrape_itself_is_in_flight(server: LiveServer) -> None:
    assert sample(server, "apiserver_current_inflight_requests", request_kind="readOnly") == 1
    assert sample(server, "apiserver_current_inflight_requests", request_kind="mutating") == 0


def test_watches_and_their_events_are_counted(server: LiveServer) -> None:
    watching = {
        "verb": "WATCH", "group": "", "version": "v1", "resource": "secrets", "subresource": "", "scope": "namespace"
    }  # fmt: skip
    sent = {"group": "", "version": "v1", "resource": "secrets"}
    secrets = "/api/v1/namespaces/default/secrets"
    events = server.watch(f"{secrets}?watch=true")
    for number in range(3):
        server.request("POST", secrets, {"metadata": {"name": f"seen-{number}"}})
    assert [next(events)["object"]["metadata"]["name"] for _ in range(3)] == ["seen-0", "seen-1", "seen-2"]
    assert sample(server, "apiserver_watch_events_total", **sent) == 3
    assert sample(server, "apiserver_longrunning_requests", **watching) == 1
    events.close()
    eventually(lambda: sample(server, "apiserver_longrunning_requests", **watching) == 0)


def test_the_store_and_the_process_are_measured(running: tuple[LiveServer, Instance]) -> None:
    server, instance = running
    server.request("POST", MAPS, {"metadata": {"name": "stored"}})
    found = samples(server)
    assert found["dray_store_revision", ()] == instance.store.revision
    assert found["dray_store_commit_duration_seconds_count", ()] > 0
    assert found["dray_store_pending_writes", ()] == 0
    assert 4096 < found["dray_store_used_bytes", ()] < found["dray_store_quota_bytes", ()] == 8 << 30
    assert found["apiserver_storage_objects", (("resource", "namespaces"),)] == 4
    assert found["apiserver_resource_objects", (("group", ""), ("resource", "namespaces"))] == 4
    assert found["process_resident_memory_bytes", ()] > 1_000_000


def test_metrics_are_for_those_who_may_see_them(server: LiveServer) -> None:
    assert server.request("GET", "/metrics", Authorization="").code == 403


def test_paths_that_nobody_serves_share_one_entry(server: LiveServer) -> None:
    for number in range(20):
        server.request("GET", f"/no/such/page-{number}")
    text = server.request("GET", "/metrics").body.decode()
    assert not re.search("page-[0-9]", text)
