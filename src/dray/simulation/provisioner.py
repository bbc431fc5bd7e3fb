"""Volumes that only pretend: claims for storage get one as soon as a provisioner would have made it.

At once, or, if the class binds late, for the node that the scheduler has chosen. Claims of classes without a
provisioner, and those that want no class, get none. What was made goes with its claim, unless the class says to keep
it. Binding is left to whoever does it for all volumes.
"""

from __future__ import annotations

from typing import Final

from dray.api.generated.core import (
    HostPathVolumeSource,
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
from dray.api.references import ObjectName, object_reference
from dray.api.status import ApiError
from dray.api.well_known import PROVISIONED_BY
from dray.client import Client
from dray.client.calls import delete_exactly
from dray.reconcile import Clock, Controller, Informers
from dray.scheduling.volume_binding import Make, fate
from dray.scheduling.volumes import Volumes

PROVISIONER: Final = "dray.dev/simulated"
DELETE: Final = "Delete"
HOSTNAME_FIELD: Final = "metadata.name"


class Provisioner:
    """Makes volumes, and takes them away when they are released. A key is a claim's name, or a volume's."""

    def __init__(self, client: Client, clock: Clock, informers: Informers) -> None:
        self._client = client
        self._known = Volumes()
        self._work: Controller[ObjectName] = Controller("simulated-volumes", self._reconcile, clock)
        claims = informers.of(VOLUME_CLAIMS, PersistentVolumeClaim)
        volumes = informers.of(VOLUMES, PersistentVolume)
        classes = informers.of(STORAGE_CLASSES, StorageClass)
        self._informers = (classes, volumes, claims)
        classes.on_change(self._on_class)
        volumes.on_change(self._on_volume)
        claims.on_change(self._on_claim)

    async def run(self) -> None:
        """Provisions until cancelled."""
        for informer in self._informers:
            await informer.synced()  # else it would make what is there
        await self._work.run()

    def _on_class(self, old: StorageClass | None, new: StorageClass | None) -> None:
        self._known.set_class(old, new)
        for name, claim in self._known.claims.items():
            if new is not None and not claim.spec.volume_name:
                self._work.queue.add(name)

    def _on_volume(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        self._known.set_volume(old, new)
        if new is not None and new.metadata.annotations.get(PROVISIONED_BY) == PROVISIONER:
            self._work.queue.add(ObjectName.of(new))

    def _on_claim(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        self._known.set_claim(old, new)
        if new is not None and not new.spec.volume_name:
            self._work.queue.add(ObjectName.of(new))

    async def _reconcile(self, name: ObjectName) -> float | None:
        if not name.namespace:
            await self._take_away(self._known.volumes.get(name.name))
            return None
        claim = self._known.claims.get(name)
        if claim is None or claim.spec.volume_name or claim.metadata.deletion_timestamp is not None:
            return None
        decided = fate(self._known, claim)
        if isinstance(decided, Make):
            try:
                await self._client.create(_made_for(claim, decided))
            except ApiError as error:
                if error.code != 409:  # it was made, and we have not heard of it yet
                    raise
        return None

    async def _take_away(self, volume: PersistentVolume | None) -> None:
        is_released = volume is not None and volume.status.phase == "Released"
        if volume is not None and is_released and volume.spec.persistent_volume_reclaim_policy == DELETE:
            await delete_exactly(self._client, VOLUMES, volume)


def _made_for(claim: PersistentVolumeClaim, decided: Make) -> PersistentVolume:
    """A volume of just the size that is asked for, on the node if one is chosen."""
    kind, node, meta = decided.kind, decided.node, claim.metadata
    affinity = None
    if node:
        only = NodeSelectorRequirement(key=HOSTNAME_FIELD, operator="In", values=(node,))
        required = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(only,)),))
        affinity = VolumeNodeAffinity(required=required)
    name = f"pvc-{meta.uid}"
    return PersistentVolume(
        api_version="v1",
        kind="PersistentVolume",
        metadata=ObjectMeta(name=name, annotations={PROVISIONED_BY: PROVISIONER}),
        spec=PersistentVolumeSpec(
            access_modes=claim.spec.access_modes,
            capacity=dict(claim.spec.resources.requests),
            claim_ref=object_reference(claim),
            host_path=HostPathVolumeSource(path=f"/var/lib/dray/simulated-volumes/{name}"),
            node_affinity=affinity,
            mount_options=kind.mount_options if kind is not None else (),
            persistent_volume_reclaim_policy=(kind.reclaim_policy if kind is not None else None) or DELETE,
            storage_class_name=kind.metadata.name if kind is not None else "",
            volume_mode=claim.spec.volume_mode,
        ),
        status=PersistentVolumeStatus(phase="Pending"),
    )
