"""What may be said of volumes and of claims for them."""

from __future__ import annotations

from typing import Any

import pytest

TERMS = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}
SECRET = {"name": "s", "namespace": "n"}


def volume(**spec: Any) -> dict[str, Any]:
    full = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}, **spec}
    kept = {name: value for name, value in full.items() if value is not None}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": kept}


def csi(**more: Any) -> dict[str, Any]:
    return volume(hostPath=None, csi={"driver": "a.b", "volumeHandle": "h", **more})


def local(**more: Any) -> dict[str, Any]:
    return volume(hostPath=None, local={"path": "/x"}, **more)


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (volume(nodeAffinity={"required": TERMS}), set()),
        (volume(hostPath=None), {("Required", "spec")}),
        (volume(nfs={"server": "s", "path": "/"}), {("Forbidden", "spec.nfs")}),
        (volume(hostPath=None, nfs={"server": "s", "path": "x"}), {("Invalid", "spec.nfs.path")}),
        (volume(hostPath={"path": "/a/../b"}), {("Invalid", "spec.hostPath.path")}),
        (volume(hostPath={"path": ""}), {("Required", "spec.hostPath.path")}),
        (
            volume(hostPath={"path": "//"}, persistentVolumeReclaimPolicy="Recycle"),
            {("Forbidden", "spec.persistentVolumeReclaimPolicy")},
        ),
        (volume(persistentVolumeReclaimPolicy="Burn"), {("NotSupported", "spec.persistentVolumeReclaimPolicy")}),
        (volume(capacity=None), {("Required", "spec.capacity"), ("NotSupported", "spec.capacity")}),
        (volume(capacity={"storage": "0"}), {("Invalid", "spec.capacity[storage]")}),
        (volume(capacity={"storage": "1", "cpu": "1"}), {("NotSupported", "spec.capacity")}),
        (volume(accessModes=[]), {("Required", "spec.accessModes")}),
        (volume(accessModes=["ReadWriteOncePod", "ReadWriteOnce"]), {("Forbidden", "spec.accessModes")}),
        (volume(accessModes=["Sometimes"]), {("NotSupported", "spec.accessModes")}),
        (volume(volumeMode="Tape"), {("NotSupported", "spec.volumeMode")}),
        (volume(storageClassName="a b"), {("Invalid", "spec.storageClassName")}),
        (volume(nodeAffinity={}), {("Required", "spec.nodeAffinity.required")}),
        (local(nodeAffinity={"required": TERMS}), set()),
        (local(), {("Required", "spec.nodeAffinity")}),
        (csi(nodePublishSecretRef=SECRET), set()),
        (csi(driver="a b"), {("Invalid", "spec.csi.driver")}),
        (csi(volumeHandle=""), {("Required", "spec.csi.volumeHandle")}),
        (csi(nodePublishSecretRef={"name": "s"}), {("Required", "spec.csi.nodePublishSecretRef.namespace")}),
        (volume(volumeAttributesClassName="c"), {("Required", "spec.csi")}),
    ],
)
def test_volumes(verdict: Any, manifest: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    assert verdict(manifest) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"spec.capacity": {"storage": "2Gi"}, "spec.claimRef": {"name": "c"}}, set()),
        ({"spec.csi.volumeHandle": "other"}, {("Forbidden", "spec.persistentvolumesource")}),
        ({"spec.csi.controllerExpandSecretRef": SECRET}, set()),
        ({"spec.volumeMode": "Block"}, {("Invalid", "volumeMode")}),
        ({"spec.nodeAffinity": None}, {("Invalid", "nodeAffinity")}),
    ],
)
def test_what_of_a_volume_may_change(
    verdict: Any, edit: Any, changes: dict[str, Any], expected: set[tuple[str, str]]
) -> None:
    old = csi()
    old["spec"]["nodeAffinity"] = {"required": TERMS}
    assert verdict(edit(old, changes), old) == expected


def claim(phase: str = "Pending", **spec: Any) -> dict[str, Any]:
    full = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    meta = {"name": "c", "namespace": "default"}
    status = {"phase": phase, "capacity": {"storage": "1Gi"}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": full, "status": status}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"dataSource": {"kind": "PersistentVolumeClaim", "name": "x"}}, set()),
        ({"dataSourceRef": {"kind": "Tape", "name": "x"}}, {("Invalid", "spec.dataSourceRef")}),
        ({"dataSourceRef": {"kind": "PersistentVolumeClaim", "name": ""}}, {("Required", "spec.dataSourceRef.name")}),
        ({"accessModes": ["ReadWriteOncePod", "ReadWriteMany"]}, {("Forbidden", "spec.accessModes")}),
    ],
)
def test_claims(verdict: Any, spec: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    assert expected <= verdict(claim(**spec))
    assert bool(verdict(claim(**spec))) is bool(expected)


def test_only_a_bound_claim_grows(verdict: Any, edit: Any) -> None:
    more = {"spec.resources.requests.storage": "2Gi"}
    assert verdict(edit(claim("Bound"), more), claim("Bound")) == set()
    assert verdict(edit(claim(), more), claim()) == {("Forbidden", "spec")}
    less = {"spec.resources.requests.storage": "1Mi"}
    assert verdict(edit(claim("Bound"), less), claim("Bound")) == {("Forbidden", "spec.resources.requests.storage")}


def test_how_a_claim_grows_is_one_of_a_few_states(verdict: Any, edit: Any) -> None:
    states = {"status.allocatedResourceStatuses": {"storage": "Dreaming"}}
    assert verdict(edit(claim(), states), claim()) == {("NotSupported", "status.allocatedResourceStatuses")}
