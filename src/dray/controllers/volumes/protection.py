"""Nothing that is used goes: claims of pods that have a node, and bound volumes, wait behind a finalizer."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from msgspec.structs import replace

from dray.api.generated.core import PersistentVolume, PersistentVolumeClaim, Pod
from dray.api.kinds import PODS, VOLUME_CLAIMS, VOLUMES
from dray.api.meta import Object
from dray.api.references import ObjectName
from dray.api.well_known import CLAIM_FINALIZER, VOLUME_FINALIZER
from dray.controllers.context import Context
from dray.controllers.queue_controller import QueueController
from dray.controllers.volumes.plan import BOUND
from dray.controllers.volumes.users import claims_of, is_in_use, is_shut_down, keep_users

T = TypeVar("T", bound=Object)


def guarded(obj: T, finalizer: str, *, in_use: bool) -> T:
    """An object with its finalizer, or without it when it goes and nobody uses it; the same if nothing changes."""
    known = obj.metadata.finalizers
    if obj.metadata.deletion_timestamp is None:
        wanted = known if finalizer in known else (*known, finalizer)
    else:
        wanted = known if in_use else tuple(name for name in known if name != finalizer)
    return obj if wanted == known else replace(obj, metadata=replace(obj.metadata, finalizers=wanted))


class ClaimProtectionController(QueueController[ObjectName]):
    """Looks at claims that change, and at those of pods that go."""

    name: ClassVar[str] = "persistentvolumeclaim-protection-controller"

    def __init__(self, context: Context) -> None:
        self._claims = context.informers.of(VOLUME_CLAIMS, PersistentVolumeClaim)
        self._pods = context.informers.of(PODS, Pod)
        super().__init__(context, self._claims, self._pods)
        keep_users(self._pods)
        self._claims.on_change(self._on_claim)
        self._pods.on_change(self._on_pod)

    def _on_claim(self, _old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        if new is not None:
            self.queue.add(ObjectName.of(new))

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        for pod in (old, new):
            if (
                pod is not None
                and pod.spec.volumes
                and (new is None or is_shut_down(new) or new.metadata.uid != pod.metadata.uid)
            ):
                for name in claims_of(pod):
                    self.queue.add(name)

    async def reconcile(self, key: ObjectName) -> None:
        """Raises ApiError or OSError."""
        claim = self._claims.get(*key)
        if claim is None:
            return
        wanted = guarded(claim, CLAIM_FINALIZER, in_use=is_in_use(claim, self._pods))
        if wanted is not claim:
            await self._client.update(wanted)


class VolumeProtectionController(QueueController[str]):
    """Looks at volumes that change."""

    name: ClassVar[str] = "persistentvolume-protection-controller"

    def __init__(self, context: Context) -> None:
        self._volumes = context.informers.of(VOLUMES, PersistentVolume)
        super().__init__(context, self._volumes)
        self._volumes.on_change(self._on_volume)

    def _on_volume(self, _old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        if new is not None:
            self.queue.add(new.metadata.name)

    async def reconcile(self, key: str) -> None:
        """Raises ApiError or OSError."""
        volume = self._volumes.get("", key)
        if volume is None:
            return
        wanted = guarded(volume, VOLUME_FINALIZER, in_use=volume.status.phase == BOUND)
        if wanted is not volume:
            await self._client.update(wanted)
