"""Columns of every kind: none fails on an object that says nothing, and few kinds have no more than name and age."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

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
    table = json.loads(Tables(kind, kind.versions[0], NOW, "v1", "None").render([record], ListMeta(), columns=True))
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


def test_states_of_claims() -> None:
    """Recorded from Kubernetes 1.37: what is being deleted and has no devices is not pending any more."""
    claims, deleted = (
        registry.by_kind("resource.k8s.io/v1", "ResourceClaim"),
        {"deletionTimestamp": "2026-06-01T12:00:00Z"},
    )
    allocation: dict[str, Any] = {"devices": {"results": []}}
    user = {"resource": "pods", "name": "p", "uid": "u"}
    for status, state in (
        ({}, "pending"),
        ({"allocation": allocation}, "allocated"),
        ({"allocation": allocation, "reservedFor": [user]}, "allocated,reserved"),
    ):
        assert row(claims, {"status": status})["State"] == state
        gone = row(claims, {"status": status, "metadata": {"name": "x", **deleted}})["State"]
        assert gone == ",".join(["deleted", *state.replace("pending", "").split(",")]).rstrip(",")


def test_answers_about_pools() -> None:
    """Recorded from Kubernetes 1.37: with a dash where nothing is known, and how many of the pools are listed."""
    kind = registry.by_kind("resource.k8s.io/v1alpha3", "ResourcePoolStatusRequest")
    pool = {"totalDevices": 4, "availableDevices": 3, "allocatedDevices": 1, "validationError": "odd"}

    def cells(*conditions: tuple[str, str], count: int = 1) -> list[object]:
        then = "2026-06-01T11:59:00Z"
        status = {
            "poolCount": count,
            "pools": [pool],
            "conditions": [{"type": type_, "status": is_, "lastTransitionTime": then} for type_, is_ in conditions],
        }
        return list(row(kind, {"spec": {"driver": "d"}, "status": status}).values())[2:]

    assert list(row(kind, {"spec": {"driver": "d"}}).values())[2:] == ["-"] * 5 + [0, "Pending", "<none>"]
    assert cells(("Complete", "True")) == ["4", "3", "1", "0", "1", 1, "Complete", "60s"]
    assert cells(("Complete", "True"), count=3)[-3:] == [3, "Complete (1/3 pools)", "60s"]
    assert cells(("Complete", "False"), ("Failed", "True")) == ["-"] * 5 + [1, "Failed", "<none>"]
    assert cells(("Other", "True"))[-2:] == ["Pending", "<none>"]
