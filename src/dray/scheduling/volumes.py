"""Volumes of pods: which of their claims are bound and to what, and what an unbound one could get on a node.

A claim whose class binds late (WaitForFirstConsumer) waits for the scheduler to choose a node: then a volume that is
there is promised to it, or a provisioner is told for which node to make one. Pure.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Final

import msgspec

from dray.api.generated.core import PersistentVolume, PersistentVolumeClaim, TopologySelectorTerm
from dray.api.generated.storage import StorageClass
from dray.api.labels import LabelSelector, SelectorError
from dray.api.node_match import matches_usable
from dray.api.references import ObjectName
from dray.scheduling.node_info import NodeInfo
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.reasons import (
    PodReason,
    VolumeClaimDeleted,
    VolumeClaimMissing,
    VolumeClaimsUnbound,
    VolumeMissing,
)

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
LATE: Final = "WaitForFirstConsumer"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
STORAGE: Final = "storage"
ONE_POD: Final = "ReadWriteOncePod"
_NOBODY: Final[frozenset[str]] = frozenset()


class PodVolumes(msgspec.Struct, frozen=True):
    """What a pod's volumes are bound to, and the claims of it that wait for a node."""

    bound: tuple[PersistentVolume, ...] = ()
    waiting: tuple[tuple[PersistentVolumeClaim, StorageClass], ...] = ()


class VolumeChoice(msgspec.Struct, frozen=True):
    """What a claim that waits gets on a node: a volume that is there, or one that is still to be made (None)."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume | None = None


class Volumes:
    """Volumes, claims and classes, kept current by events."""

    def __init__(self) -> None:
        self.claims: dict[ObjectName, PersistentVolumeClaim] = {}
        self.volumes: dict[str, PersistentVolume] = {}
        self.classes: dict[str, StorageClass] = {}
        self.are_known = True
        """Whether what is not here is not there either: a dump may leave volumes out."""
        self._promised: dict[str, str] = {}
        self._users: dict[ObjectName, set[str]] = {}
        self._used: dict[str, tuple[ObjectName, ...]] = {}

    def use(self, pod: PodInfo) -> None:
        """A pod is on a node, or about to be."""
        if pod.volume_claims:
            self.release(pod.pod.metadata.uid)
            claims = tuple(ObjectName(pod.pod.metadata.namespace, name) for name in pod.volume_claims)
            self._used[pod.pod.metadata.uid] = claims
            for claim in claims:
                self._users.setdefault(claim, set()).add(pod.pod.metadata.uid)

    def release(self, uid: str) -> None:
        """A pod is no longer on a node."""
        for claim in self._used.pop(uid, ()):
            users = self._users[claim]
            users.discard(uid)
            if not users:
                del self._users[claim]

    def in_use(self, pod: PodInfo) -> bool:
        """Whether another pod that has a node uses a claim which is for one pod at a time."""
        for name in pod.volume_claims:
            key = ObjectName(pod.pod.metadata.namespace, name)
            claim = self.claims.get(key)
            if claim is not None and ONE_POD in claim.spec.access_modes:
                others = self._users.get(key, _NOBODY)
                if len(others) > 1 or (others and pod.pod.metadata.uid not in others):
                    return True
        return False

    def set_claim(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        """A claim came, changed or went."""
        if new is not None:
            self.claims[ObjectName.of(new)] = new
        elif old is not None:
            self.claims.pop(ObjectName.of(old), None)

    def set_volume(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        """A volume came, changed or went."""
        known = self.volumes.get(old.metadata.name) if old is not None else None
        if known is not None and known.spec.claim_ref is not None:
            self._promised.pop(known.spec.claim_ref.uid or "", None)
        if new is not None:
            self.volumes[new.metadata.name] = new
            if new.spec.claim_ref is not None and new.spec.claim_ref.uid:
                self._promised[new.spec.claim_ref.uid] = new.metadata.name
        elif old is not None:
            self.volumes.pop(old.metadata.name, None)

    def promised_to(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        """The volume that names the claim as its own; None if there is none."""
        return self.volumes.get(self._promised.get(claim.metadata.uid, ""))

    def set_class(self, old: StorageClass | None, new: StorageClass | None) -> None:
        """A class came, changed or went."""
        if new is not None:
            self.classes[new.metadata.name] = new
        elif old is not None:
            self.classes.pop(old.metadata.name, None)

    def of(self, pod: PodInfo) -> PodVolumes | PodReason:
        """The volumes of a pod, or why it must wait for them whatever node it gets."""
        bound: list[PersistentVolume] = []
        waiting: list[tuple[PersistentVolumeClaim, StorageClass]] = []
        unbound: list[str] = []
        for name in pod.volume_claims:
            claim = self.claims.get(ObjectName(pod.pod.metadata.namespace, name))
            if claim is None:
                return VolumeClaimMissing(name)
            if claim.metadata.deletion_timestamp is not None:
                return VolumeClaimDeleted(name)
            if claim.spec.volume_name:
                volume = self.volumes.get(claim.spec.volume_name)
                if volume is None:
                    return VolumeMissing(name, claim.spec.volume_name)
                if claim.status.phase == "Bound":
                    bound.append(volume)
                else:
                    unbound.append(name)
                continue
            kind = self.class_of(claim)
            if kind is not None and kind.volume_binding_mode == LATE:
                waiting.append((claim, kind))
            else:
                unbound.append(name)
        if unbound:
            return VolumeClaimsUnbound(tuple(unbound))
        return PodVolumes(tuple(bound), tuple(waiting))

    def class_of(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        """The class of a claim; the default one if it names none. None if there is none such, or it wants none."""
        name = claim.spec.storage_class_name
        if name is not None:
            return self.classes.get(name)
        defaults = (one for one in self.classes.values() if one.metadata.annotations.get(DEFAULT_CLASS) == "true")
        return next(defaults, None)

    def choose(self, volumes: PodVolumes, node: NodeInfo) -> tuple[VolumeChoice, ...] | None:
        """What each claim that waits gets on a node; None if one gets nothing there."""
        taken: set[str] = set()
        found: list[VolumeChoice] = []
        for claim, kind in volumes.waiting:
            volume = self.find_volume(claim, kind.metadata.name, node, taken)
            if volume is not None:
                taken.add(volume.metadata.name)
            elif not _can_be_made(claim, kind, node):
                return None
            found.append(VolumeChoice(claim, volume))
        return tuple(found)

    def find_volume(
        self, claim: PersistentVolumeClaim, kind: str, node: NodeInfo | None, taken: Iterable[str] = ()
    ) -> PersistentVolume | None:
        """The smallest volume of a class that suits a claim, on a node if one is given; None if there is none."""
        suitable = [
            volume
            for volume in self.volumes.values()
            if volume.metadata.name not in taken
            and _suits(volume, claim, kind)
            and (node is None or is_within_reach(volume, node))
        ]
        return min(suitable, key=_preference, default=None)


def is_within_reach(volume: PersistentVolume, node: NodeInfo) -> bool:
    """Whether a volume can be used on a node. A term that cannot be read matches no node."""
    required = volume.spec.node_affinity.required if volume.spec.node_affinity is not None else None
    return required is None or matches_usable(required, node.name, node.node.metadata.labels)


def is_meant_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume names a claim as its own; by name alone if somebody prepared it before there was the claim."""
    holder = volume.spec.claim_ref
    if holder is None or (holder.namespace, holder.name) != (claim.metadata.namespace, claim.metadata.name):
        return False
    return holder.uid in (None, "", claim.metadata.uid)


