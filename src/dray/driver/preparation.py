"""Preparing and unpreparing claims: fetched and checked, one at a time each, remembered, and repeatable.

prepare    lock ─▶ fetch ─▶ same as recorded? ─▶ answer as before
                            └▶ devices there, and free? ─▶ record "begun" ─▶ driver ─▶ CDI file ─▶ record "ready"
unprepare  lock ─▶ driver ─▶ remove CDI file ─▶ remove record         never asks the API server
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast
from weakref import WeakValueDictionary

import msgspec
from msgspec.structs import replace

from dray import cdi
from dray.api import codec
from dray.api.kinds import CLAIMS
from dray.api.references import ObjectRef
from dray.api.resource import ResourceClaim
from dray.api.status import ApiError
from dray.client import Client
from dray.driver import claims
from dray.driver.calls import Calls
from dray.driver.checkpoint import Checkpoint, Prepared, Record, check_uid
from dray.driver.claims import Claim, ClaimDevice
from dray.driver.devices import Value, Version
from dray.driver.driver import Driver, Edits
from dray.driver.errors import DriverError
from dray.driver.inventory import Inventory

LONGEST_DATA: Final = 10 * 1024

log = logging.getLogger(__name__)


class ClaimGone(DriverError):
    """There is no such claim, or another one has its name by now."""


class NotAllocated(DriverError):
    """The claim has no devices."""


class Preparation:
    """The claims of one driver on one node."""

    def __init__(
        self, driver: Driver, calls: Calls, inventory: Inventory, client: Client, checkpoint: Checkpoint, cdi_dir: Path
    ) -> None:
        self._driver = driver
        self._calls = calls
        self._inventory = inventory
        self._client = client
        self._checkpoint = checkpoint
        self._cdi_dir = cdi_dir
        self.on_ready: Callable[[Record], None] = lambda _record: None
        self.on_released: Callable[[str], None] = lambda _uid: None
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def prepare(self, reference: ObjectRef) -> tuple[Prepared, ...]:
        """The devices of a claim, ready to be used. Raises DriverError; then prepare or unprepare may follow."""
        check_uid(reference.uid)
        async with self._lock(reference.uid):
            record = self._checkpoint.get(reference.uid)
            claim = await self._fetch(reference, record)
            if record is not None and record.ready and record.claim.allocates_the_same(claim):
                return self._again(record)
            if record is not None and not record.claim.allocates_the_same(claim):
                # The node was lost for a while, and the claim got other devices; nobody told us (4381-142).
                await self._take_back(record)
            return await self._prepare(claim)

    async def unprepare(self, reference: ObjectRef) -> None:
        """Undoes prepare. A claim that nobody knows is as it should be (4381-260). Raises DriverError."""
        check_uid(reference.uid)
        async with self._lock(reference.uid):
            record = self._checkpoint.get(reference.uid)
            if record is not None:
                await self._release(record)
            else:
                self._remove_spec(reference.uid)

    def _lock(self, uid: str) -> asyncio.Lock:
        """The lock of a claim; it exists while somebody uses it."""
        return self._locks.setdefault(uid, asyncio.Lock())

    async def _fetch(self, reference: ObjectRef, record: Record | None) -> Claim:
        """The claim as allocated now. While the API server is away, what was prepared before still counts."""
        try:
            found = cast(ResourceClaim, await self._client.get(CLAIMS, reference.namespace, reference.name))
        except (OSError, TimeoutError) as error:
            if record is not None and record.ready:
                return record.claim
            raise DriverError(f"claim {reference} cannot be read: {error}") from None
        except ApiError as error:
            if error.code == 404:
                raise ClaimGone(f"claim {reference} not found") from None
            if record is not None and record.ready and error.code >= 500:
                return record.claim
            raise DriverError(f"claim {reference} cannot be read: {error}") from None
        if found.metadata.uid != reference.uid:
            raise ClaimGone(f"claim {reference} got replaced: it has uid {found.metadata.uid}, not {reference.uid}")
        if found.status.allocation is None:
            raise NotAllocated(f"claim {reference} not allocated")
        return claims.of_driver(found, found.status.allocation, self._driver.name)

    def _again(self, record: Record) -> tuple[Prepared, ...]:
        """The answer that was given before; a CDI file that is gone, as after a reboot, is written again."""
        if record.cdi_spec:
            self._write_spec(record.claim.uid, cdi.parse(record.cdi_spec))
        return record.devices

    async def _prepare(self, claim: Claim) -> tuple[Prepared, ...]:
        claim = await self._begin(claim)
        prepared = []
        written = []
        for index, device in enumerate(claim.devices):
            edits = await self._calls.prepare(claim, device) or Edits()
            ids = tuple(edits.cdi_ids)
            changes = edits.to_cdi()
            if changes:
                name = f"{claim.uid}-{index}-{device.name}"
                written.append(cdi.CdiDevice(name=name, container_edits=changes))
                ids = (cdi.qualify(self._driver.cdi_kind, name), *ids)
            prepared.append(_prepared(device, ids, edits))
        spec = codec.encode(self._write_spec(claim.uid, self._spec(written))) if written else b""
        record = Record(claim=claim, ready=True, devices=tuple(prepared), cdi_spec=spec)
        self._checkpoint.put(record)
        self.on_ready(record)
        log.info("prepared claim", extra={"fields": {"claim": str(claim), "uid": claim.uid, "devices": len(prepared)}})
        return tuple(prepared)

    async def _begin(self, claim: Claim) -> Claim:
        """Takes the devices for the claim if they are there and free, and records that. Raises DriverError."""
        found = [await self._inventory.find(device.pool, device.name) for device in claim.devices]
        known = (
            replace(device, attributes=_plain(it.attributes)) for device, it in zip(claim.devices, found, strict=True)
        )
        claim = replace(claim, devices=tuple(known))
        alone = [device for device, it in zip(claim.devices, found, strict=True) if not it.shareable]
        while conflicts := self._conflicts(claim, alone):
            for record, device in conflicts:
                await self._take_over(record, device)
        # From the last look to the record nothing waits, so that of two claims only one can get a device.
        self._checkpoint.put(Record(claim=claim))
        return claim

    def _conflicts(self, claim: Claim, devices: list[ClaimDevice]) -> list[tuple[Record, ClaimDevice]]:
        """Other claims that have one of the devices for themselves."""
        others = [record for record in self._checkpoint if record.claim.uid != claim.uid]
        return [(record, device) for device in devices for record in others if _excludes(record.claim, device)]

    async def _take_over(self, record: Record, device: ClaimDevice) -> None:
        """Releases a claim that has lost its device without anybody telling us (4381-142).

        Raises DriverError if the claim still has it, or is being worked on. Never waits for that, because the other
        claim might wait for this one.
        """
        other = record.claim
        try:
            claim = await self._fetch(ObjectRef(other.namespace, other.name, other.uid), None)
        except (ClaimGone, NotAllocated):
            claim = replace(other, devices=())
        lock = self._lock(other.uid)
        if _excludes(claim, device) or lock.locked():
            raise _in_use(device, other)
        async with lock:
            current = self._checkpoint.get(other.uid)
            if current is not None and _excludes(current.claim, device):
                log.warning("claim %s no longer has device %s: releasing it", other, device.name)
                await self._take_back(current)

    async def _take_back(self, record: Record) -> None:
        """Releases a claim so that another can be prepared. Raises DriverError, which says what of it failed."""
        try:
            await self._release(record)
        except DriverError as error:
            raise DriverError(f"unprepare of claim {record.claim}, which is to make room: {error}") from error

    async def _release(self, record: Record) -> None:
        claim = record.claim
        await self._calls.unprepare(claim)
        self._remove_spec(claim.uid)
        self._checkpoint.remove(claim.uid)
        self.on_released(claim.uid)
        log.info("unprepared claim", extra={"fields": {"claim": str(claim), "uid": claim.uid}})

    def _spec(self, devices: list[cdi.CdiDevice]) -> cdi.Spec:
        spec = cdi.Spec(cdi_version="0.3.0", kind=self._driver.cdi_kind, devices=tuple(devices))
        return replace(spec, cdi_version=cdi.minimum_version(spec))

    def _write_spec(self, uid: str, spec: cdi.Spec) -> cdi.Spec:
        try:
            cdi.write_spec(self._cdi_dir, self._spec_name(uid), spec)
        except cdi.CdiError as error:
            raise DriverError(str(error)) from None
        return spec

    def _remove_spec(self, uid: str) -> None:
        try:
            cdi.remove_spec(self._cdi_dir, self._spec_name(uid))
        except cdi.CdiError as error:
            raise DriverError(str(error)) from None

    def _spec_name(self, uid: str) -> str:
        return f"{self._driver.name}-{uid}"


def _excludes(claim: Claim, device: ClaimDevice) -> bool:
    """Whether a claim has a device for itself, so that another claim cannot."""
    if device.admin_access or device.share_id:
        return False
    return any(
        it.name == device.name and it.pool == device.pool and not it.admin_access and not it.share_id
        for it in claim.devices
    )


def _plain(attributes: Mapping[str, Value]) -> dict[str, Any]:
    """Attributes as they read back from the disk: a version is a string there."""
    return {name: str(value) if isinstance(value, Version) else value for name, value in attributes.items()}


def _in_use(device: ClaimDevice, claim: Claim) -> DriverError:
    return DriverError(f'device "{device.name}" of pool "{device.pool}" is in use by claim {claim}')


def _prepared(device: ClaimDevice, ids: tuple[str, ...], edits: Edits) -> Prepared:
    return Prepared(
        request=device.request,
        pool=device.pool,
        device=device.name,
        cdi_ids=ids,
        share_id=device.share_id,
        data=_checked_data(edits, f'device "{device.name}"'),
        network_data=edits.network_data,
    )


def _checked_data(edits: Edits, where: str) -> Any:
    """What the status of a claim shall tell, as it reads back from the disk. Raises DriverError."""
    if edits.data is None:
        return None
    if not isinstance(edits.data, Mapping):
        raise DriverError(f"{where}: data is {type(edits.data).__name__}; it must be a mapping")
    try:
        whole = msgspec.json.encode(edits.data)
    except (TypeError, ValueError) as error:
        raise DriverError(f"{where}: data is no JSON: {error}") from None
    if len(whole) > LONGEST_DATA:
        raise DriverError(f"{where}: data has {len(whole)} bytes, and a claim takes {LONGEST_DATA}")
    return msgspec.json.decode(whole)
