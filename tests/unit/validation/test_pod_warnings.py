"""What is accepted in pods and in templates of workloads although it can hardly be meant, and what storage needs."""

from __future__ import annotations

from typing import Any

import pytest

import builders
from dray import validation
from dray.api.times import Time

NO_GRACE = "must be >= 0; negative values are invalid and will be treated as 1"
NOW = Time("2026-01-01T00:00:00Z")
SELECTOR = {"matchLabels": {"app": "a"}}
PORT = "spec.containers[0].ports"
NO_HOST_PORT = "hostIP set without hostPort: {Name: HostPort:0 ContainerPort:80 Protocol:TCP HostIP:10.0.0.1}"
BY_NAME = f"services and probes that select ports by name will use {PORT}[0]"


def a_pod(**spec: Any) -> dict[str, Any]:
    return builders.pod("pod", **spec)


def with_ports(*ports: dict[str, Any]) -> dict[str, Any]:
    return a_pod(containers=[{"name": "c", "image": "i", "ports": [{"containerPort": 80, **port} for port in ports]}])


def with_volume(**source: Any) -> dict[str, Any]:
    return a_pod(volumes=[{"name": "v", **source}])


def files(*paths: str) -> list[dict[str, str]]:
    return [{"key": f"k{index}", "path": path} for index, path in enumerate(paths)]


def warnings_of(manifest: dict[str, Any]) -> list[str]:
    assert validation.validate(manifest) == []
    obj = validation.default_object(validation.documents.read(manifest)[2], NOW)
    return validation.warnings(obj)


PROJECTED = [{"secret": {"name": "s", "items": files("a")}}, {"configMap": {"name": "m", "items": files("b", "a/c")}}]
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1500m"}}}
MADE = "spec.volumes[0].ephemeral.volumeClaimTemplate.spec"
CASES: list[tuple[dict[str, Any], list[str]]] = [
    (with_ports({"hostIP": "10.0.0.1"}), [f"{PORT}[0]: {NO_HOST_PORT}"]),
    (with_ports({"hostPort": 1}, {}), [f"{PORT}[1]: overlapping port definition with {PORT}[0]"]),
    (with_ports({}, {"hostPort": 1}), [f"{PORT}[1]: overlapping port definition with {PORT}[0]"]),
    (
        with_ports({"hostPort": 1, "hostIP": "10.0.0.1"}, {"hostPort": 1}),
        [f"{PORT}[1]: dangerously ambiguous port definition with {PORT}[0]"],
    ),
    (with_ports({"hostPort": 1, "hostIP": "10.0.0.1"}, {"hostPort": 1, "hostIP": "10.0.0.2"}), []),
    (
        a_pod(
            containers=[
                {"name": name, "image": "i", "ports": [{"containerPort": port, "name": "web"}]}
                for name, port in (("c", 80), ("d", 81))
            ]
        ),
        [f'spec.containers[1].ports[0]: duplicate port name "web" with {PORT}[0], {BY_NAME}'],
    ),
    (
        a_pod(containers=[{"name": "c", "image": "i", "env": [{"name": "A"}, {"name": "A", "value": "$(A)b"}]}]),
        [],  # made longer
    ),
    (
        a_pod(hostAliases=[{"ip": "::ffff:10.0.0.1"}, {"ip": "2001:DB8::1"}]),
        [
            'spec.hostAliases[0].ip: non-standard IP address "::ffff:10.0.0.1" is invalid: use "10.0.0.1"',
            'spec.hostAliases[1].ip: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")',
        ],
    ),
    (
        with_volume(cephfs={"monitors": ["m"]}),
        ["spec.volumes[0].cephfs: deprecated in v1.28, non-functional in v1.31+"],
    ),
    (
        with_volume(ephemeral={"volumeClaimTemplate": {"spec": CLAIM}}),
        [f'{MADE}.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer'],
    ),
    (
        with_volume(configMap={"name": "m", "items": files("a/b", "a", "ab", "a/b/")}),
        [
            'volume "v" (ConfigMap "m"): overlapping paths: "a" with "a/b"',
            'volume "v" (ConfigMap "m"): overlapping paths: "a/b" with "a"',
        ],
    ),
    (
        with_volume(projected={"sources": PROJECTED}),
        ['volume "v" (Projected): overlapping paths: "a/c" (ConfigMap "m") with "a" (Secret "s")'],
    ),
]