class Misfit(enum.Enum):
    """What a volume lacks that a claim asks for."""

    SIZE = enum.auto()
    CLASS = enum.auto()
    MODE = enum.auto()
    ACCESS = enum.auto()


def misfit(volume: PersistentVolume, claim: PersistentVolumeClaim, kind: str) -> Misfit | None:
    """Why a volume cannot be what a claim of a class asks for; None if it can."""
    spec, wanted = volume.spec, claim.spec
    asked = wanted.resources.requests.get(STORAGE)
    if asked is not None and asked.nanos > _size(volume):
        return Misfit.SIZE
    if spec.storage_class_name != kind:
        return Misfit.CLASS
    if (spec.volume_mode or "Filesystem") != (wanted.volume_mode or "Filesystem"):
        return Misfit.MODE
    return None if set(wanted.access_modes) <= set(spec.access_modes) else Misfit.ACCESS


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim, kind: str) -> bool:
    if volume.metadata.deletion_timestamp is not None:
        return False
    lacks = misfit(volume, claim, kind)
    if volume.spec.claim_ref is not None:
        return is_meant_for(volume, claim) and lacks not in (Misfit.SIZE, Misfit.MODE)
    selector = claim.spec.selector
    try:
        is_selected = selector is None or LabelSelector.of(selector).matches(volume.metadata.labels)
    except SelectorError:
        return False
    return is_selected and lacks is None and volume.status.phase in ("", "Available")


def _preference(volume: PersistentVolume) -> tuple[bool, int, str]:
    """One that was prepared for the claim comes first, then the smallest."""
    return volume.spec.claim_ref is None, _size(volume), volume.metadata.name


def _size(volume: PersistentVolume) -> int:
    capacity = volume.spec.capacity.get(STORAGE)
    return capacity.nanos if capacity is not None else 0


def _can_be_made(claim: PersistentVolumeClaim, kind: StorageClass, node: NodeInfo) -> bool:
    selected = claim.metadata.annotations.get(SELECTED_NODE)
    if kind.provisioner == NO_PROVISIONER or (selected and selected != node.name):
        return False
    labels = node.node.metadata.labels
    return not kind.allowed_topologies or any(_allows(term, labels) for term in kind.allowed_topologies)


def _allows(term: TopologySelectorTerm, labels: dict[str, str]) -> bool:
    return all(labels.get(one.key) in one.values for one in term.match_label_expressions)
