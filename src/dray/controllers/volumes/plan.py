"""Claims and volumes as they are to be: tied to each other, asked for, let go. Pure."""

from __future__ import annotations

import enum
from typing import Final

from msgspec.structs import replace

from dray.api.generated.core import PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus
from dray.api.generated.storage import StorageClass
from dray.api.references import object_reference
from dray.api.well_known import PROVISIONED_BY

AVAILABLE: Final = "Available"
BOUND: Final = "Bound"
RELEASED: Final = "Released"
FAILED: Final = "Failed"
LOST: Final = "Lost"

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
OLD_PROVISIONER: Final = "volume.beta.kubernetes.io/storage-provisioner"
YES: Final = "yes"


class Loss(enum.Enum):
    """How a claim that was bound lost its volume."""

    REFERENCE = enum.auto()
    VOLUME = enum.auto()
    OTHER_CLAIM = enum.auto()


def was_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether a claim has been bound once; it never gets another volume then."""
    return BIND_COMPLETED in claim.metadata.annotations


def loss(claim: PersistentVolumeClaim, volume: PersistentVolume | None) -> Loss | None:
    """What is wrong between a claim that was bound and the volume that it names; None if nothing is."""
    if not claim.spec.volume_name:
        return Loss.REFERENCE
    if volume is None:
        return Loss.VOLUME
    held = volume.spec.claim_ref
    return None if held is None or held.uid == claim.metadata.uid else Loss.OTHER_CLAIM


def asking(claim: PersistentVolumeClaim, kind: StorageClass) -> PersistentVolumeClaim:
    """A claim that has its class, and says who is to make its volume; the same object if it does."""
    known = claim.metadata.annotations
    spec = claim.spec
    if known.get(PROVISIONER) == kind.provisioner and spec.storage_class_name is not None:
        return claim
    annotations = {**known, OLD_PROVISIONER: kind.provisioner, PROVISIONER: kind.provisioner}
    if spec.storage_class_name is None:
        spec = replace(spec, storage_class_name=kind.metadata.name)
    return replace(claim, spec=spec, metadata=replace(claim.metadata, annotations=annotations))


def held_by(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """A volume that names a claim as its own; the same object if it does. It remembers whether we wrote that."""
    before = volume.spec.claim_ref
    if before is not None and before.uid == claim.metadata.uid:
        return volume
    annotations = volume.metadata.annotations
    if before is None:
        annotations = {**annotations, BOUND_BY_CONTROLLER: YES}
    metadata = replace(volume.metadata, annotations=annotations)
    return replace(volume, metadata=metadata, spec=replace(volume.spec, claim_ref=object_reference(claim)))


def tied_to(claim: PersistentVolumeClaim, volume: PersistentVolume) -> PersistentVolumeClaim:
    """A claim that names its volume and is bound for good; the same object if it is."""
    annotations, spec = claim.metadata.annotations, claim.spec
    if spec.volume_name != volume.metadata.name:
        spec = replace(spec, volume_name=volume.metadata.name)
        annotations = {**annotations, BOUND_BY_CONTROLLER: YES}
    if BIND_COMPLETED not in annotations:
        annotations = {**annotations, BIND_COMPLETED: YES}
    if annotations is claim.metadata.annotations:
        return claim
    return replace(claim, spec=spec, metadata=replace(claim.metadata, annotations=annotations))


def bound_status(claim: PersistentVolumeClaim, volume: PersistentVolume) -> PersistentVolumeClaimStatus:
    """The status of a claim with its volume. How large a bound one is, is told by who made it larger."""
    status = claim.status
    capacity = status.capacity if status.phase == BOUND and status.capacity else volume.spec.capacity
    return replace(
        status,
        phase=BOUND,
        access_modes=volume.spec.access_modes,
        capacity=capacity,
        current_volume_attributes_class_name=volume.spec.volume_attributes_class_name,
    )


def is_made(volume: PersistentVolume) -> bool:
    """Whether a provisioner made the volume for its claim, and takes it away with it."""
    made = PROVISIONED_BY in volume.metadata.annotations
    return made and volume.spec.persistent_volume_reclaim_policy == "Delete"


def let_go(volume: PersistentVolume) -> PersistentVolume:
    """A volume whose claim has another one: free again, or, if somebody prepared it for that claim, still prepared."""
    annotations = dict(volume.metadata.annotations)
    if annotations.pop(BOUND_BY_CONTROLLER, None) is not None:
        reference = None
    else:
        assert volume.spec.claim_ref is not None
        reference = replace(volume.spec.claim_ref, uid="", resource_version="")
    metadata = replace(volume.metadata, annotations=annotations)
    return replace(volume, metadata=metadata, spec=replace(volume.spec, claim_ref=reference))
