"""Claims for storage get volumes, and neither goes while it is used; pods get claims of their own."""

from __future__ import annotations

from typing import Any

import pytest

from controller_world import Manifest, World, controller_world, manifest, pod

BINDER = "persistentvolume-binder-controller"
PROTECTION = ("persistentvolumeclaim-protection-controller", "persistentvolume-protection-controller")
COMPLETED = "pv.kubernetes.io/bind-completed"
OURS = "pv.kubernetes.io/bound-by-controller"
PROVISIONER = "volume.kubernetes.io/storage-provisioner"


def volume(name: str, size: str = "1Gi", kind: str = "slow", **spec: Any) -> Manifest:
    about = {"accessModes": ["ReadWriteOnce"], "storageClassName": kind, "capacity": {"storage": size}}
    return manifest("v1", "PersistentVolume", name, spec={**about, "hostPath": {"path": "/x"}, **spec})


def claim(name: str, size: str = "1Gi", kind: str | None = "slow", **spec: Any) -> Manifest:
    about: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    if kind is not None:
        about["storageClassName"] = kind
    return manifest("v1", "PersistentVolumeClaim", name, spec={**about, **spec})


def storage_class(name: str, **more: Any) -> Manifest:
    return manifest("storage.k8s.io/v1", "StorageClass", name, **{"provisioner": "example.com/disks", **more})


async def phases(world: World, claim_name: str, volume_name: str) -> tuple[str, str]:
    held = await world.get("persistentvolumes", volume_name)
    return (await world.get("persistentvolumeclaims", claim_name)).status.phase, held.status.phase


async def test_a_claim_gets_the_smallest_volume_that_suits_it() -> None:
    async with controller_world(BINDER) as world:
        await world.create(volume("small", "512Mi"), volume("large", "10Gi"), volume("right", "2Gi"))
        await world.settle()
        await world.create(claim("c"))
        await world.settle()
        found = await world.get("persistentvolumeclaims", "c")
        assert found.spec.volume_name == "right"
        assert set(found.metadata.annotations) == {COMPLETED, OURS}
        assert (found.status.access_modes, str(found.status.capacity["storage"])) == (("ReadWriteOnce",), "2Gi")
        held = await world.get("persistentvolumes", "right")
        assert (held.spec.claim_ref.uid, set(held.metadata.annotations)) == (found.metadata.uid, {OURS})
        assert await phases(world, "c", "right") == ("Bound", "Bound")
        assert await phases(world, "c", "large") == ("Bound", "Available")


async def test_a_volume_that_comes_later_is_found_and_one_prepared_for_the_claim_is_preferred() -> None:
    async with controller_world(BINDER) as world:
        await world.create(claim("c", kind=""), claim("d", kind=""))
        await world.settle()
        assert ("FailedBinding", "no persistent volumes available for this claim and no storage class is set") in (
            await world.events("c")
        )
        prepared = {"namespace": "default", "name": "d"}
        await world.create(volume("for-d", "9Gi", "", claimRef=prepared))
        await world.create(volume("v", "1Gi", ""))
        await world.settle()
        assert (await world.get("persistentvolumeclaims", "d")).spec.volume_name == "for-d"
        assert (await world.get("persistentvolumeclaims", "c")).spec.volume_name == "v"
        assert OURS not in (await world.get("persistentvolumes", "for-d")).metadata.annotations


async def test_a_volume_is_released_when_its_claim_goes_and_a_claim_is_lost_without_its_volume() -> None:
    async with controller_world(BINDER, PROTECTION[0]) as world:
        await world.create(volume("v"), volume("w", kind="other"))
        await world.settle()
        await world.create(claim("c"), claim("d", kind="other"))
        await world.settle()
        await world.delete("persistentvolumeclaims", "c")
        await world.patch("persistentvolumes", "w", {"metadata": {"finalizers": None}})  # by somebody who is in a hurry
        await world.delete("persistentvolumes", "w")
        await world.settle()
        assert (await world.get("persistentvolumes", "v")).status.phase == "Released"
        assert (await world.get("persistentvolumeclaims", "d")).status.phase == "Lost"
        assert [reason for reason, _ in await world.events("d")] == ["ClaimLost"]
        await world.create(claim("c"))
        await world.settle()
        assert await phases(world, "c", "v") == ("Pending", "Released"), "it holds another one's data"


