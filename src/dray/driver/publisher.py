"""Keeps the slices of a driver in the API server as they should be: after every change of the devices, and after
somebody else (a node that starts, a person) has changed or removed them. Writes nothing when nothing is different.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from dray.api import codec
from dray.api.backoff import Backoff
from dray.api.kinds import NODES, SLICES
from dray.api.meta import DeleteOptions, ObjectMeta, OwnerReference, Preconditions
from dray.api.resource import ResourceSlice, ResourceSliceSpec
from dray.api.status import ApiError
from dray.client import Client, Informer
from dray.driver.pools import Pool, TaintForm, slices_of
from dray.driver.slice_plan import SlicePlan, content, plan
from dray.driver.stored_slices import is_optional, lost_fields, without_times
from dray.process.tasks import run_until_first
from dray.reconcile import Clock

RETRY: Final = Backoff(first=0.1, longest=30.0)
CALM_SECONDS: Final = 120.0
"""After so long without others changing slices, the next time counts as the first."""

log = logging.getLogger(__name__)

Dropped = Callable[[Mapping[str, tuple[str, ...]]], None]
"""Hears of fields that the server did not keep, by slice. What it raises ends the publisher."""


class Superseded(Exception):
    """Another instance of the driver publishes from now on."""


class Publisher:
    """The slices of one driver on one node."""

    def __init__(self, client: Client, clock: Clock, driver: str, node: str, *, dropped: Dropped) -> None:
        self.with_taint_slice = False
        self.may_write: Callable[[], bool] = lambda: True
        """Whether this instance is the one that publishes; an older one beside a newer one is not."""
        self.writes = 0
        self._client = client
        self._clock = clock
        self._base = ResourceSliceSpec(driver=driver, node_name=node)
        self._dropped = dropped
        self._form = TaintForm.SLICE
        self._pools: Mapping[str, Pool] | None = None
        self._held_back = False
        self._wake = asyncio.Event()
        self._interfered = 0
        self._interfered_at = 0.0
        self._generations: dict[str, int] = {}
        self._stored_as: dict[bytes, ResourceSliceSpec] = {}
        fields = f"spec.nodeName={node},spec.driver={driver}"
        self._slices: Informer[ResourceSlice] = Informer(client, SLICES, fields=fields, sleep=clock.sleep)
        self._slices.on_change(lambda _old, _new: self._wake.set())

    def publish(self, pools: Mapping[str, Pool]) -> None:
        """What is to be there from now on."""
        if pools != self._pools:
            self._pools = pools
            self._interfered = 0
            self._wake.set()
        elif self._held_back:
            self._wake.set()  # the newer instance may be gone

    async def run(self) -> None:
        """Publishes until cancelled, through failures of the server. Raises what `dropped` raises."""
        await run_until_first(self._slices.run(), self._keep_published())

    async def _keep_published(self) -> None:
        await self._slices.synced()
        pauses = RETRY.pauses()
        while True:
            await self._wake.wait()
            self._wake.clear()
            known = self._pools
            try:
                wrote = await self._sync()
                pauses.reset()
            except Superseded:
                log.info("a newer instance of the driver publishes from now on")
                self._held_back = True
                continue
            except (ApiError, OSError, TimeoutError) as error:
                pause = pauses.next()
                log.warning("cannot publish devices, trying again in %.1f s: %s", pause, error)
                await self._clock.sleep(pause)
                self._wake.set()
                continue
            if wrote and known is self._pools:
                await self._yield_to_others()

    async def _yield_to_others(self) -> None:
        """Waits longer each time that slices had to be written although the devices were the same.

        Two who disagree about a pool must not make the API server busy.
        """
        now = self._clock.monotonic()
        calm = now - self._interfered_at > CALM_SECONDS
        self._interfered = 1 if calm else self._interfered + 1
        self._interfered_at = now
        if self._interfered > 1:
            await self._clock.sleep(RETRY.after(self._interfered + 1))

    async def _sync(self) -> bool:
        """Writes what differs; whether anything did."""
        self._held_back = not self.may_write()
        if self._pools is None or self._held_back:
            return False
        current: dict[str, list[ResourceSlice]] = {name: [] for name in self._pools}
        for found in self._slices:
            if found.metadata.deletion_timestamp is None:
                current.setdefault(found.spec.pool.name, []).append(found)
        plans = {name: self._plan(name, slices) for name, slices in current.items()}
        if not any(plans.values()):
            return False
        owner = await self._owner()
        lost: dict[str, tuple[str, ...]] = {}
        for changes in plans.values():
            lost |= await self._write(changes, owner)
        if lost:
            self._react(lost)
        return True

    def _plan(self, name: str, current: list[ResourceSlice]) -> SlicePlan:
        assert self._pools is not None
        pool = self._pools.get(name)
        if pool is None:
            return SlicePlan(delete=tuple(current))
        wanted = slices_of(pool, self._base, self._form, with_taint_slice=self.with_taint_slice)
        expected = [self._as_stored(spec) for spec in wanted]
        changes = plan(expected, current, self._generations.get(name, 0))
        if not changes.update and not changes.create:
            return changes
        return plan(wanted, current, self._generations.get(name, 0))

    def _as_stored(self, spec: ResourceSliceSpec) -> ResourceSliceSpec:
        """What the server makes of a spec, as far as it has been seen: it may drop fields, or add defaults."""
        stored = self._stored_as.get(_fingerprint(spec))
        return spec if stored is None else replace(stored, pool=spec.pool)

    async def _owner(self) -> OwnerReference:
        """The node, so that its slices go when it goes (4381-181)."""
        node_name = self._base.node_name or ""
        try:
            node = await self._client.get(NODES, "", node_name)
        except ApiError as error:
            if error.code != 404:
                raise
            message = f'node "{node_name}" does not exist; slices are published once it does'
            raise ApiError(404, "NotFound", message) from None
        return OwnerReference(api_version="v1", kind="Node", name=node_name, uid=node.metadata.uid, controller=True)

    async def _write(self, changes: SlicePlan, owner: OwnerReference) -> dict[str, tuple[str, ...]]:
        """Makes the changes; the fields that did not survive them, by slice."""
        lost: dict[str, tuple[str, ...]] = {}
        for found, spec in changes.update:
            self._check_right()
            meta = replace(found.metadata, owner_references=(owner,))
            stored = await self._client.update(replace(found, metadata=meta, spec=spec))
            lost |= self._note(spec, stored)
        for spec in changes.create:
            self._check_right()
            lost |= self._note(spec, await self._client.create(_new_slice(spec, owner)))
        for found in changes.delete:
            self._check_right()
            await self._delete(found)
        return lost

    def _check_right(self) -> None:
        """Before every write: a newer instance may have come while the earlier ones were made. Raises Superseded."""
        if not self.may_write():
            raise Superseded

    def _note(self, spec: ResourceSliceSpec, stored: ResourceSlice) -> dict[str, tuple[str, ...]]:
        self.writes += 1
        self._slices.put(stored)
        pool = spec.pool
        self._generations[pool.name] = max(self._generations.get(pool.name, 0), pool.generation)
        log.info("published slice", extra={"fields": {"slice": stored.metadata.name, "generation": pool.generation}})
        sent, kept = without_times(content(spec)), without_times(content(stored.spec))
        if sent == kept:
            return {}
        self._stored_as[_fingerprint(spec)] = kept
        fields = lost_fields(sent, kept)
        return {stored.metadata.name: fields} if fields else {}

    def _react(self, lost: Mapping[str, tuple[str, ...]]) -> None:
        """Tries the other form of taints once; anything else that matters is for the driver to know."""
        if self._form is TaintForm.SLICE and any("spec.taints" in fields for fields in lost.values()):
            log.info("the API server does not keep taints in slices of their own: publishing them at the devices")
            self._form = TaintForm.DEVICE
            self._wake.set()
            return
        for name, fields in lost.items():
            log.warning("the API server has not kept %s of slice %s", ", ".join(fields), name)
        serious = {name: tuple(field for field in fields if not is_optional(field)) for name, fields in lost.items()}
        if any(serious.values()):
            self._dropped({name: fields for name, fields in serious.items() if fields})

    async def _delete(self, found: ResourceSlice) -> None:
        self.writes += 1
        options = DeleteOptions(preconditions=Preconditions(uid=found.metadata.uid))
        try:
            await self._client.delete(SLICES, "", found.metadata.name, options)
        except ApiError as error:
            if error.code not in (404, 409):
                raise


def _new_slice(spec: ResourceSliceSpec, owner: OwnerReference) -> ResourceSlice:
    prefix = f"{spec.node_name}-{spec.driver}"[:200].rstrip("-.").lower()
    meta = ObjectMeta(generate_name=f"{prefix}-", owner_references=(owner,))
    return ResourceSlice(api_version="resource.k8s.io/v1", kind="ResourceSlice", metadata=meta, spec=spec)


def _fingerprint(spec: ResourceSliceSpec) -> bytes:
    return codec.encode(without_times(content(spec)))
