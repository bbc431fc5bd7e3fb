"""Protobuf bodies as typed clients send them: the same object as JSON, or a clear refusal."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dray.api.wire import MAGIC, WireError, bytes_field, number_field, varint
from dray.api.wire import MEDIA_TYPE as MEDIA
from dray.server.protobuf import read as protobuf
from dray.server.protobuf import tables, write
from live_server import LiveServer
from served_kinds import TYPED


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    named = bytes_field(1, api_version.encode()) + bytes_field(2, kind.encode())
    return MAGIC + bytes_field(1, named) + bytes_field(2, raw) + bytes_field(3, b"") + bytes_field(4, b"")


def wrap(api_version: str, kind: str, value: dict[str, Any]) -> bytes:
    return envelope(api_version, kind, write.encode(tables.name_of(api_version, kind), copy.deepcopy(value)))


OBJECTS: list[tuple[str, str, dict[str, Any]]] = [
    ("v1", "ConfigMap", {"metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"k": "v"}, "immutable": True}),
    ("v1", "Secret", {"data": {"k": "AAEC/w=="}, "type": "Opaque"}),
    ("v1", "ResourceQuota", {"spec": {"hard": {"pods": "3"}}}),
    ("policy/v1", "PodDisruptionBudget", {"spec": {"minAvailable": "50%", "maxUnavailable": 2}}),
    (
        "authorization.k8s.io/v1",
        "SubjectAccessReview",
        {"spec": {"user": "eve", "groups": ["g"], "extra": {"scope": ["a", "b"]}}},
    ),
    ("policy/v1", "Eviction", {"deleteOptions": {"gracePeriodSeconds": -1, "preconditions": {"uid": "u"}}}),
    (
        "v1",
        "Node",
        {
            "spec": {"podCIDR": "", "taints": [{"key": "a", "effect": "NoSchedule"}]},
            "status": {"capacity": {"cpu": "4"}, "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}},
        },
    ),
    (
        "resource.k8s.io/v1beta1",
        "ResourceSlice",
        {"spec": {"devices": [{"name": "d", "basic": {"attributes": {"a": {"ints": [1, -1]}}}}]}},
    ),
    (
        "resource.k8s.io/v1",
        "DeviceClass",
        {"spec": {"config": [{"opaque": {"driver": "d.example.com", "parameters": {"a": [1]}}}]}},
    ),
    (
        "resource.k8s.io/v1beta1",
        "ResourceClaim",
        {"spec": {"devices": {"requests": [{"name": "r", "firstAvailable": [{"name": "s", "count": 2}]}]}}},
    ),
]


@pytest.mark.parametrize(("api_version", "kind", "value"), OBJECTS, ids=[kind for _, kind, _ in OBJECTS])
def test_messages_become_the_json_value(api_version: str, kind: str, value: dict[str, Any]) -> None:
    decoded = protobuf.decode(wrap(api_version, kind, value))
    assert decoded == {"apiVersion": api_version, "kind": kind, **value}


def test_times_and_what_is_left_out() -> None:
    when = bytes_field(1, b"x") + bytes_field(8, number_field(1, 1_780_315_200) + number_field(2, 0))
    metadata = protobuf.decode(envelope("v1", "ConfigMap", bytes_field(1, when)))["metadata"]
    assert metadata == {"name": "x", "creationTimestamp": "2026-06-01T12:00:00Z"}
    never = protobuf.decode(envelope("v1", "ConfigMap", bytes_field(1, bytes_field(8, b""))))
    assert never["metadata"] == {"creationTimestamp": None}
    lease = bytes_field(2, bytes_field(4, number_field(1, 1) + number_field(2, 2_000)))
    spec = protobuf.decode(envelope("coordination.k8s.io/v1", "Lease", lease))["spec"]
    assert spec == {"renewTime": "1970-01-01T00:00:01.000002Z"}


def test_delete_options_may_be_of_any_group() -> None:
    options = wrap("apps/v1", "DeleteOptions", {"propagationPolicy": "Orphan", "dryRun": ["All"]})
    assert protobuf.decode(options)["propagationPolicy"] == "Orphan"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"k8s\x00\xff",
        b"not protobuf",
        envelope("v1", "ConfigMap", b"\x0a\xff"),
        envelope("v1", "ConfigMap", b"\x0b"),
        envelope("v1", "ConfigMap", bytes_field(1, bytes_field(1, b"\xff"))),
        envelope("v1", "ConfigMap", bytes_field(1, bytes_field(8, number_field(1, 1 << 62)))),
        envelope("v1", "ConfigMap", bytes_field(1, bytes_field(17, bytes_field(7, bytes_field(1, b"{"))))),
        envelope("v1", "ConfigMap", bytes_field(1, b"\x72\x00" * (protobuf.MOST_FIELDS + 1))),
        MAGIC + bytes_field(4, b"application/cbor"),
        MAGIC + varint(0),
    ],
    ids=lambda body: repr(body[:24]),
)
def test_bytes_that_make_no_sense_are_refused(body: bytes) -> None:
    with pytest.raises(WireError):
        protobuf.decode(body)


KIND_NAMES = st.sampled_from(sorted(TYPED))


@given(KIND_NAMES, st.binary(max_size=200))
def test_garbage_is_an_object_or_an_error(kind: tuple[str, str], raw: bytes) -> None:
    try:
        decoded = protobuf.decode(envelope(*kind, raw))
    except WireError:
        return
    assert (decoded["apiVersion"], decoded["kind"]) == kind


@given(st.binary(max_size=100))
def test_a_broken_envelope_is_an_error(garbage: bytes) -> None:
    try:
        protobuf.decode(MAGIC + garbage)
    except (WireError, tables.UnknownMessage):
        return


def test_over_http(server: LiveServer, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    value = {"metadata": {"name": "typed"}, "data": {"a": "b"}}
    accept = f"{MEDIA},application/json"
    made = server.request("POST", path, wrap("v1", "ConfigMap", value), MEDIA, Accept=accept)
    assert made.code == 201, made.body
    assert made.headers["Content-Type"] == MEDIA
    assert made.json["data"] == {"a": "b"}
    garbage = server.request("POST", path, b"k8s\x00\xff", MEDIA)
    assert (garbage.code, garbage.json["reason"]) == (400, "BadRequest")
    other = server.request("POST", path, wrap("v1", "Secret", {}), MEDIA)
    assert other.code == 400  # a Secret is no ConfigMap
    placement = envelope("cluster.open-cluster-management.io/v1beta1", "Placement", b"")
    placements = f"/apis/cluster.open-cluster-management.io/v1beta1/namespaces/{namespace}/placements"
    unknown = server.request("POST", placements, placement, MEDIA)
    assert (unknown.code, unknown.json["reason"]) == (415, "UnsupportedMediaType")
    assert "application/json" in unknown.json["message"]
    options = wrap("v1", "DeleteOptions", {"preconditions": {"uid": "other"}})
    assert server.request("DELETE", f"{path}/typed", options, MEDIA).code == 409


@pytest.mark.req("4381-224", "4381-214", "4381-57")
def test_a_driver_in_go_publishes_and_reports_in_protobuf(server: LiveServer, namespace: str) -> None:
    """Typed clients in Go send all writes so, with empty texts and zeros for what is not set."""
    base = "/apis/resource.k8s.io/v1"

    def send(method: str, path: str, kind: str, value: dict[str, Any]) -> Any:
        answer = server.request(method, f"{base}{path}", wrap("resource.k8s.io/v1", kind, value), MEDIA)
        assert answer.code in (200, 201), answer.body
        return answer.json

    device = {
        "name": "gpu-0",
        "attributes": {"model": {"string": "A"}, "healthy": {"bool": False}, "index": {"int": 0}},
        "capacity": {"memory": {"value": "80Gi"}},
        "taints": [{"key": "example.com/hot", "value": "", "effect": "NoSchedule"}],
    }
    pool = {"name": namespace, "generation": 0, "resourceSliceCount": 1}
    spec = {"driver": "go.example.com", "pool": pool, "nodeName": "n", "devices": [device]}
    published = send("POST", "/resourceslices", "ResourceSlice", {"metadata": {"generateName": "go-"}, "spec": spec})
    stored = published["spec"]["devices"][0]
    assert stored["attributes"] == {"healthy": {"bool": False}, "index": {"int": 0}, "model": {"string": "A"}}
    assert stored["capacity"] == {"memory": {"value": "80Gi"}}
    assert stored["taints"][0]["effect"] == "NoSchedule"

    request = {"name": "r", "exactly": {"deviceClassName": "c", "allocationMode": "", "count": 0}}
    parameters = {"driver": "go.example.com", "parameters": {"x": {"y": 1}}}
    devices = {"requests": [request], "config": [{"requests": ["r"], "opaque": parameters}]}
    claims = f"/namespaces/{namespace}/resourceclaims"
    made = send("POST", claims, "ResourceClaim", {"metadata": {"name": "c"}, "spec": {"devices": devices}})
    assert made["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1
    assert made["spec"]["devices"]["config"] == [{"requests": ["r"], "opaque": parameters}]
    result = {"request": "r", "driver": "go.example.com", "pool": namespace, "device": "gpu-0"}
    entry = {"driver": "go.example.com", "pool": namespace, "device": "gpu-0", "data": {"uuid": "u"}}
    status = {
        "allocation": {"devices": {"results": [result]}},
        "devices": [{**entry, "networkData": {"ips": ["10.0.0.1/8"]}}],
    }
    whole = {"metadata": {"name": "c", "resourceVersion": made["metadata"]["resourceVersion"]}, "status": status}
    reported = send("PUT", f"{claims}/c/status", "ResourceClaim", whole)
    assert reported["status"]["devices"][0]["data"] == {"uuid": "u"}
    assert reported["status"]["allocation"]["devices"]["results"][0]["device"] == "gpu-0"
    server.request("DELETE", f"{base}/resourceslices/{published['metadata']['name']}")


RULE: dict[str, Any] = {
    "deviceSelector": {
        "driver": "gpu.example.com",
        "deviceClassName": "c",
        "selectors": [{"cel": {"expression": "true"}}],
    },
    "taint": {"key": "k", "effect": "None", "description": "why", "data": {"a": 1}, "evictionsPerSecond": 3},
}
TAINT = {"key": "k", "value": "v", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}
TAINTED = {"taints": [TAINT | {"description": "why"}]}


def written_back(server: LiveServer, api_version: str, kind: str, path: str, spec: dict[str, Any]) -> Any:
    """The spec after somebody who speaks protobuf has read the object, and written it with another label."""
    made = server.request(
        "POST", path.rpartition("/")[0], {"metadata": {"name": path.rpartition("/")[2]}, "spec": spec}
    )
    assert made.code == 201, made.body
    for _ in range(20):  # a controller may write the rule's status meanwhile
        read = server.request("GET", path, Accept=MEDIA)
        assert (read.code, read.headers["Content-Type"]) == (200, MEDIA)
        value = read.json
        value["metadata"]["labels"] = {"changed": "yes"}
        done = server.request("PUT", path, wrap(api_version, kind, value), MEDIA)
        if done.code != 409:
            break
    assert (done.code, done.json["metadata"]["labels"]) == (200, {"changed": "yes"})
    return done.json["spec"]


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1alpha3"])
def test_a_rule_keeps_what_protobuf_cannot_say(server: LiveServer, version: str) -> None:
    path = f"/apis/resource.k8s.io/{version}/devicetaintrules/kept-{version}"
    spec = written_back(server, f"resource.k8s.io/{version}", "DeviceTaintRule", path, RULE)
    assert spec["deviceSelector"] == RULE["deviceSelector"], "else it would taint every device of the driver"
    assert {name: spec["taint"][name] for name in RULE["taint"]} == RULE["taint"]


def test_a_slice_keeps_what_protobuf_cannot_say(server: LiveServer) -> None:
    spec = {
        "driver": "kept.example.com",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 2},
        "allNodes": True,
    }
    path = "/apis/resource.k8s.io/v1/resourceslices/kept"
    tainted = spec | {"devices": [{"name": "d", **TAINTED}]}
    assert written_back(server, "resource.k8s.io/v1", "ResourceSlice", path, tainted)["devices"] == tainted["devices"]
    whole = spec | {"taints": [{"device": "d", "taint": TAINT}]}
    path = "/apis/resource.k8s.io/v1/resourceslices/kept-taints"
    assert written_back(server, "resource.k8s.io/v1", "ResourceSlice", path, whole)["taints"] == whole["taints"]
