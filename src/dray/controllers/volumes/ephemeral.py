"""Makes the claims of volumes that live as long as their pod (`ephemeral`); the garbage collector takes them away."""

from __future__ import annotations

from typing import ClassVar

from dray.api.generated.core import PersistentVolumeClaim, Pod, Volume
from dray.api.kinds import PODS, VOLUME_CLAIMS
from dray.api.meta import ObjectMeta
from dray.api.references import ObjectName
from dray.controllers.context import Context
from dray.controllers.pod_templates import reference_to
from dray.controllers.queue_controller import QueueController
from dray.controllers.volumes.users import keep_users, users_of


class EphemeralVolumeController(QueueController[ObjectName]):
    """Looks at pods with such volumes, and again when one of their claims is gone."""

    name: ClassVar[str] = "ephemeral-volume-controller"

    def __init__(self, context: Context) -> None:
        self._pods = context.informers.of(PODS, Pod)
        self._claims = context.informers.of(VOLUME_CLAIMS, PersistentVolumeClaim)
        super().__init__(context, self._pods, self._claims)
        self._events = context.recorder("ephemeral_volume")
        keep_users(self._pods)
        self._pods.on_change(self._on_pod)
        self._claims.on_change(self._on_claim)

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        if new is None or not new.spec.volumes or new.metadata.deletion_timestamp is not None:
            return
        is_news = old is None or old.metadata.uid != new.metadata.uid
        if is_news and any(volume.ephemeral is not None for volume in new.spec.volumes):
            self.queue.add(ObjectName.of(new))

    def _on_claim(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        if new is None and old is not None:
            for pod in users_of(self._pods, ObjectName.of(old)):
                self.queue.add(ObjectName.of(pod))

    async def reconcile(self, key: ObjectName) -> None:
        """Raises ApiError or OSError."""
        pod = self._pods.get(*key)
        if pod is None or pod.metadata.deletion_timestamp is not None:
            return
        for volume in pod.spec.volumes:
            if volume.ephemeral is not None and volume.ephemeral.volume_claim_template is not None:
                await self._make_claim(pod, volume)

    async def _make_claim(self, pod: Pod, volume: Volume) -> None:
        wanted = claim_for(pod, volume)
        found = self._claims.get(wanted.metadata.namespace, wanted.metadata.name)
        if found is None:
            await self._client.create(wanted)
        elif all(owner.uid != pod.metadata.uid for owner in found.metadata.owner_references):
            message = (
                f"PVC {found.metadata.namespace}/{found.metadata.name} was not created for pod "
                f"{pod.metadata.namespace}/{pod.metadata.name} (pod is not owner)"
            )
            await self._events.warning(pod, "FailedBinding", message)


def claim_for(pod: Pod, volume: Volume) -> PersistentVolumeClaim:
    """The claim of a volume that is the pod's own. Pure."""
    assert volume.ephemeral is not None
    assert volume.ephemeral.volume_claim_template is not None
    template = volume.ephemeral.volume_claim_template
    meta = ObjectMeta(
        name=f"{pod.metadata.name}-{volume.name}",
        namespace=pod.metadata.namespace,
        labels=template.metadata.labels,
        annotations=template.metadata.annotations,
        owner_references=(reference_to(pod),),
    )
    return PersistentVolumeClaim(kind="PersistentVolumeClaim", api_version="v1", metadata=meta, spec=template.spec)
