"""Answers in protobuf, for clients that like it most or accept nothing else."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

import pytest

from dray.api import registry
from dray.api.wire import MEDIA_TYPE as MEDIA
from live_server import LiveServer
from served_kinds import TYPED

METADATA = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PLACEMENTS = "/apis/cluster.open-cluster-management.io/v1beta1/placements"


def paths() -> list[str]:
    """A list of every kind that can be listed, in every version."""
    found = []
    for api_version, kind in sorted(TYPED):
        known = registry.by_kind(api_version, kind)
        if "list" in known.verbs:
            found.append(f"/{'apis' if known.group else 'api'}/{api_version}/{known.plural}")
    return found


@pytest.mark.parametrize("path", paths())
def test_every_built_in_kind_is_listed_in_protobuf(server: LiveServer, path: str) -> None:
    plain = server.request("GET", path).json
    typed = server.request("GET", path, Accept=MEDIA)
    assert (typed.code, typed.headers["Content-Type"]) == (200, MEDIA)
    assert typed.json["kind"] == plain["kind"]
    names = [item["metadata"]["name"] for item in typed.json.get("items", [])]
    assert names == [item["metadata"]["name"] for item in plain["items"]]


@pytest.fixture
def config(server: LiveServer, namespace: str) -> str:
    """The path of a ConfigMap."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    assert server.request("POST", path, {"metadata": {"name": "one"}, "data": {"a": "b"}}).code == 201
    return f"{path}/one"


def form(server: LiveServer, path: str, accept: str) -> str:
    answer = server.request("GET", path, Accept=accept)
    assert answer.code == 200, answer.body
    return str(answer.headers["Content-Type"])


def test_what_is_liked_most_is_given(server: LiveServer, config: str) -> None:
    json = "application/json"
    assert form(server, config, MEDIA) == MEDIA
    assert form(server, config, f"{MEDIA},{json}") == MEDIA
    assert form(server, config, f"{json},{MEDIA}") == json
    assert form(server, config, f"{json};q=0.5,{MEDIA};q=0.9") == MEDIA
    assert form(server, config, f"{MEDIA};q=0.5,application/yaml") == "application/yaml"
    assert form(server, config, f"*/*,{MEDIA}") == MEDIA
    assert form(server, PLACEMENTS, f"{MEDIA},{json}") == json
    assert form(server, "/api/v1", f"{MEDIA},{json}") == MEDIA
    assert form(server, "/version", f"{MEDIA},{json}") == json


def test_one_object_is_the_same_in_both_forms(server: LiveServer, config: str) -> None:
    assert server.request("GET", config, Accept=MEDIA).json == server.request("GET", config).json


def test_failures_are_a_status_in_protobuf(server: LiveServer, config: str) -> None:
    missing = server.request("GET", f"{config}-not", Accept=MEDIA)
    assert (missing.code, missing.headers["Content-Type"]) == (404, MEDIA)
    assert (missing.json["kind"], missing.json["reason"]) == ("Status", "NotFound")
    stranger = server.request("GET", config, Accept=MEDIA, Authorization="Bearer nobody")
    assert (stranger.code, stranger.json["reason"]) == (401, "Unauthorized")
    only = server.request("GET", PLACEMENTS, Accept=MEDIA)
    assert (only.code, only.json["reason"]) == (406, "NotAcceptable")


def test_metadata_and_scales(server: LiveServer, config: str, namespace: str) -> None:
    reduced = server.request("GET", config, Accept=f"{MEDIA};{METADATA}")
    assert (reduced.json["kind"], reduced.json["metadata"]["name"]) == ("PartialObjectMetadata", "one")
    many = server.request("GET", PLACEMENTS, Accept=f"{MEDIA};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
    assert (many.headers["Content-Type"], many.json["kind"]) == (MEDIA, "PartialObjectMetadataList")
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    path = f"/apis/apps/v1/namespaces/{namespace}/replicasets"
    assert server.request("POST", path, {"metadata": {"name": "r"}, "spec": spec}).code == 201
    scale = server.request("GET", f"{path}/r/scale", Accept=MEDIA).json
    assert (scale["kind"], scale["spec"]) == ("Scale", {"replicas": 3})


def test_a_watch_in_frames(server: LiveServer, config: str) -> None:
    collection = config.removesuffix("/one")
    wanted = f"{MEDIA};stream=watch"
    with contextlib.closing(server.watch(f"{collection}?watch=1&timeoutSeconds=30", Accept=wanted)) as events:
        root = next(events)
        assert (root["type"], root["object"]["kind"]) == ("ADDED", "ConfigMap")
        for number in range(30):
            server.request("POST", collection, {"metadata": {"name": f"more-{number}"}})
        server.request("DELETE", config)
        seen: list[dict[str, Any]] = list(itertools.takewhile(lambda event: event["type"] != "DELETED", events))
    names = [event["object"]["metadata"]["name"] for event in [root, *seen]]
    assert {"one", *(f"more-{number}" for number in range(30))} <= set(names)


def test_a_watch_that_cannot_go_on_ends_in_a_status(server: LiveServer, config: str) -> None:
    collection = config.removesuffix("/one")
    events = server.watch(f"{collection}?watch=1&resourceVersion=99999999", Accept=MEDIA)
    (only,) = events
    assert (only["type"], only["object"]["reason"]) == ("ERROR", "Expired")
