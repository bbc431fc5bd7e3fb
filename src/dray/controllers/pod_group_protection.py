"""A PodGroup that is deleted stays until none of its pods is left: they would not know what they belong to."""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from dray.api.generated.core import Pod
from dray.api.generated.scheduling import PodGroup
from dray.api.kinds import POD_GROUPS, PODS
from dray.api.pod_groups import FINALIZER, group_of
from dray.api.pods import is_finished
from dray.api.references import ObjectName
from dray.controllers.context import Context
from dray.controllers.queue_controller import QueueController

BY_GROUP = "protected-pod-group"


def _groups_in_use(pod: Pod) -> list[ObjectName]:
    name = group_of(pod)
    return [] if name is None or is_finished(pod) else [name]


class PodGroupProtectionController(QueueController[ObjectName]):
    """Takes the finalizer off groups that are being deleted when their last pod is gone or finished."""

    name: ClassVar[str] = "podgroup-protection-controller"

    def __init__(self, context: Context) -> None:
        self._groups = context.informers.of(POD_GROUPS, PodGroup)
        self._pods = context.informers.of(PODS, Pod)
        super().__init__(context, self._groups, self._pods)
        self._pods.add_index(BY_GROUP, _groups_in_use)
        self._groups.on_change(self._on_group)
        self._pods.on_change(self._on_pod)

    def _on_group(self, _old: PodGroup | None, new: PodGroup | None) -> None:
        if new is not None and _is_leaving(new):
            self.queue.add(ObjectName.of(new))

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        for name in _groups_in_use(old) if old is not None else ():
            if new is None or is_finished(new) or new.metadata.uid != (old.metadata.uid if old is not None else ""):
                self.queue.add(name)

    async def reconcile(self, key: ObjectName) -> None:
        """Lets a group go."""
        group = self._groups.get(*key)
        if group is None or not _is_leaving(group) or self._pods.by_index(BY_GROUP, key):
            return
        left = tuple(name for name in group.metadata.finalizers if name != FINALIZER)
        await self._client.update(replace(group, metadata=replace(group.metadata, finalizers=left)))


def _is_leaving(group: PodGroup) -> bool:
    return group.metadata.deletion_timestamp is not None and FINALIZER in group.metadata.finalizers
