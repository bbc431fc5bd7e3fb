"""Volumes that only pretend: claims for storage get one as soon as a provisioner would have made it.

A claim is bound to a volume that was promised to it or that suits it, else to one that is made for it: at once, or, if
its class binds late, for the node that the scheduler has chosen. Claims of classes without a provisioner, and those
that want no class, get volumes that are there, or none. What was made goes with its claim, unless the class says to
keep it.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dray.api.generated.core import (
    HostPathVolumeSource,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    VolumeNodeAffinity,
)
from dray.api.generated.storage import StorageClass
from dray.api.kinds import STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES
from dray.api.meta import ObjectMeta
from dray.api.node_selector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dray.api.references import ObjectName
from dray.client import Client
from dray.client.calls import delete_exactly
from dray.reconcile import Clock, Controller, Informers
from dray.scheduling.volumes import LATE, NO_PROVISIONER, SELECTED_NODE, Volumes

PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
PROVISIONER: Final = "dray.dev/simulated"
DELETE: Final = "Delete"
HOSTNAME_FIELD: Final = "metadata.name"


class VolumeBinder:
    """Binds claims for storage, as a volume controller and a provisioner together would."""

    def __init__(self, client: Client, clock: Clock, informers: Informers) -> None:
        self._client = client
        self._informers = informers
        self._known = Volumes()
        self._work: Controller[ObjectName] = Controller("simulated-volumes", self._reconcile, clock)

    async def run(self) -> None:
        """Binds until cancelled."""
        self._informers.of(STORAGE_CLASSES, StorageClass).on_change(self._on_class)
        self._informers.of(VOLUMES, PersistentVolume).on_change(self._on_volume)
        self._informers.of(VOLUME_CLAIMS, PersistentVolumeClaim).on_change(self._on_claim)
        await self._work.run()

    def _on_class(self, old: StorageClass | None, new: StorageClass | None) -> None:
        self._known.set_class(old, new)
        self._look_again()

    def _on_volume(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        self._known.set_volume(old, new)
        held = new.spec.claim_ref if new is not None else None
        if held is not None:
            self._work.queue.add(ObjectName(held.namespace or "", held.name or ""))
        elif new is not None:
            self._look_again()

    def _on_claim(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        self._known.set_claim(old, new)
        known = new if new is not None else old
        if known is not None:
            self._work.queue.add(ObjectName.of(known))

    def _look_again(self) -> None:
        for name, claim in self._known.claims.items():
            if claim.status.phase != "Bound":
                self._work.queue.add(name)

    async def _reconcile(self, name: ObjectName) -> float | None:
        claim = self._known.claims.get(name)
        if claim is None:
            await self._clean_up(name)
        elif claim.status.phase != "Bound" and claim.metadata.deletion_timestamp is None:
            volume = await self._find_or_make(claim)
            if volume is not None:
                await self._bind(claim, volume)
        return None

    async def _clean_up(self, name: ObjectName) -> None:
        """The claim is gone: what was made for it goes, too, unless it is to be kept."""
        for volume in list(self._known.volumes.values()):
            held = volume.spec.claim_ref
            if held is None or (held.namespace, held.name) != name:
                continue
            is_ours = volume.metadata.annotations.get(PROVISIONED_BY) == PROVISIONER
            if is_ours and volume.spec.persistent_volume_reclaim_policy == DELETE:
                await delete_exactly(self._client, VOLUMES, volume)
            elif volume.status.phase == "Bound":
                released = replace(volume.status, phase="Released")
                await self._client.update(replace(volume, status=released), subresource="status")

    async def _find_or_make(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        if claim.spec.volume_name:
            return self._known.volumes.get(claim.spec.volume_name)
        kind = self._known.class_of(claim)
        name = kind.metadata.name if kind is not None else claim.spec.storage_class_name or ""
        node = claim.metadata.annotations.get(SELECTED_NODE, "")
        promised = self._known.promised_to(claim)
        if promised is not None:
            return promised
        waits = kind is not None and kind.volume_binding_mode == LATE
        if waits and not node:
            return None
        found = None if waits else self._known.find_volume(claim, name, None)
        if found is not None:
            return found
        if claim.spec.storage_class_name == "" or (kind is not None and kind.provisioner == NO_PROVISIONER):
            return None
        if kind is None and claim.spec.storage_class_name:
            return None  # a class that nobody has made yet
        return await self._client.create(_made_for(claim, kind, node))

    async def _bind(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        held = volume.spec.claim_ref
        if held is None or held.uid != claim.metadata.uid:
            volume = await self._client.update(replace(volume, spec=replace(volume.spec, claim_ref=_reference(claim))))
        if volume.status.phase != "Bound":
            status = replace(volume.status, phase="Bound")
            volume = await self._client.update(replace(volume, status=status), subresource="status")
        if not claim.spec.volume_name:
            spec = replace(claim.spec, volume_name=volume.metadata.name)
            claim = await self._client.update(replace(claim, spec=spec))
        bound = replace(
            claim.status, phase="Bound", access_modes=volume.spec.access_modes, capacity=volume.spec.capacity
        )
        await self._client.update(replace(claim, status=bound), subresource="status")


def _reference(claim: PersistentVolumeClaim) -> ObjectReference:
    meta = claim.metadata
    return ObjectReference(
        api_version="v1", kind="PersistentVolumeClaim", namespace=meta.namespace, name=meta.name, uid=meta.uid
    )


def _made_for(claim: PersistentVolumeClaim, kind: StorageClass | None, node: str) -> PersistentVolume:
    """A volume of just the size that is asked for, on the node if one is chosen."""
    affinity = None
    if node:
        only = NodeSelectorRequirement(key=HOSTNAME_FIELD, operator="In", values=(node,))
        required = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(only,)),))
        affinity = VolumeNodeAffinity(required=required)
    name = f"pvc-{claim.metadata.uid}"
    return PersistentVolume(
        api_version="v1",
        kind="PersistentVolume",
        metadata=ObjectMeta(name=name, annotations={PROVISIONED_BY: PROVISIONER}),
        spec=PersistentVolumeSpec(
            access_modes=claim.spec.access_modes,
            capacity=dict(claim.spec.resources.requests),
            claim_ref=_reference(claim),
            host_path=HostPathVolumeSource(path=f"/var/lib/dray/simulated-volumes/{name}"),
            node_affinity=affinity,
            mount_options=kind.mount_options if kind is not None else (),
            persistent_volume_reclaim_policy=(kind.reclaim_policy if kind is not None else None) or DELETE,
            storage_class_name=kind.metadata.name if kind is not None else "",
            volume_mode=claim.spec.volume_mode,
        ),
        status=PersistentVolumeStatus(phase="Pending"),
    )
