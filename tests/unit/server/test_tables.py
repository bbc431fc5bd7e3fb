"""Columns of every kind: none fails on an object that says nothing, and few kinds have no more than name and age."""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec
import pytest

from dray.api import codec, registry
from dray.api.meta import ListMeta
from dray.api.registry import Kind
from dray.api.times import Time
from dray.server.answers.tables import Tables
from dray.store import Key, Record

NOW = Time.parse("2026-06-01T12:00:00Z")
LISTED = [kind for kind in registry.kinds() if "list" in kind.verbs]


def row(kind: Kind, value: Mapping[str, object]) -> dict[str, object]:
    named = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": {"name": "x"}, **value}
    reading = codec.read_json(json.dumps(named).encode(), kind.storage.hub)
    assert reading.obj is not None, reading.errors
    record = Record(Key(kind.resource, "", "x"), 1, 1, codec.encode(reading.obj), reading.obj)
    table = json.loads(Tables(kind, NOW, "v1", "None").render([record], ListMeta(), columns=True))
    names = [column["name"] for column in table["columnDefinitions"]]
    return dict(zip(names, table["rows"][0]["cells"], strict=True))


@pytest.mark.parametrize("kind", LISTED, ids=[kind.resource for kind in LISTED])
def test_an_object_that_says_nothing_has_a_row(kind: Kind) -> None:
    assert "x" in row(kind, {}).values()


def test_cells() -> None:
    template = {"spec": {"containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "j"}]}}
    spec = {"selector": {"matchLabels": {"k": "v"}}, "template": template}
    found = row(registry.by_kind("apps/v1", "Deployment"), {"spec": spec})
    assert (found["Containers"], found["Images"], found["Selector"]) == ("a,b", "i,j", "k=v")
    addresses = [{"addresses": [f"10.0.0.{number}"]} for number in range(5)]
    slice_ = {"addressType": "IPv4", "ports": [{"port": 80}], "endpoints": addresses}
    found = row(registry.by_kind("discovery.k8s.io/v1", "EndpointSlice"), slice_)
    assert (found["Ports"], found["Endpoints"]) == ("80", "10.0.0.0,10.0.0.1,10.0.0.2 + 2 more...")
    binding = {"roleRef": {"kind": "ClusterRole", "name": "view"}, "subjects": [{"kind": "User", "name": "eve"}]}
    found = row(registry.by_kind("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"), binding)
    assert (found["Role"], found["Users"]) == ("ClusterRole/view", "eve")
    request = {
        "spec": {"username": "eve", "expirationSeconds": 3600},
        "status": {"certificate": "YQ==", "conditions": [{"type": "Approved", "status": "True"}]},
    }
    found = row(registry.by_kind("certificates.k8s.io/v1", "CertificateSigningRequest"), request)
    assert (found["Condition"], found["RequestedDuration"]) == ("Approved,Issued", "60m")


def test_rows_are_json() -> None:
    assert msgspec.json.encode(
        row(registry.by_kind("v1", "PersistentVolume"), {"spec": {"capacity": {"storage": "1Gi"}}})
    )
