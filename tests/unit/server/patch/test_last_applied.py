"""Objects that kubectl applied from the client before it applied on the server."""

from __future__ import annotations

import json
from typing import Any

import pytest

import builders
from dray.api import schema
from dray.api.well_known import LAST_APPLIED
from dray.server.patch.apply import apply
from dray.server.patch.errors import ConflictsError
from dray.server.patch.managed import Write, track_update

CLASS = schema.for_kind("resource.k8s.io", "v1", "DeviceClass")


def device_class(**labels: str) -> dict[str, Any]:
    return builders.manifest(builders.V1, "DeviceClass", "x", meta={"labels": labels}, spec={})


def from_the_client(annotation: str, **labels: str) -> dict[str, Any]:
    """An object as it is stored after `kubectl apply` without `--server-side`."""
    live = device_class(**labels)
    live["metadata"]["annotations"] = {LAST_APPLIED: annotation}
    managed = track_update(None, live, Write(CLASS, "kubectl-client-side-apply", "2026-06-01T12:00:00Z"))
    live["metadata"]["managedFields"] = managed
    return live


def write(manager: str = "kubectl") -> Write:
    return Write(CLASS, manager, "2026-06-01T13:00:00Z")


def test_kubectl_takes_over_what_it_applied() -> None:
    live = from_the_client(json.dumps(device_class(a="1")), a="1")
    new, managed = apply(live, device_class(a="2"), write())
    assert new["metadata"]["labels"] == {"a": "2"}
    assert json.loads(new["metadata"]["annotations"][LAST_APPLIED]) == device_class(a="2")
    assert new["metadata"]["annotations"][LAST_APPLIED].endswith("\n")
    assert managed[0]["fieldsV1"]["f:metadata"] == {"f:labels": {"f:a": {}}}


@pytest.mark.parametrize(
    ("annotation", "labels"),
    [
        pytest.param(json.dumps(device_class(a="1")), {"a": "9"}, id="changed-since"),
        pytest.param(json.dumps(device_class()), {"a": "1"}, id="not-applied"),
        pytest.param(json.dumps(device_class(a="1") | {"apiVersion": "v2"}), {"a": "1"}, id="another-version"),
        pytest.param(json.dumps(device_class(a="1") | {"bogus": 1}), {"a": "1"}, id="not-of-the-type"),
        pytest.param("[]", {"a": "1"}, id="no-object"),
        pytest.param("{", {"a": "1"}, id="no-json"),
    ],
)
def test_what_kubectl_did_not_apply_stays_a_conflict(annotation: str, labels: dict[str, str]) -> None:
    with pytest.raises(ConflictsError):
        apply(from_the_client(annotation, **labels), device_class(a="2"), write())


def test_others_get_the_conflict() -> None:
    live = from_the_client(json.dumps(device_class(a="1")), a="1")
    with pytest.raises(ConflictsError):
        apply(live, device_class(a="2"), write("helm"))


def test_an_annotation_that_would_be_too_large_goes() -> None:
    live = from_the_client(json.dumps(device_class(a="1")), a="1")
    large = device_class(a="1")
    large["metadata"]["annotations"] = {"note": "x" * 200_000}
    new, _ = apply(live, large, write())
    assert new["metadata"]["annotations"] == {"note": "x" * 200_000}
