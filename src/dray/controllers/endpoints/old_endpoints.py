"""Keeps the Endpoints of Services with a selector, for those who do not read EndpointSlices yet."""

from __future__ import annotations

from typing import ClassVar

from dray.api.generated.core import Endpoints, Pod, Service
from dray.api.kinds import ENDPOINTS
from dray.api.references import ObjectName
from dray.api.status import ApiError
from dray.client.calls import delete_exactly, find
from dray.controllers.context import Context
from dray.controllers.endpoints.members import MembersController, beside
from dray.controllers.endpoints.subsets import MANAGED_BY, MANAGER, wanted_endpoints
from dray.controllers.endpoints.targets import has_selector, targets


class EndpointsController(MembersController):
    """Writes the Endpoints of a Service, and deletes them with it."""

    name: ClassVar[str] = "endpoints-controller"

    def __init__(self, context: Context) -> None:
        endpoints = context.informers.of(ENDPOINTS, Endpoints)
        super().__init__(context, endpoints)
        endpoints.on_change(self._on_endpoints)

    def _on_endpoints(self, old: Endpoints | None, new: Endpoints | None) -> None:
        """Somebody may have changed or deleted what is ours."""
        found = new or old
        if found is not None and found.metadata.labels.get(MANAGED_BY) == MANAGER:
            self.queue.add(ObjectName.of(found))

    async def reconcile(self, key: ObjectName) -> None:
        """Brings the Endpoints of a Service, by its name, up to date."""
        service = self._services.get(*key)
        if service is not None and not has_selector(service):
            return  # whoever has no selector says where its pods are
        old = await find(self._client, ENDPOINTS, *key, Endpoints)
        if service is None:
            if old is not None and old.metadata.labels.get(MANAGED_BY) == MANAGER:
                await delete_exactly(self._client, ENDPOINTS, old)
            return
        pods = await self._pods_of(key)
        new = await beside(service, pods, _wanted, service, pods, old)
        try:
            if old is None:
                await self._client.create(new)
            elif new != old:
                await self._client.update(new)
        except ApiError as error:
            if error.code not in (403, 404):  # the namespace is going
                raise


def _wanted(service: Service, pods: list[Pod], old: Endpoints | None) -> Endpoints:
    return wanted_endpoints(service, targets(service, pods), old)
