"""Keeps the status of quotas exact: what is used follows the objects that exist (4381-149).

Admission adds to a quota in the transaction that creates an object. So a quota is read first, then the objects, and
the status is written for that version of the quota: if anything was created meanwhile, it is counted again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from msgspec.structs import replace

from dray.api.generated.core import PersistentVolumeClaim, Pod, ResourceQuota, ResourceQuotaStatus, Service
from dray.api.kinds import CLASSES, QUOTAS
from dray.api.meta import Object
from dray.api.pods import is_finished
from dray.api.references import ObjectName
from dray.api.registry import Kind
from dray.api.resource import DeviceClass
from dray.client.calls import list_if_served
from dray.controllers.context import Context
from dray.controllers.custom_kinds import CustomKinds
from dray.controllers.queue_controller import QueueController
from dray.reconcile.effort import beside_loop
from dray.validation import quota_usage
from dray.validation.pod_resources import ZERO
from dray.validation.quota_devices import Listed, may_count_claims
from dray.validation.quota_scopes import is_in_scope
from dray.validation.quota_usage import COUNT, usage

GATHER_SECONDS = 0.1
"""How long deletions gather before they are counted together."""
RECOUNT_SECONDS = 30.0
"""How long what others write about use gathers: mostly it is what admission adds, which is counted already."""
BY_COUNTED = "counted"
EACH = 20
"""To count what a pod uses takes as long as other plans take for so many objects."""


def plan(
    quota: ResourceQuota, objects: Sequence[tuple[Kind, Object]], classes: Iterable[Object] = ()
) -> ResourceQuotaStatus:
    """The status that a quota should have, given all objects that it may count, and the device classes."""
    used = dict.fromkeys(quota.spec.hard, ZERO)
    listed = Listed((*(obj for _, obj in objects), *classes)) if counts_devices(quota) else None
    for kind, obj in objects:
        if is_in_scope(quota.spec, obj):
            for name, amount in usage(kind.resource, obj, listed).items():
                if name in used:
                    used[name] = used[name] + amount
    return ResourceQuotaStatus(hard=quota.spec.hard, used=used)


def counted_kinds(quota: ResourceQuota) -> list[Kind]:
    """The kinds whose objects a quota counts, each once."""
    return list(dict.fromkeys(kind for name in quota.spec.hard for kind in quota_usage.counted_kinds(name)))


def counts_devices(quota: ResourceQuota) -> bool:
    """Whether claims may use up what pods use up: it depends on the device classes."""
    return any(map(may_count_claims, quota.spec.hard))


class ResourceQuotaController(QueueController[ObjectName]):
    """Counts again when objects go, when pods finish, and when quotas change."""

    name: ClassVar[str] = "resourcequota-controller"

    def __init__(self, context: Context) -> None:
        self._quotas = context.informers.of(QUOTAS, ResourceQuota)
        super().__init__(context, self._quotas)
        self._followed: set[Kind] = set()
        self._counted_last: dict[ObjectName, ResourceQuotaStatus] = {}
        self._custom = CustomKinds(context.informers, added=self._on_kind, removed=self._forget)
        self._quotas.add_index(BY_COUNTED, _counted)
        self._quotas.on_change(self._on_quota)
        context.informers.of(CLASSES, DeviceClass).on_change(self._on_class)

    def _on_class(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        """Devices count under the name that their class has for them."""
        if _resource(old) != _resource(new):
            for quota in self._quotas:
                if counts_devices(quota):
                    self.queue.add_after(ObjectName.of(quota), GATHER_SECONDS)

    def _on_quota(self, old: ResourceQuota | None, new: ResourceQuota | None) -> None:
        """A status that says something else than was counted last is looked at again, whoever wrote it.

        Admission adds to it all the time; a write of ours whose answer was lost may come later than there is any news.
        """
        if new is None:
            if old is not None:
                self._counted_last.pop(ObjectName.of(old), None)
            return
        if old is not None and new.status.hard != old.status.hard:
            # Admission adds from now on; what was made before, while this was being counted, nobody has added.
            self.queue.add(ObjectName.of(new))
        if old is None or new.spec != old.spec or new.status.hard != new.spec.hard:
            for kind in self._counted(new):
                self._follow(kind)
            self.queue.add(ObjectName.of(new))
        elif new.status != self._counted_last.get(ObjectName.of(new)):
            self.queue.add_after(ObjectName.of(new), RECOUNT_SECONDS)

    def _counted(self, quota: ResourceQuota) -> list[Kind]:
        """The kinds whose objects a quota counts, those of others among them."""
        names = [name.removeprefix(COUNT) for name in quota.spec.hard if name.startswith(COUNT)]
        return counted_kinds(quota) + [kind for name in names if (kind := self._custom.by_resource(name)) is not None]

    def _on_kind(self, kind: Kind) -> None:
        """A quota may have waited for a kind."""
        for quota in self._quotas:
            if f"{COUNT}{kind.resource}" in quota.spec.hard:
                self._follow(kind)
                self.queue.add(ObjectName.of(quota))

    def _forget(self, kind: Kind) -> None:
        if kind in self._followed:
            self._followed.remove(kind)
            self._context.informers.forget(kind)

    def _follow(self, kind: Kind) -> None:
        if kind not in self._followed:
            self._followed.add(kind)
            self._context.informers.of(kind, Object).on_change(self._handler(kind))

    def _handler(self, kind: Kind) -> Any:
        return lambda old, new: self._on_object(kind, old, new)

    def _on_object(self, kind: Kind, old: Object | None, new: Object | None) -> None:
        if old is None or (new is not None and not _uses_less(old, new)):
            return
        for quota in self._quotas.by_index(BY_COUNTED, (old.metadata.namespace, kind.resource)):
            self.queue.add_after(ObjectName.of(quota), GATHER_SECONDS)

    async def reconcile(self, key: ObjectName) -> None:
        """Counts for one quota."""
        quota = await self._read(key)
        if quota is None:
            return
        objects = [(kind, obj) for kind in self._counted(quota) for obj in await self._list(kind, key.namespace)]
        classes = await self._list(CLASSES, "") if counts_devices(quota) else ()
        status = self._counted_last[key] = await beside_loop(EACH * len(objects), plan, quota, objects, classes)
        if status != quota.status:
            await self._client.update(replace(quota, status=status), subresource="status")

    async def _read(self, place: ObjectName) -> ResourceQuota | None:
        """The quota as it is stored now; the informer's may be older than objects that were charged to it."""
        found = await self._list(QUOTAS, place.namespace)
        return next((one for one in found if isinstance(one, ResourceQuota) and ObjectName.of(one) == place), None)

    async def _list(self, kind: Kind, namespace: str) -> tuple[Object, ...]:
        return await list_if_served(self._client, kind, namespace) or ()


def _uses_less(old: Object, new: Object) -> bool:
    """Whether an object that stays may have given something back."""
    if isinstance(old, Pod) and isinstance(new, Pod):
        if is_finished(new) and not is_finished(old):
            return True
        was, now = old.spec, new.spec
        return was.containers != now.containers or was.active_deadline_seconds != now.active_deadline_seconds
    if isinstance(old, PersistentVolumeClaim) and isinstance(new, PersistentVolumeClaim):
        return old.spec != new.spec or old.status.modify_volume_status != new.status.modify_volume_status
    return isinstance(old, Service) and isinstance(new, Service) and old.spec != new.spec


def _resource(device_class: DeviceClass | None) -> str | None:
    return device_class.spec.extended_resource_name if device_class is not None else None


def _counted(quota: ResourceQuota) -> list[tuple[str, str]]:
    """Namespace and resource of what a quota counts, whether or not there is such a kind."""
    resources = [kind.resource for kind in counted_kinds(quota)]
    resources += [name.removeprefix(COUNT) for name in quota.spec.hard if name.startswith(COUNT)]
    return [(quota.metadata.namespace, resource) for resource in dict.fromkeys(resources)]