@pytest.mark.parametrize(
    ("given", "reason", "lacks"),
    [
        ({"size": "100Mi"}, "VolumeMismatch", "too small"),
        ({"kind": "fast"}, "VolumeMismatch", "storageClassName does not match"),
        ({"volumeMode": "Block"}, "VolumeMismatch", "incompatible volumeMode"),
        ({"accessModes": ["ReadOnlyMany"]}, "VolumeMismatch", "incompatible accessMode"),
        ({"claimRef": {"namespace": "default", "name": "other"}}, "FailedBinding", "bound to a different claim"),
    ],
)
async def test_a_claim_is_told_why_it_cannot_have_the_volume_that_it_names(
    given: dict[str, Any], reason: str, lacks: str
) -> None:
    async with controller_world(BINDER) as world:
        await world.create(volume("v", **given), claim("c", volumeName="v"))
        await world.settle()
        assert (await world.get("persistentvolumeclaims", "c")).status.phase == "Pending"
        ((told, message),) = await world.events("c")
        assert (told, lacks in message) == (reason, True), message


async def test_a_provisioner_is_asked_and_a_late_class_waits_for_a_node() -> None:
    async with controller_world(BINDER) as world:
        late = storage_class("late", volumeBindingMode="WaitForFirstConsumer")
        await world.create(storage_class("now"), late, claim("a", kind="now"), claim("b", kind="late"))
        await world.create(volume("v", kind="late"))
        await world.settle()
        asked = await world.get("persistentvolumeclaims", "a")
        assert asked.metadata.annotations[PROVISIONER] == "example.com/disks"
        assert [reason for reason, _ in await world.events("a")] == ["ExternalProvisioning"]
        assert not (await world.get("persistentvolumeclaims", "b")).metadata.annotations
        assert [reason for reason, _ in await world.events("b")] == ["WaitForFirstConsumer"]
        assert await phases(world, "b", "v") == ("Pending", "Available")


async def test_the_default_class_is_given_to_claims_that_were_there_before_it() -> None:
    async with controller_world(BINDER) as world:
        await world.create(claim("c", kind=None), claim("none", kind=""))
        default = storage_class("now")
        default["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
        await world.create(default)
        await world.settle()
        assert (await world.get("persistentvolumeclaims", "c")).spec.storage_class_name == "now"
        assert (await world.get("persistentvolumeclaims", "none")).spec.storage_class_name == ""


async def test_a_volume_whose_claim_has_another_one_is_free_again() -> None:
    async with controller_world(BINDER) as world:
        await world.create(volume("v"), claim("c"))
        await world.settle()
        uid = (await world.get("persistentvolumeclaims", "c")).metadata.uid
        reference = {"namespace": "default", "name": "c", "uid": uid}
        surplus = volume("surplus", claimRef=reference)
        surplus["metadata"]["annotations"] = {OURS: "yes"}
        await world.create(surplus, volume("prepared", claimRef=reference))
        await world.settle()
        assert (await world.get("persistentvolumes", "surplus")).spec.claim_ref is None
        prepared = await world.get("persistentvolumes", "prepared")
        assert (prepared.spec.claim_ref.name, prepared.spec.claim_ref.uid) == ("c", "")
        assert await phases(world, "c", "surplus") == ("Bound", "Available")


async def test_what_is_used_waits_to_be_deleted() -> None:
    async with controller_world(BINDER, *PROTECTION) as world:
        await world.create(volume("v"), claim("c"))
        mounted = [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]
        await world.create(pod("p", nodeName="n", volumes=mounted), pod("unplaced", volumes=mounted))
        await world.settle()
        await world.delete("persistentvolumeclaims", "c")
        await world.delete("persistentvolumes", "v")
        await world.settle()
        assert (await world.get("persistentvolumeclaims", "c")).metadata.deletion_timestamp is not None
        await world.delete("pods", "p", grace_period_seconds=0)
        await world.settle()
        assert await world.get("persistentvolumeclaims", "c") is None, "a pod without a node uses nothing"
        assert await world.get("persistentvolumes", "v") is None


async def test_a_pod_gets_the_claims_of_its_own_volumes() -> None:
    names = ("ephemeral-volume-controller", "garbage-collector-controller", PROTECTION[0])
    async with controller_world(*names) as world:
        spec = claim("")["spec"]
        template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
        mine = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]
        await world.create(claim("taken-scratch"), pod("p", volumes=mine, nodeName="n"), pod("taken", volumes=mine))
        await world.settle()
        found = await world.get("persistentvolumeclaims", "p-scratch")
        assert (found.metadata.labels, found.spec.storage_class_name) == ({"a": "b"}, "slow")
        (owner,) = found.metadata.owner_references
        assert (owner.kind, owner.name, owner.controller) == ("Pod", "p", True)
        assert "(pod is not owner)" in (await world.events("taken"))[0][1]
        await world.delete("persistentvolumeclaims", "taken-scratch")
        await world.settle()
        assert (await world.get("persistentvolumeclaims", "taken-scratch")).metadata.owner_references
        await world.delete("pods", "p", grace_period_seconds=0, propagation_policy="Foreground")
        await world.settle(5)
        assert await world.get("persistentvolumeclaims", "p-scratch") is None
        assert await world.get("pods", "p") is None
