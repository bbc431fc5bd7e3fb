"""Of pods that nobody here can judge, previews and plans say so."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import builders
import dray
from dray.api.generated.core import Node, Taint
from dray.snapshot.pod_explanation import explain_pod
from dray.what_if.difference import compare
from dray.what_if.taint_preview import preview_nodes
from scale_up_objects import group, plan_for
from snapshot_objects import Manifest, node, pod

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
VOLUME = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}


def with_spec(made: Manifest, **spec: Any) -> Manifest:
    return {**made, "spec": {**made["spec"], **spec}}


@pytest.mark.parametrize(
    ("spec", "why"),
    [({"schedulerName": "volcano"}, "it is for scheduler volcano"), (VOLUME, 'persistentvolumeclaim "data" not found')],
)
def test_a_preview_does_not_say_that_they_fit_elsewhere(spec: dict[str, Any], why: str) -> None:
    base = dray.load(node("node-1"), node("node-2"), with_spec(pod("p"), **spec))
    difference = compare(base, base.without("node/node-1"), NOW)
    (eviction,) = difference.evictions
    assert eviction.fits is None
    assert why in (eviction.why_not or "")
    assert f"not known: {why}" in str(difference)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"schedulerName": "volcano"}, "it is for scheduler volcano"),
        (VOLUME, 'persistentvolumeclaim "data" not found'),
        ({"schedulingGates": [{"name": "g"}]}, "scheduling gates"),
    ],
)
def test_no_node_is_planned_for_pods_that_wait_for_something_else(spec: dict[str, Any], why: str) -> None:
    found = plan_for([with_spec(pod("p", "", phase="Pending"), **spec)], group("big"))
    assert found.nodes == 0
    (unplaced,) = found.unplaced
    assert why in unplaced.message
    assert not unplaced.groups
    assert "would fit" not in found.text()


PENDING = pod("p", "", phase="Pending")
VOLUMES: tuple[Manifest, ...] = (
    builders.manifest("storage.k8s.io/v1", "StorageClass", "fast", provisioner="p"),
    builders.manifest("v1", "PersistentVolume", "disk", spec={}),
    builders.manifest("v1", "PersistentVolumeClaim", "another", "ml", spec={}),
)


@pytest.mark.parametrize(
    ("spec", "why"),
    [({"schedulerName": "volcano"}, "it is for scheduler volcano"), (VOLUME, 'persistentvolumeclaim "data" not found')],
)
def test_a_change_does_not_say_that_those_who_wait_fit(spec: dict[str, Any], why: str) -> None:
    base = dray.load(node("node-1"))
    difference = compare(base, base.with_objects(with_spec(PENDING, **spec)), NOW)
    (change,) = difference.pending
    assert change.fits is None
    assert f"cannot be judged: {why}" in str(difference)
    known = base.with_objects(with_spec(PENDING, **spec))
    assert not compare(known, known.with_objects(node("node-2")), NOW).pending


def test_who_has_all_volumes_knows_which_are_missing() -> None:
    mine = with_spec(PENDING, **VOLUME)
    assert explain_pod(dray.load(node("node-1"), mine), "ml/p").status == "unjudged"
    told = explain_pod(dray.load(node("node-1"), mine, *VOLUMES), "ml/p")
    assert (told.status, told.message) == ("pending", 'persistentvolumeclaim "data" not found')


STORAGE = "storage.k8s.io/v1"
SIZE = {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"]}
BOUND: tuple[Manifest, ...] = (
    builders.manifest("v1", "PersistentVolume", "disk", spec={"csi": {"driver": "disks.io", "volumeHandle": "d"}}),
    builders.manifest(
        "v1", "PersistentVolumeClaim", "data", "ml", spec={**SIZE, "volumeName": "disk"}, status={"phase": "Bound"}
    ),
    builders.manifest(STORAGE, "StorageClass", "fast", provisioner="disks.io"),
)
LATE: tuple[Manifest, ...] = (
    builders.manifest("v1", "PersistentVolumeClaim", "data", "ml", spec={**SIZE, "storageClassName": "late"}),
    builders.manifest(
        STORAGE, "StorageClass", "late", provisioner="disks.io", volumeBindingMode="WaitForFirstConsumer"
    ),
    builders.manifest("v1", "PersistentVolume", "other", spec={}),
)
LIMIT = builders.manifest(
    STORAGE, "CSINode", "node-1", spec={"drivers": [{"name": "disks.io", "nodeID": "n", "allocatable": {"count": 1}}]}
)
OTHERS_LIMIT = builders.manifest(
    STORAGE, "CSINode", "node-1", spec={"drivers": [{"name": "else.io", "nodeID": "n", "allocatable": {"count": 1}}]}
)
COUNTING = builders.manifest(STORAGE, "CSIDriver", "disks.io", spec={"storageCapacity": True})
MEASURED = builders.manifest(STORAGE, "CSIStorageCapacity", "here", "kube-system", storageClassName="late")
PER_NODE = "how many volumes of driver disks.io a node takes was not looked at, and may keep ml/p away"
ROOM = "how much room StorageClass late has where was not looked at, and may keep ml/p away"


@pytest.mark.parametrize(
    ("objects", "told"),
    [
        ((*BOUND, LIMIT), (PER_NODE,)),
        ((*BOUND, OTHERS_LIMIT, COUNTING), ()),
        (BOUND, ()),
        ((*LATE, LIMIT), (PER_NODE,)),
        ((*LATE, COUNTING), (ROOM,)),
        ((*LATE, MEASURED), (ROOM,)),
        ((*LATE, LIMIT, COUNTING, MEASURED), (PER_NODE, ROOM)),
        (LATE, ()),
    ],
)
def test_limits_of_storage_drivers_are_said_not_to_be_looked_at(
    objects: tuple[Manifest, ...], told: tuple[str, ...]
) -> None:
    """Only where there are such limits, and of pods with such volumes."""
    mine, other = with_spec(PENDING, **VOLUME), with_spec(pod("free", "", phase="Pending"))
    base = dray.load(node("node-1"), *objects)
    there = base.with_objects(mine, other)
    assert explain_pod(there, "ml/p").notes == tuple(f"{one[0].upper()}{one[1:]}." for one in told)
    assert explain_pod(there, "ml/free").notes == ()
    assert compare(base, there, NOW).notes == told
    assert plan_for([node("node-1"), *objects, mine, other], group("big")).notes == told

    running = dray.load(node("node-1"), node("node-2"), *objects, with_spec(pod("p", "node-1"), **VOLUME))
    taint = Taint(key="k", effect="NoExecute")
    node_1 = next(one for one in running.objects(Node) if one.metadata.name == "node-1")
    preview = preview_nodes(running, [node_1], [taint], NOW)
    assert preview.pods[0].fits
    assert preview.notes == told
    difference = compare(running, running.without("node/node-1"), NOW)
    assert difference.notes == told
    assert all(f"Note: {one}." in str(difference) for one in told)
