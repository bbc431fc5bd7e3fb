"""What becomes of a claim for storage without a volume: it gets one that is there, one is to be made, or it waits.

Whoever binds claims and whoever makes volumes ask the same function, so that they never both act. Pure.
"""

from __future__ import annotations

import enum
from typing import TypeAlias

import msgspec

from dray.api.generated.core import PersistentVolume, PersistentVolumeClaim
from dray.api.generated.storage import StorageClass
from dray.scheduling.volumes import LATE, NO_PROVISIONER, SELECTED_NODE, Misfit, Volumes, is_meant_for, misfit


class Bind(msgspec.Struct, frozen=True):
    """The claim gets this volume."""

    volume: PersistentVolume


class Make(msgspec.Struct, frozen=True):
    """A provisioner is to make a volume, for a node if one is chosen. Without a class nobody in particular is asked."""

    kind: StorageClass | None = None
    node: str = ""


class Cause(enum.Enum):
    """What a claim waits for."""

    POD = enum.auto()
    """Its class binds late, and no pod that uses it has a node."""
    VOLUME = enum.auto()
    """No volume suits it, and its class makes none."""
    NAMED_VOLUME = enum.auto()
    """The volume that it names is not there."""
    OTHER_CLAIM = enum.auto()
    """The volume that it names belongs to another claim."""
    STORAGE_CLASS = enum.auto()
    """There is no class of that name."""


class Wait(msgspec.Struct, frozen=True):
    """The claim gets nothing now; `misfit` says why the volume that it names is not for it."""

    cause: Cause
    misfit: Misfit | None = None


Fate: TypeAlias = Bind | Make | Wait


def fate(known: Volumes, claim: PersistentVolumeClaim) -> Fate:
    """What is to happen with a claim that is not bound."""
    kind = known.class_of(claim)
    name = kind.metadata.name if kind is not None else claim.spec.storage_class_name or ""
    if claim.spec.volume_name:
        return _named(known, claim, claim.spec.storage_class_name or "")
    promised = known.promised_to(claim)
    if promised is not None:
        return Bind(promised)
    waits = kind is not None and kind.volume_binding_mode == LATE
    found = known.find_volume(claim, name, None)
    if found is not None and (not waits or is_meant_for(found, claim)):
        return Bind(found)
    node = claim.metadata.annotations.get(SELECTED_NODE, "")
    if waits and not node:
        return Wait(Cause.POD)
    if kind is None:
        if claim.spec.storage_class_name is None:
            return Make()
        return Wait(Cause.STORAGE_CLASS if claim.spec.storage_class_name else Cause.VOLUME)
    return Wait(Cause.VOLUME) if kind.provisioner == NO_PROVISIONER else Make(kind, node)


def _named(known: Volumes, claim: PersistentVolumeClaim, kind: str) -> Fate:
    volume = known.volumes.get(claim.spec.volume_name or "")
    if volume is None:
        return Wait(Cause.NAMED_VOLUME)
    if is_meant_for(volume, claim):
        return Bind(volume)
    if volume.spec.claim_ref is not None:
        return Wait(Cause.OTHER_CLAIM)
    lacks = misfit(volume, claim, kind)
    return Bind(volume) if lacks is None else Wait(Cause.NAMED_VOLUME, lacks)
