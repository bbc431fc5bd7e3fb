"""Protobuf bodies as typed clients send them: the same object as JSON, or a clear refusal."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dray.server.bodies.protobuf import decode as protobuf
from dray.server.bodies.protobuf.messages import KINDS, MESSAGES, SCALARS, Field, Message
from dray.server.bodies.protobuf.wire import WireError, bytes_field, number_field, varint
from live_server import LiveServer

MEDIA = protobuf.MEDIA_TYPE


def encode(message: Message, value: dict[str, Any]) -> bytes:
    """A plain value as a message: the twin of the decoder."""
    numbers = {field.name: (number, field) for number, field in message.items()}
    spread = {
        inner.name: (number, field)
        for number, field in message.items()
        if field.many == "+"
        for inner in MESSAGES[field.type].values()
    }
    made = []
    for name, inner in value.items():
        number, field = numbers[name] if name in numbers else spread[name]
        if field.many == "@":
            entries = (bytes_field(1, key.encode()) + one(2, field.type, item) for key, item in inner.items())
            made += [bytes_field(number, entry) for entry in entries]
        elif field.many == "*":
            made += [one(number, field.type, item) for item in inner]
        elif field.many == "+":
            made.append(one(number, field.type, {name: inner}))
        else:
            made.append(one(number, field.type, inner))
    return b"".join(made)


def one(number: int, kind: str, value: Any) -> bytes:
    match kind:
        case "int" | "bool":
            return number_field(number, int(value))
        case "text":
            return bytes_field(number, value.encode())
        case "bytes":
            return bytes_field(number, base64.b64decode(value))
        case "quantity":
            return bytes_field(number, bytes_field(1, value.encode()))
        case "json":
            return bytes_field(number, bytes_field(1, json.dumps(value).encode()))
        case "texts":
            return bytes_field(number, b"".join(bytes_field(1, item.encode()) for item in value))
        case "int-or-string" if isinstance(value, int):
            return bytes_field(number, number_field(1, 0) + number_field(2, value))
        case "int-or-string":
            return bytes_field(number, number_field(1, 1) + bytes_field(3, value.encode()))
        case _:
            return bytes_field(number, encode(MESSAGES[kind], value))


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    named = bytes_field(1, api_version.encode()) + bytes_field(2, kind.encode())
    return protobuf.MAGIC + bytes_field(1, named) + bytes_field(2, raw) + bytes_field(3, b"") + bytes_field(4, b"")


def wrap(api_version: str, kind: str, value: dict[str, Any]) -> bytes:
    return envelope(api_version, kind, encode(KINDS[api_version, kind], value))


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
    raw = encode(MESSAGES["DeleteOptions"], {"propagationPolicy": "Orphan", "dryRun": ["All"]})
    assert protobuf.decode(envelope("apps/v1", "DeleteOptions", raw))["propagationPolicy"] == "Orphan"


def test_every_message_that_is_named_exists() -> None:
    used = {field.type for message in MESSAGES.values() for field in message.values()}
    assert used - SCALARS <= set(MESSAGES)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"k8s\x00\xff",
        b"not protobuf",
        envelope("v1", "ConfigMap", b"\x0a\xff"),
        envelope("v1", "ConfigMap", b"\x08\x01"),
        envelope("v1", "ConfigMap", b"\x0b"),
        envelope("v1", "ConfigMap", bytes_field(1, bytes_field(1, b"\xff"))),
        envelope("v1", "ConfigMap", bytes_field(1, bytes_field(8, number_field(1, 1 << 62)))),
        envelope("v1", "ConfigMap", bytes_field(1, bytes_field(17, bytes_field(7, bytes_field(1, b"{"))))),
        envelope("v1", "ConfigMap", b"\x0a\x00" * (protobuf.MOST_FIELDS + 1)),
        protobuf.MAGIC + bytes_field(4, b"application/cbor"),
        protobuf.MAGIC + varint(0),
    ],
    ids=lambda body: repr(body[:24]),
)
def test_bytes_that_make_no_sense_are_refused(body: bytes) -> None:
    with pytest.raises(WireError):
        protobuf.decode(body)


KIND_NAMES = st.sampled_from(sorted(KINDS))


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
        protobuf.decode(protobuf.MAGIC + garbage)
    except (WireError, protobuf.UnknownMessage):
        return


def values(field: Field) -> st.SearchStrategy[Any]:
    """Values of a field, messages left empty."""
    leaves: dict[str, st.SearchStrategy[Any]] = {
        "int": st.integers(-(2**63), 2**63 - 1),
        "bool": st.booleans(),
        "bytes": st.binary(max_size=9).map(lambda data: base64.b64encode(data).decode()),
        "texts": st.lists(st.text(max_size=5), max_size=3),
        "int-or-string": st.one_of(st.integers(-(2**31), 2**31 - 1), st.text(max_size=5)),
    }
    other: st.SearchStrategy[Any] = st.text(max_size=9) if field.type in SCALARS else st.builds(dict)
    leaf = leaves.get(field.type, other)
    if field.many == "@":
        return st.dictionaries(st.text(max_size=5), leaf, min_size=1, max_size=3)
    return st.lists(leaf, min_size=1, max_size=3) if field.many else leaf


@given(st.data(), KIND_NAMES)
def test_what_is_encoded_comes_back(data: st.DataObject, kind: tuple[str, str]) -> None:
    message = {
        number: field for number, field in KINDS[kind].items() if field.type not in ("time", "microtime", "json")
    }
    shape = st.fixed_dictionaries({}, optional={field.name: values(field) for field in message.values()})
    value = data.draw(shape)
    decoded = protobuf.decode(envelope(*kind, encode(message, value)))
    assert decoded == {"apiVersion": kind[0], "kind": kind[1], **value}


def test_over_http(server: LiveServer, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    value = {"metadata": {"name": "typed"}, "data": {"a": "b"}}
    accept = f"{MEDIA},application/json"
    made = server.request("POST", path, wrap("v1", "ConfigMap", value), MEDIA, Accept=accept)
    assert made.code == 201, made.body
    assert made.headers["Content-Type"] == "application/json"
    assert made.json["data"] == {"a": "b"}
    garbage = server.request("POST", path, b"k8s\x00\xff", MEDIA)
    assert (garbage.code, garbage.json["reason"]) == (400, "BadRequest")
    other = server.request("POST", path, wrap("v1", "Secret", {}), MEDIA)
    assert other.code == 400  # a Secret is no ConfigMap
    service = envelope("apiregistration.k8s.io/v1", "APIService", b"")
    unknown = server.request("POST", "/apis/apiregistration.k8s.io/v1/apiservices", service, MEDIA)
    assert (unknown.code, unknown.json["reason"]) == (415, "UnsupportedMediaType")
    assert "application/json" in unknown.json["message"]
    options = envelope("v1", "DeleteOptions", encode(MESSAGES["DeleteOptions"], {"preconditions": {"uid": "other"}}))
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
