"""Protobuf bodies as typed clients send them: the same object as JSON, or a clear refusal."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dray.api import schema
from dray.api.registry import CLUSTER_GROUP, kinds
from dray.server.protobuf import decode as protobuf
from dray.server.protobuf import messages
from dray.server.protobuf.messages import SCALARS, Field, Message
from dray.server.protobuf.wire import WireError, bytes_field, number_field, varint
from live_server import LiveServer
from protobuf_bodies import KINDS, MEDIA, encode, envelope, wrap

WITHOUT_NUMBERS = {
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),  # its schemas are JSON of their own kind
    ("resource.k8s.io/v1alpha3", "ResourceSlicePatch"),  # not in Kubernetes
}

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
    (
        "v1",
        "Pod",
        {
            "metadata": {
                "name": "a",
                "ownerReferences": [{"kind": "Job", "name": "j", "uid": "u", "controller": False}],
            },
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "ports": [{"containerPort": 80, "protocol": "TCP"}],
                        "readinessProbe": {"httpGet": {"port": "http", "path": "/"}, "periodSeconds": 5},
                        "resources": {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]},
                    }
                ],
                "ephemeralContainers": [{"name": "debug", "targetContainerName": "main", "stdin": True}],
                "volumes": [
                    {"name": "v", "emptyDir": {"sizeLimit": "1Gi"}},
                    {"name": "w", "hostPath": {"path": "/x", "type": ""}},
                ],
                "enableServiceLinks": False,
                "priority": 0,
            },
        },
    ),
    (
        "apps/v1",
        "Deployment",
        {
            "spec": {
                "replicas": 0,
                "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}},
                "template": {"spec": {"nodeSelector": {"a": "b"}}},
            }
        },
    ),
    (
        "resource.k8s.io/v1",
        "ResourceSlice",
        {
            "spec": {
                "driver": "gpu.example.com",
                "devices": [
                    {
                        "name": "gpu-0",
                        "attributes": {"model": {"string": "H100"}, "index": {"int": 0}, "ok": {"bool": False}},
                        "capacity": {"memory": {"value": "80Gi"}},
                    }
                ],
            }
        },
    ),
    ("policy/v1", "Eviction", {"deleteOptions": {"gracePeriodSeconds": -1, "preconditions": {"uid": "u"}}}),
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
    raw = encode(messages.message("meta.v1.DeleteOptions"), {"propagationPolicy": "Orphan", "dryRun": ["All"]})
    assert protobuf.decode(envelope("apps/v1", "DeleteOptions", raw))["propagationPolicy"] == "Orphan"


@pytest.mark.parametrize("package", messages.packages())
def test_every_message_that_is_named_exists(package: str) -> None:
    def check(message: Message) -> None:
        for field in message.values():
            if field.embedded is not None:
                check(field.embedded)
            else:
                assert field.type in SCALARS or messages.message(field.type) is not None

    for message in messages.of_package(package).values():
        check(message)


def test_numbers_are_known_of_all_kinds_that_kubernetes_has() -> None:
    served = {
        (kind.api_version_of(version), kind.kind)
        for kind in kinds()
        for version in kind.versions
        if kind.group != CLUSTER_GROUP
    }
    assert served - set(KINDS) == WITHOUT_NUMBERS


@pytest.mark.parametrize("kind", sorted(KINDS), ids="/".join)
def test_fields_are_those_of_the_kind(kind: tuple[str, str]) -> None:
    group, _, version = kind[0].rpartition("/")
    properties = set(schema.for_kind(group, version, kind[1]).properties) - {"apiVersion", "kind"}
    assert {field.name for field in KINDS[kind].values()} == properties


def test_zeros_that_go_writes_are_left_out_but_not_those_that_somebody_set() -> None:
    message = KINDS["apps/v1", "Deployment"]
    spec = {"replicas": 0, "minReadySeconds": 0, "paused": False, "strategy": {}}
    decoded = protobuf.decode(envelope("apps/v1", "Deployment", encode(message, {"spec": spec})))
    assert decoded["spec"] == {"replicas": 0, "strategy": {}}


def test_messages_that_hold_themselves_end_somewhere() -> None:
    template = messages.message("scheduling.v1alpha3.CompositePodGroupTemplate")
    number = next(number for number, field in template.items() if field.type.endswith(".CompositePodGroupTemplate"))
    nested = b""
    for _ in range(protobuf.DEEPEST):
        nested = bytes_field(number, nested)
    spec = messages.message("scheduling.v1alpha3.WorkloadSpec")
    number = next(number for number, field in spec.items() if field.type.endswith(".CompositePodGroupTemplate"))
    workload = bytes_field(2, bytes_field(number, nested))
    with pytest.raises(WireError, match="levels"):
        protobuf.decode(envelope("scheduling.k8s.io/v1alpha3", "Workload", workload))


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
    if not field.many and field.type in ("text", "int", "bool"):
        return leaf.filter(bool)  # what JSON leaves out is left out
    if field.many == "@":
        return st.dictionaries(st.text(max_size=5), leaf, min_size=1, max_size=3)
    return st.lists(leaf, min_size=1, max_size=3) if field.many == "*" else leaf


@given(st.data(), KIND_NAMES)
def test_what_is_encoded_comes_back(data: st.DataObject, kind: tuple[str, str]) -> None:
    message = {
        number: field for number, field in KINDS[kind].items() if field.type not in ("time", "microtime", "json")
    }
    shape = st.fixed_dictionaries({}, optional={field.name: values(field) for field in message.values()})
    value = data.draw(shape)
    decoded = protobuf.decode(envelope(*kind, encode(message, value)))
    assert decoded == {"apiVersion": kind[0], "kind": kind[1], **value}


UNKNOWN = envelope("cluster.open-cluster-management.io/v1", "ManagedCluster", b"")
"""Kubernetes has no such kind, so nobody published its numbers."""


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
    unknown = server.request("POST", "/apis/cluster.open-cluster-management.io/v1/managedclusters", UNKNOWN, MEDIA)
    assert (unknown.code, unknown.json["reason"]) == (415, "UnsupportedMediaType")
    assert "application/json" in unknown.json["message"]
    options = envelope(
        "v1", "DeleteOptions", encode(messages.message("meta.v1.DeleteOptions"), {"preconditions": {"uid": "other"}})
    )
    assert server.request("DELETE", f"{path}/typed", options, MEDIA).code == 409
