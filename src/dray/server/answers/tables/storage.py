"""Columns for storage: volumes, classes, drivers and what they have attached."""

from __future__ import annotations

from typing import Any

from dray.server.answers.tables.columns import AGE, NAME, NONE, UNSET, Column, text
from dray.server.answers.tables.services import access_modes


def _claim(volume: Any) -> str:
    claim = volume.spec.claim_ref
    return "" if claim is None else f"{claim.namespace}/{claim.name}"


def _phase(volume: Any) -> str:
    return "Terminating" if volume.metadata.deletion_timestamp is not None else str(volume.status.phase)


def _audiences(driver: Any) -> str:
    return ",".join(each.audience for each in driver.spec.token_requests) or UNSET


def _truth(value: bool | None, default: bool = False) -> str:
    return str(default if value is None else value).lower()


COLUMNS: dict[str, tuple[Column, ...]] = {
    "PersistentVolume": (
        NAME,
        text("Capacity", lambda v: str(v.spec.capacity.get("storage", "0")), description="How large it is."),
        text("Access Modes", lambda v: access_modes(v.spec.access_modes), description="How it can be mounted."),
        text(
            "Reclaim Policy", lambda v: v.spec.persistent_volume_reclaim_policy, description="What is done after use."
        ),
        text("Status", _phase, description="Whether it is bound."),
        text("Claim", _claim, description="The claim that it is bound to."),
        text("StorageClass", lambda v: v.spec.storage_class_name, description="The class that it is of."),
        text(
            "VolumeAttributesClass", lambda v: v.spec.volume_attributes_class_name or UNSET, description="A class, too."
        ),
        text("Reason", lambda v: v.status.reason, description="Why it is in this state."),
        AGE,
        text("VolumeMode", lambda v: v.spec.volume_mode or UNSET, wide=True, description="A file system or a block."),
    ),
    "StorageClass": (
        NAME,
        text("Provisioner", lambda c: c.provisioner, description="Who makes volumes."),
        text("ReclaimPolicy", lambda c: c.reclaim_policy or "Delete", description="What is done with them after use."),
        text("VolumeBindingMode", lambda c: c.volume_binding_mode or UNSET, description="When claims are bound."),
        text("AllowVolumeExpansion", lambda c: _truth(c.allow_volume_expansion), description="Whether they can grow."),
        AGE,
    ),
    "VolumeAttributesClass": (
        NAME,
        text("DriverName", lambda c: c.driver_name, description="Whose volumes it is for."),
        AGE,
    ),
    "CSINode": (NAME, text("Drivers", lambda n: len(n.spec.drivers), description="Drivers on the node."), AGE),
    "CSIDriver": (
        NAME,
        text("AttachRequired", lambda d: _truth(d.spec.attach_required, True), description="Whether it attaches."),
        text("PodInfoOnMount", lambda d: _truth(d.spec.pod_info_on_mount), description="Whether it is told of pods."),
        text(
            "StorageCapacity", lambda d: _truth(d.spec.storage_capacity), description="Whether it tells what is left."
        ),
        text("TokenRequests", _audiences, description="Tokens that it gets, by audience."),
        text("RequiresRepublish", lambda d: _truth(d.spec.requires_republish), description="Whether it mounts again."),
        text("Modes", lambda d: ",".join(d.spec.volume_lifecycle_modes) or NONE, description="Kinds of volumes."),
        AGE,
    ),
    "CSIStorageCapacity": (
        NAME,
        text("StorageClassName", lambda c: c.storage_class_name, description="The class that it is about."),
        text("Capacity", lambda c: "" if c.capacity is None else str(c.capacity), description="What is left."),
    ),
    "VolumeAttachment": (
        NAME,
        text("Attacher", lambda a: a.spec.attacher, description="The driver."),
        text("PV", lambda a: a.spec.source.persistent_volume_name or "", description="The volume."),
        text("Node", lambda a: a.spec.node_name, description="The node."),
        text("Attached", lambda a: _truth(a.status.attached), description="Whether it is attached."),
        AGE,
    ),
}
