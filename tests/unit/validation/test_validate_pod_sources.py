"""Where pods take variables and files from, and where they want to be: names, paths and fields that exist."""

from __future__ import annotations

from typing import Any

import pytest

import builders

Expected = set[tuple[str, str]]
FILE = {"key": "k", "path": "p"}
FACT = {"path": "p", "fieldRef": {"fieldPath": "metadata.labels"}}

VARIABLES: list[tuple[dict[str, Any], Expected]] = [
    ({"fieldRef": {"fieldPath": "metadata.annotations['a.b/c']"}}, set()),
    ({"fieldRef": {"fieldPath": "spec.host"}}, set()),
    ({"fieldRef": {"fieldPath": "metadata.labels"}}, {("NotSupported", "fieldRef.fieldPath")}),
    ({"fieldRef": {"fieldPath": "spec.secrets"}}, {("Invalid", "fieldRef.fieldPath")}),
    ({"fieldRef": {"fieldPath": "metadata.name['a']"}}, {("Invalid", "fieldRef.fieldPath")}),
    ({"fieldRef": {"fieldPath": "metadata.labels['a b']"}}, {("Invalid", "fieldRef")}),
    ({"fieldRef": {"apiVersion": "v2", "fieldPath": "metadata.name"}}, {("Invalid", "fieldRef.fieldPath")}),
    ({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}, set()),
    ({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1k"}}, {("Invalid", "resourceFieldRef.divisor")}),
    ({"resourceFieldRef": {"resource": "requests.hugepages-2Mi", "divisor": "1Mi"}}, set()),
    ({"resourceFieldRef": {"resource": "limits.gpu"}}, {("NotSupported", "resourceFieldRef.resource")}),
    ({"configMapKeyRef": {"name": "m", "key": "a b"}}, {("Invalid", "configMapKeyRef.key")}),
    ({"secretKeyRef": {"name": "A", "key": "k"}}, {("Invalid", "secretKeyRef.name")}),
]


@pytest.mark.parametrize(("source", "expected"), VARIABLES)
def test_variables(verdict: Any, source: dict[str, Any], expected: Expected) -> None:
    container = {"name": "c", "image": "i", "env": [{"name": "A", "valueFrom": source}]}
    found = verdict(builders.pod("p", containers=[container]))
    assert found == {(reason, f"spec.containers[0].env[0].valueFrom.{field}") for reason, field in expected}


VOLUMES: list[tuple[dict[str, Any], Expected]] = [
    ({"configMap": {"name": "m", "items": [FILE]}}, set()),
    (
        {"configMap": {"name": "m", "items": [{"path": "/p"}]}},
        {("Required", "configMap.items[0].key"), ("Invalid", "configMap.items[0].path")},
    ),
    ({"secret": {"secretName": "s", "items": [{**FILE, "mode": 0o1000}]}}, {("Invalid", "secret.items[0].mode")}),
    ({"secret": {"secretName": "s", "defaultMode": -1}}, {("Invalid", "secret.defaultMode")}),
    ({"downwardAPI": {"items": [FACT]}}, set()),
    ({"downwardAPI": {"items": [{"path": "a/../b"}]}}, {("Invalid", "downwardAPI.path"), ("Required", "downwardAPI")}),
    ({"projected": {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 600}}]}}, set()),
    (
        {"projected": {"sources": [{"serviceAccountToken": {"path": "/t", "expirationSeconds": 1}}]}},
        {("Invalid", "projected.sources[0].serviceAccountToken.expirationSeconds"), ("Invalid", "projected.path")},
    ),
    (
        {
            "projected": {
                "sources": [{"secret": {"name": "s", "items": [FILE]}}, {"configMap": {"name": "m", "items": [FILE]}}]
            }
        },
        {("Invalid", "projected")},
    ),
    ({"hostPath": {"path": "/x", "type": "Moon"}}, {("NotSupported", "hostPath.type")}),
    ({"csi": {"driver": "a b"}}, {("Invalid", "csi.driver")}),
    ({"image": {"reference": "r", "pullPolicy": "Later"}}, {("NotSupported", "image.pullPolicy")}),
    ({"ephemeral": {}}, {("Required", "ephemeral.volumeClaimTemplate")}),
]


@pytest.mark.parametrize(("source", "expected"), VOLUMES)
def test_volumes_and_who_may_mount_them(verdict: Any, source: dict[str, Any], expected: Expected) -> None:
    container = {"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    found = verdict(builders.pod("p", containers=[container], volumes=[{"name": "v", **source}]))
    mounts = {("NotFound", "spec.containers[0].volumeMounts[0].name")} if expected else set()
    assert found == mounts | {(reason, f"spec.volumes[0].{field}") for reason, field in expected}


@pytest.mark.parametrize(
    ("mount", "field", "reason"),
    [({"subPath": "/a"}, "subPath", "Invalid"), ({"mountPropagation": "Both"}, "mountPropagation", "NotSupported")],
)
def test_mounts(verdict: Any, mount: dict[str, Any], field: str, reason: str) -> None:
    container = {"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v", **mount}]}
    found = verdict(builders.pod("p", containers=[container], volumes=[{"name": "v", "emptyDir": {}}]))
    assert found == {(reason, f"spec.containers[0].volumeMounts.{field}")}


SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"matchLabelKeys": ["a"], "nodeTaintsPolicy": "Honor"}, set()),
        ({"matchLabelKeys": ["a b"]}, {("Invalid", "matchLabelKeys[0]")}),
        ({"matchLabelKeys": ["a"], "labelSelector": None}, {("Forbidden", "matchLabelKeys")}),
        ({"nodeTaintsPolicy": "Fear"}, {("NotSupported", "nodeTaintsPolicy")}),
        ({"whenUnsatisfiable": ""}, {("NotSupported", "whenUnsatisfiable")}),
    ],
)
def test_spread(verdict: Any, fields: dict[str, Any], expected: Expected) -> None:
    found = verdict(builders.pod("p", topologySpreadConstraints=[{**SPREAD, **fields}]))
    assert found == {(reason, f"spec.topologySpreadConstraints[0].{field}") for reason, field in expected}


def test_a_key_is_wanted_or_not(verdict: Any) -> None:
    term = {"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["a"], "mismatchLabelKeys": ["a"]}
    path = "requiredDuringSchedulingIgnoredDuringExecution"
    found = verdict(builders.pod("p", affinity={"podAffinity": {path: [term]}}))
    assert found == {("Invalid", f"spec.affinity.podAffinity.{path}[0].matchLabelKeys[0]")}


def test_who_only_prefers_nodes_may_name_labels_that_cannot_be(verdict: Any) -> None:
    term = {"matchExpressions": [{"key": "k", "operator": "In", "values": ["a/b"]}]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}
    assert verdict(builders.pod("p", affinity={"nodeAffinity": preferred})) == set()
