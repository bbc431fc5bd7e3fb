"""Lists that Kubernetes writes as null when they are empty: the types say which, the codec only does it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dray.api import codec, registry
from dray.api.meta import Object
from dray.validation import from_hub
from local_server import typed

KINDS = [kind for kind in registry.kinds() if kind.module]
V1 = "resource.k8s.io/v1"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.resource)
def test_the_paths_lead_to_lists(kind: registry.Kind) -> None:
    for path in kind.hub.null_when_empty:
        document: Any = json.loads(codec.encode(kind.hub(kind=kind.kind, api_version=kind.api_version)))
        for part in path[:-1]:
            document = document.get(part, {})
        assert document.get(path[-1]) is None


@pytest.mark.parametrize(
    ("api_version", "kind", "path"),
    [
        ("rbac.authorization.k8s.io/v1", "Role", ["rules"]),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", ["rules"]),
        ("discovery.k8s.io/v1", "EndpointSlice", ["endpoints"]),
        ("discovery.k8s.io/v1", "EndpointSlice", ["ports"]),
        ("v1", "LimitRange", ["spec", "limits"]),
        ("storage.k8s.io/v1", "CSINode", ["spec", "drivers"]),
    ],
)
def test_lists_of_other_kinds(api_version: str, kind: str, path: list[str]) -> None:
    made = typed({"apiVersion": api_version, "kind": kind, "metadata": {"name": "n"}})
    written: Any = json.loads(codec.encode(made))
    for name in path:
        written = written[name]
    assert written is None
    assert codec.decode(codec.encode(made), type(made)) == made


def claim(**more: Any) -> Object:
    return typed({"apiVersion": V1, "kind": "ResourceClaim", "metadata": {"name": "c"}, **more})


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1beta2"])
def test_requests_and_conditions_of_claims(version: str) -> None:
    devices = [
        {"driver": "d", "pool": "p", "device": name, "conditions": conditions} for name, conditions in CONDITIONS
    ]
    made = from_hub(claim(spec={"devices": {}}, status={"devices": devices}), f"resource.k8s.io/{version}")
    document = json.loads(codec.encode(made))
    assert document["spec"] == {"devices": {"requests": None}}
    written = [device["conditions"] for device in document["status"]["devices"]]
    assert [it if it is None else it[0]["type"] for it in written] == [None, "Ready", None]
    assert codec.decode(codec.encode(made), type(made)) == made


READY = {"type": "Ready", "status": "True", "reason": "", "message": "", "lastTransitionTime": None}
CONDITIONS: list[tuple[str, list[dict[str, Any]]]] = [("a", []), ("b", [READY]), ("c", [])]


def test_a_template() -> None:
    made = typed({"apiVersion": V1, "kind": "ResourceClaimTemplate", "spec": {"spec": {"devices": {}}}})
    assert b'"requests":null' in codec.encode(made)


def test_texts_that_look_like_empty_lists_stay() -> None:
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
    made = claim(metadata={"name": "c", "annotations": {"a": '{"requests":[]}'}}, spec=spec)
    assert json.loads(codec.encode(made))["metadata"]["annotations"] == {"a": '{"requests":[]}'}
