"""Answers requests when they appear, those about incomplete pools when these are complete, and removes old ones."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice
from typing import Any, ClassVar

from msgspec.structs import replace

from dray.api.kinds import CLAIMS, CLASSES, PATCHES, POOL_STATUS_REQUESTS, RULES, SLICES
from dray.api.resource import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourcePoolStatusRequest,
    ResourceSlice,
    ResourceSlicePatch,
)
from dray.api.resource.taint import EFFECT_NONE
from dray.client import Informer
from dray.client.calls import delete_exactly, find
from dray.controllers.context import Context
from dray.controllers.queue_controller import QueueController
from dray.controllers.resource_pool_status.plan import Known, Place, answer, concerns, goes_at
from dray.process.clock import as_time
from dray.tracker import Tracker, Upsert

SLICES_AT_ONCE = 5
"""How many slices are looked at in one turn of the loop."""


class ResourcePoolStatusController(QueueController[str]):
    """Looks at a request when it is made, and again when its time is over."""

    name: ClassVar[str] = "resourcepoolstatusrequest-controller"

    def __init__(self, context: Context) -> None:
        informers = context.informers
        self._requests = informers.of(POOL_STATUS_REQUESTS, ResourcePoolStatusRequest)
        self._slices = informers.of(SLICES, ResourceSlice)
        self._claims = informers.of(CLAIMS, ResourceClaim)
        self._taints: Sequence[Informer[Any]] = (
            informers.of(CLASSES, DeviceClass),
            informers.of(RULES, DeviceTaintRule),
            informers.of(PATCHES, ResourceSlicePatch),
        )
        super().__init__(context, self._requests, self._slices, self._claims, *self._taints, workers=1)
        self._waiting: dict[str, ResourcePoolStatusRequest] = {}
        """Requests about pools that are not complete."""
        self._requests.on_change(self._on_request)
        self._slices.on_change(self._on_slice)

    def _on_request(self, old: ResourcePoolStatusRequest | None, new: ResourcePoolStatusRequest | None) -> None:
        if new is not None:
            self.queue.add(new.metadata.name)
        elif old is not None:
            self._waiting.pop(old.metadata.name, None)

    def _on_slice(self, _old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        for name, request in self._waiting.items():
            if new is None or concerns(request, new):
                self.queue.add(name)

    async def reconcile(self, key: str) -> float | None:
        """Answers a request that has no answer, and deletes it when its time is over."""
        request = await find(self._client, POOL_STATUS_REQUESTS, "", key, ResourcePoolStatusRequest)
        moment = None if request is None else goes_at(request)
        if request is None or moment is None:
            return None
        now = self._clock.now()
        if now >= moment:
            await delete_exactly(self._client, POOL_STATUS_REQUESTS, request)
            return None
        if request.status is None:
            await self._answer(request)
        return moment - now

    async def _answer(self, request: ResourcePoolStatusRequest) -> None:
        slices = [found for found in self._slices if concerns(request, found)]
        known = Known(slices, self._claims, await self._unavailable(slices))
        status = answer(request, known, as_time(self._clock.now()))
        if status is None:
            self._waiting[request.metadata.name] = request
            return
        self._waiting.pop(request.metadata.name, None)
        await self._client.update(replace(request, status=status), "status")

    async def _unavailable(self, slices: list[ResourceSlice]) -> set[Place]:
        """Devices with taints that keep pods away, whoever taints them. The loop is left alone between slices."""
        tracker = Tracker()
        tracker.apply_all(Upsert(obj) for informer in self._taints for obj in informer)
        remaining = iter(slices)
        while some := list(islice(remaining, SLICES_AT_ONCE)):
            tracker.apply_all(Upsert(found) for found in some)
            await asyncio.sleep(0)
        return {
            (device.id.pool, device.id.device)
            for device in tracker.devices()
            if any(taint.effect != EFFECT_NONE for taint in device.taints)
        }
