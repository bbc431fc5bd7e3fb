"""Telling that evictions are held which a driver's taints ask for: on a slice, because drivers' taints have no rule."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from dray.api.resource import ResourceSlice
from dray.api.resource.pool import PoolKey, pool_of
from dray.client import Informer
from dray.eviction.causes import Cause
from dray.eviction.confirmations import CONFIRM_ANNOTATION, place_to_confirm
from dray.eviction.guard import Hold
from dray.eviction.rule_condition import EVICTION_HELD
from dray.reconcile import EventRecorder

BY_POOL: Final = "pool"


class HeldPools:
    """Tells of each hold once, on the first slice of the pool."""

    def __init__(self, recorder: EventRecorder, slices: Informer[ResourceSlice]) -> None:
        self._recorder = recorder
        self._slices = slices
        self._told: set[tuple[PoolKey, str]] = set()
        self._held: dict[tuple[PoolKey, str], Hold] = {}
        self._news = asyncio.Event()
        slices.add_index(BY_POOL, _pool)

    def note(self, held: Mapping[PoolKey, tuple[Cause, Hold]]) -> None:
        """This is held now. `run` tells of it: planning does not wait for what may be thousands of writes."""
        self._held = {(pool, cause.key): hold for pool, (cause, hold) in held.items()}
        self._news.set()

    async def run(self) -> None:
        """Tells until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            await self._tell(self._held)

    async def _tell(self, current: Mapping[tuple[PoolKey, str], Hold]) -> None:
        self._told &= current.keys()
        for pool, key in sorted(current.keys() - self._told):
            self._told.add((pool, key))
            slice_ = self._slice_of(pool)
            if slice_ is not None:
                name, generation = slice_.metadata.name, slice_.spec.pool.generation
                command = f"kubectl annotate --overwrite resourceslice {name} {CONFIRM_ANNOTATION}={generation}"
                text = f"taint {key}: {current[pool, key]}. To confirm: {command}"
                await self._recorder.warning(slice_, EVICTION_HELD, text)
            if self._news.is_set():
                break  # what is left may be held no more

    def _slice_of(self, pool: PoolKey) -> ResourceSlice | None:
        found = self._slices.by_index(BY_POOL, pool)
        return place_to_confirm(found) if found else None


def _pool(slice_: ResourceSlice) -> tuple[PoolKey]:
    return (pool_of(slice_),)