@pytest.mark.parametrize(("manifest", "expected"), CASES)
def test_pods(manifest: dict[str, Any], expected: list[str]) -> None:
    assert warnings_of(manifest) == expected


TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "a"}, "annotations": {"scheduler.alpha.kubernetes.io/critical-pod": ""}},
    "spec": {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": -1},
}
ENDING = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
LASTING = {"selector": SELECTOR, "template": TEMPLATE}


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "path"),
    [
        ("apps/v1", "DaemonSet", LASTING, "spec.template"),
        ("apps/v1", "Deployment", LASTING, "spec.template"),
        ("apps/v1", "ReplicaSet", LASTING, "spec.template"),
        ("apps/v1", "StatefulSet", {**LASTING, "serviceName": "s"}, "spec.template"),
        ("v1", "ReplicationController", {"template": TEMPLATE}, "spec.template"),
        ("batch/v1", "Job", {"template": ENDING}, "spec.template"),
        (
            "batch/v1",
            "CronJob",
            {"schedule": "@daily", "jobTemplate": {"spec": {"template": ENDING}}},
            "spec.jobTemplate.spec.template",
        ),
    ],
)
def test_workloads_are_told_of_their_pods(api_version: str, kind: str, spec: dict[str, Any], path: str) -> None:
    meta = {"name": "x", "namespace": "default"}
    found = warnings_of({"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec})
    annotation = f"{path}.metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]"
    assert found == [
        f'{annotation}: non-functional in v1.16+; use the "priorityClassName" field instead',
        f"{path}.spec.terminationGracePeriodSeconds: {NO_GRACE}",
    ]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            {"awsElasticBlockStore": {"volumeID": "v", "partition": 256}},
            {("Invalid", "awsElasticBlockStore.partition")},
        ),
        ({"azureDisk": {"diskName": "d", "diskURI": "x", "kind": "Managed"}}, {("NotSupported", "azureDisk.diskURI")}),
        ({"cinder": {"volumeID": "v", "secretRef": {}}}, {("Required", "cinder.secretRef.name")}),
        ({"csi": {"driver": "d", "nodePublishSecretRef": {}}}, {("Required", "csi.nodePublishSecretRef.name")}),
        ({"emptyDir": {"sizeLimit": "-1"}}, {("Forbidden", "emptyDir.sizeLimit")}),
        ({"fc": {"targetWWNs": ["w"]}}, {("Required", "fc.lun")}),
        (
            {"flexVolume": {"driver": "d", "options": {"a.k8s.io/b": ""}}},
            {("Invalid", "flexVolume.options[a.k8s.io/b]")},
        ),
        ({"flocker": {}}, {("Required", "flocker")}),
        ({"gcePersistentDisk": {"pdName": ""}}, {("Required", "persistentDisk.pdName")}),
        ({"gitRepo": {"repository": "r", "directory": "../a"}}, {("Invalid", "gitRepo.directory")}),
        ({"iscsi": {"targetPortal": "p", "iqn": "q", "lun": 0}}, {("Invalid", "iscsi.iqn")}),
        ({"iscsi": {"targetPortal": "p", "iqn": "iqn.2001-04.com.example:storage", "lun": 0}}, set()),
        ({"quobyte": {"registry": "r", "volume": "v"}}, {("Invalid", "quobyte.registry")}),
        ({"rbd": {"monitors": [], "image": "i"}}, {("Required", "rbd.monitors")}),
        ({"storageos": {"volumeName": "A"}}, {("Invalid", "storageos.volumeName")}),
        ({"emptyDir": {}, "rbd": {"monitors": [], "image": ""}}, {("Forbidden", "rbd")}),
    ],
)
def test_what_storage_needs(verdict: Any, source: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    assert verdict(with_volume(**source)) == {(reason, f"spec.volumes[0].{field}") for reason, field in expected}
