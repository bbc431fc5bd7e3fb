"""Keeps the EndpointSlices of Services with a selector."""

from __future__ import annotations

from typing import ClassVar

from dray.api.generated.core import Pod, Service
from dray.api.generated.discovery import EndpointSlice
from dray.api.kinds import ENDPOINT_SLICES
from dray.api.references import ObjectName
from dray.api.status import ApiError
from dray.api.well_known import SERVICE_NAME
from dray.client.calls import delete_exactly
from dray.controllers.context import Context
from dray.controllers.endpoints.members import MembersController, beside
from dray.controllers.endpoints.slices import MANAGED_BY, MANAGER, Plan, plan
from dray.controllers.endpoints.targets import has_selector, targets


class EndpointSliceController(MembersController):
    """Writes what is missing in the slices of a Service; slices of others are left alone."""

    name: ClassVar[str] = "endpointslice-controller"

    def __init__(self, context: Context) -> None:
        slices = context.informers.of(ENDPOINT_SLICES, EndpointSlice)
        super().__init__(context, slices)
        slices.on_change(self._on_slice)

    def _on_slice(self, old: EndpointSlice | None, new: EndpointSlice | None) -> None:
        """Somebody may have changed or deleted what is ours, or a slice came late that was made once more since."""
        found = new or old
        if found is not None and found.metadata.labels.get(MANAGED_BY) == MANAGER:
            self.queue.add(ObjectName(found.metadata.namespace, found.metadata.labels.get(SERVICE_NAME, "")))

    async def reconcile(self, key: ObjectName) -> None:
        """Compares with what is stored, not with what has been heard of: news of our own slices may be on the way."""
        service = self._services.get(*key)
        if service is None or not has_selector(service) or service.metadata.deletion_timestamp is not None:
            return  # slices go with their owner, and those of a Service without selector are somebody else's
        mine = f"{MANAGED_BY}={MANAGER},{SERVICE_NAME}={key.name}"
        listed = await self._client.list(ENDPOINT_SLICES, key.namespace, labels=mine)
        present = [each for each in listed.items if isinstance(each, EndpointSlice)]
        pods = await self._pods_of(key)
        wanted = await beside(service, pods, _plan, service, pods, present)
        try:
            for made in wanted.create:
                await self._client.create(made)
        except ApiError as error:
            if error.code not in (403, 404):  # the namespace is going
                raise
        for changed in wanted.update:
            await self._client.update(changed)
        for surplus in wanted.delete:
            await delete_exactly(self._client, ENDPOINT_SLICES, surplus)


def _plan(service: Service, pods: list[Pod], present: list[EndpointSlice]) -> Plan:
    return plan(service, targets(service, pods), present)
