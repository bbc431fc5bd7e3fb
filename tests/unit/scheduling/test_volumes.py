"""Volumes decide where pods may go, and pods where volumes are made."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dray.allocator import Options
from dray.api.generated.core import PersistentVolume, PersistentVolumeClaim
from dray.api.generated.storage import StorageClass
from dray.scheduling.cause import Cause
from dray.scheduling.cluster import Cluster
from dray.scheduling.decide import Chosen
from dray.scheduling.pod_info import read_pod
from dray.scheduling.preemption import find_victims
from dray.scheduling.refusal import Preempts
from scheduler_objects import choose, chosen_node, cluster, node, pod, refusal, told, typed

NODES = (node("a", labels={"zone": "x"}), node("b", labels={"zone": "y"}))
MOUNTED: dict[str, Any] = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}
LATE = "WaitForFirstConsumer"


def claim(volume: str = "", phase: str = "Pending", kind: str | None = "fast") -> PersistentVolumeClaim:
    spec: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    spec |= {"volumeName": volume} if volume else {}
    spec |= {"storageClassName": kind} if kind is not None else {}
    meta = {"name": "c", "namespace": "ns", "uid": "uid-c"}
    made: PersistentVolumeClaim = typed(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": meta,
            "spec": spec,
            "status": {"phase": phase},
        }
    )
    return made


def volume(name: str, zone: str = "", size: str = "1Gi", phase: str = "Available", **spec: Any) -> PersistentVolume:
    body: dict[str, Any] = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}
    if zone:
        there = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}
        body["nodeAffinity"] = {"required": {"nodeSelectorTerms": [there]}}
    made: PersistentVolume = typed(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {**body, **spec},
            "status": {"phase": phase},
        }
    )
    return made


def storage_class(mode: str = LATE, provisioner: str = "p", **fields: Any) -> StorageClass:
    body = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}}
    made: StorageClass = typed({**body, "provisioner": provisioner, "volumeBindingMode": mode, **fields})
    return made


def world(*objects: PersistentVolumeClaim | PersistentVolume | StorageClass) -> Cluster:
    here = cluster(*NODES)
    for obj in objects:
        if isinstance(obj, PersistentVolumeClaim):
            here.volumes.set_claim(None, obj)
        elif isinstance(obj, PersistentVolume):
            here.volumes.set_volume(None, obj)
        else:
            here.volumes.set_class(None, obj)
    return here


@pytest.mark.parametrize(
    ("objects", "says"),
    [
        ((), 'persistentvolumeclaim "c" not found'),
        ((claim("gone", "Bound"),), 'persistentvolumeclaim "c" bound to non-existent persistentvolume "gone"'),
        ((claim(), storage_class("Immediate")), "pod has unbound immediate PersistentVolumeClaims: c"),
        ((claim("v"), volume("v")), "pod has unbound immediate PersistentVolumeClaims: c"),
        (
            (claim("v", "Bound"), volume("v", zone="z")),
            "0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity.",
        ),
        (
            (claim(), storage_class(provisioner="kubernetes.io/no-provisioner"), volume("small", size="1Mi")),
            "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind.",
        ),
    ],
)
def test_why_a_pod_waits(objects: Any, says: str) -> None:
    here = world(*objects)
    assert told(here, pod(**MOUNTED)) == says
    assert Cause.VOLUME in refusal(here, pod(**MOUNTED)).causes


def test_a_bound_volume_decides_the_node() -> None:
    assert chosen_node(world(claim("v", "Bound"), volume("v", zone="y")), pod(**MOUNTED)) == "b"


def test_a_claim_that_waits_gets_the_smallest_volume_that_suits_or_one_that_is_made() -> None:
    there = (volume("large", zone="y", size="5Gi"), volume("right", zone="y"), volume("taken", phase="Bound"))
    static = storage_class(provisioner="kubernetes.io/no-provisioner")
    answer = choose(world(claim(), static, *there), pod(**MOUNTED))
    assert isinstance(answer, Chosen)
    assert answer.node == "b"
    assert [choice.volume and choice.volume.metadata.name for choice in answer.volumes] == ["right"]
    term = {"matchLabelExpressions": [{"key": "zone", "values": ["y"]}]}
    made = choose(world(claim(), storage_class(allowedTopologies=[term])), pod(**MOUNTED))
    assert isinstance(made, Chosen)
    assert (made.node, [choice.volume for choice in made.volumes]) == ("b", [None])
    default = storage_class()
    default.metadata.annotations["storageclass.kubernetes.io/is-default-class"] = "true"
    assert isinstance(choose(world(claim(kind=None), default), pod(**MOUNTED)), Chosen)


@pytest.mark.parametrize("mode", ["ReadWriteOncePod", "ReadWriteOnce"])
def test_a_claim_for_one_pod_is_had_by_one_pod_on_whatever_node(mode: str) -> None:
    bound = claim("pv", "Bound")
    only = replace(bound, spec=replace(bound.spec, access_modes=(mode,)))
    here = world(only, volume("pv", phase="Bound"))
    first = pod("first", nodeName="a", priority=1, **MOUNTED)
    here.set_pod(first, first.metadata.uid)
    second = pod("second", priority=9, **MOUNTED)
    if mode == "ReadWriteOnce":
        assert chosen_node(here, second) in ("a", "b")
        return
    refused = refusal(here, second)
    assert "2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod" in told(here, second)
    assert Cause.POD_GONE in refused.causes
    assert chosen_node(here, pod("other")) in ("a", "b"), "who does not use the claim"
    assert "not found" in told(here, pod("third", namespace="others", **MOUNTED)), "that is another claim"
    found = find_victims(here, read_pod(second), Options(), refused)
    assert isinstance(found.preemption, Preempts)
    assert [one.name.name for one in found.preemption.victims] == ["first"]
    here.set_pod(None, first.metadata.uid)
    assert chosen_node(here, second) in ("a", "b")
