"""Binds claims for storage to volumes that are there. Making volumes is the part of a provisioner, told by annotation.

A key is the name of a claim, or that of a volume, which has no namespace.
"""

from __future__ import annotations

from typing import ClassVar, Final

from msgspec.structs import replace

from dray.api.generated.core import PersistentVolume, PersistentVolumeClaim
from dray.api.generated.storage import StorageClass
from dray.api.kinds import STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES
from dray.api.references import ObjectName
from dray.client.calls import find
from dray.controllers.context import Context
from dray.controllers.queue_controller import QueueController
from dray.controllers.volumes import plan, words
from dray.process.clock import as_time
from dray.scheduling.volume_binding import Bind, Make, fate
from dray.scheduling.volumes import Volumes

PATIENCE_SECONDS: Final = 5.0
"""How long a claim without a class waits before people are told that nobody makes a volume for it."""


class VolumeBinder(QueueController[ObjectName]):
    """Looks at claims and volumes that changed, and at claims that wait when a volume or a class comes."""

    name: ClassVar[str] = "persistentvolume-binder-controller"

    def __init__(self, context: Context) -> None:
        classes = context.informers.of(STORAGE_CLASSES, StorageClass)
        volumes = context.informers.of(VOLUMES, PersistentVolume)
        claims = context.informers.of(VOLUME_CLAIMS, PersistentVolumeClaim)
        super().__init__(context, classes, volumes, claims)
        self._known = Volumes()
        self._events = context.recorder("persistentvolume-controller")
        classes.on_change(self._on_class)
        volumes.on_change(self._on_volume)
        claims.on_change(self._on_claim)

    def _on_class(self, old: StorageClass | None, new: StorageClass | None) -> None:
        self._known.set_class(old, new)
        if new is not None:
            self._look_again()

    def _on_volume(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        self._known.set_volume(old, new)
        for each in (old, new):
            held = each.spec.claim_ref if each is not None else None
            if held is not None:
                self.queue.add(ObjectName(held.namespace or "", held.name or ""))
        if new is not None:
            self.queue.add(ObjectName.of(new))
            if new.spec.claim_ref is None and new.status.phase == plan.AVAILABLE:
                self._look_again()

    def _on_claim(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        self._known.set_claim(old, new)
        known = new if new is not None else old
        if known is None:
            return
        self.queue.add(ObjectName.of(known))
        held = self._known.promised_to(known)
        if held is not None:
            self.queue.add(ObjectName.of(held))

    def _look_again(self) -> None:
        for name, claim in self._known.claims.items():
            if not plan.was_bound(claim):
                self.queue.add(name)

    async def reconcile(self, key: ObjectName) -> float | None:
        """Raises ApiError or OSError."""
        if not key.namespace:
            volume = self._known.volumes.get(key.name)
            if volume is not None:
                await self._settle_volume(volume)
            return None
        claim = self._known.claims.get(key)
        if claim is None or claim.metadata.deletion_timestamp is not None:
            return None
        return await (self._check_bound(claim) if plan.was_bound(claim) else self._find_volume(claim))

    async def _find_volume(self, claim: PersistentVolumeClaim) -> float | None:
        decided = fate(self._known, claim)
        if isinstance(decided, Bind):
            await self._bind(decided.volume, claim)
            return None
        if isinstance(decided, Make):
            if decided.kind is None:
                made = claim.metadata.creation_timestamp
                left = PATIENCE_SECONDS - (self._clock.now() - made.datetime().timestamp() if made is not None else 0)
                if left > 0:
                    return left
            else:
                asked = plan.asking(claim, decided.kind)
                if asked is not claim:
                    await self._client.update(asked)
                    return None
        told = words.why_unbound(claim, decided)
        if told is not None:
            await self._events.record(claim, *told)
        return None

    async def _bind(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        """The volume first: nobody else takes it then. Who is interrupted goes on where it was."""
        held = plan.held_by(volume, claim)
        if held is not volume:
            volume = await self._client.update(held)
        await self._set_phase(volume, plan.BOUND)
        tied = plan.tied_to(claim, volume)
        if tied is not claim:
            claim = await self._client.update(tied)
        status = plan.bound_status(claim, volume)
        if status != claim.status:
            await self._client.update(replace(claim, status=status), subresource="status")

    async def _check_bound(self, claim: PersistentVolumeClaim) -> None:
        """A claim that was bound stays so, unless its volume is gone or another's."""
        volume = self._known.volumes.get(claim.spec.volume_name or "")
        loss = plan.loss(claim, volume)
        if loss is None and volume is not None:
            await self._bind(volume, claim)
        elif loss is not None and claim.status.phase != plan.LOST:
            lost = replace(claim.status, phase=plan.LOST, access_modes=(), capacity={})
            await self._client.update(replace(claim, status=lost), subresource="status")
            await self._events.record(claim, *words.LOSSES[loss])

    async def _settle_volume(self, volume: PersistentVolume) -> None:
        held = volume.spec.claim_ref
        if held is None or not held.uid:
            await self._set_phase(volume, plan.AVAILABLE)
            return
        claim = self._known.claims.get(ObjectName(held.namespace or "", held.name or ""))
        if claim is None or claim.metadata.uid != held.uid:
            # A volume may be heard of before its claim.
            claim = await find(
                self._client, VOLUME_CLAIMS, held.namespace or "", held.name or "", PersistentVolumeClaim
            )
        if claim is None or claim.metadata.uid != held.uid:
            await self._set_phase(volume, plan.RELEASED)
        elif claim.spec.volume_name == volume.metadata.name:
            await self._set_phase(volume, plan.BOUND)
        elif claim.spec.volume_name:
            if plan.is_made(volume):
                await self._set_phase(volume, plan.RELEASED)
            else:
                await self._set_phase(await self._client.update(plan.let_go(volume)), plan.AVAILABLE)

    async def _set_phase(self, volume: PersistentVolume, phase: str) -> None:
        before = volume.status
        if before.phase == phase or (phase == plan.RELEASED and before.phase == plan.FAILED):
            return
        now = as_time(self._clock.now())
        status = replace(before, phase=phase, message="", reason="", last_phase_transition_time=now)
        await self._client.update(replace(volume, status=status), subresource="status")
