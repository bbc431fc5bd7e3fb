"""What the agent knows of a claim that it prepared, prepares or unprepares. Pure; this is what is checkpointed.

    ClaimRecord ─┬─ pods: who uses it here; the last one to go has it unprepared
                 └─ drivers: one DriverPart each: what was allocated, what the driver answered

A record is there from before the first NodePrepareResources call until after the last NodeUnprepareResources answer,
so that a restart at any point knows which drivers may hold something.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec.structs import replace

from dray.api.resource import ResourceClaim
from dray.api.resource.claim import request_parts

PREPARE: Final = "NodePrepareResources"
UNPREPARE: Final = "NodeUnprepareResources"
EVERY_OPERATION: Final = "*"

Device = tuple[str, str]
"""Pool and name of a device of one driver."""


class PreparedDevice(msgspec.Struct, frozen=True, omit_defaults=True):
    """A device as its driver prepared it. Without `requests` it is for all requests of the claim (4381-169)."""

    pool: str
    device: str
    requests: tuple[str, ...] = ()
    cdi_ids: tuple[str, ...] = ()
    share_id: str | None = None

    def serves(self, request: str) -> bool:
        """Whether a container that names a request of the claim (empty: all of them) gets this device."""
        return not request or not self.requests or any(request_parts(name)[0] == request for name in self.requests)

    @property
    def length(self) -> int:
        """How much is said of it, in letters; its name counts even if it is empty."""
        texts = (self.pool, self.device, self.share_id or "", *self.requests, *self.cdi_ids)
        return sum(len(text) + 1 for text in texts)


class DriverPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """One driver's share of a claim. `skips` are node operations that the driver does not want for these devices."""

    allocated: tuple[Device, ...]
    requests: tuple[str, ...] = ()
    skips: tuple[str, ...] = ()
    prepared: bool = False
    devices: tuple[PreparedDevice, ...] = ()

    def needs(self, operation: str) -> bool:
        """Whether the driver is to be called for an operation."""
        return operation not in self.skips and EVERY_OPERATION not in self.skips

    @property
    def length(self) -> int:
        """How much the driver said of its devices, in letters."""
        return sum(device.length for device in self.devices)


class ClaimRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A claim on this node."""

    namespace: str
    name: str
    uid: str
    drivers: dict[str, DriverPart]
    pods: tuple[str, ...] = ()
    unpreparing: bool = False

    @property
    def prepared(self) -> bool:
        """Whether every driver that is to be called has prepared its devices."""
        return all(part.prepared or not part.needs(PREPARE) for part in self.drivers.values())

    def cdi_ids(self, request: str) -> Iterator[str]:
        """What a container that names a request (empty: all) hands to its runtime."""
        for part in self.drivers.values():
            for device in part.devices:
                if device.serves(request):
                    yield from device.cdi_ids

    def with_pod(self, uid: str) -> ClaimRecord:
        """Used by one more pod."""
        return self if uid in self.pods else replace(self, pods=(*self.pods, uid))

    def without_pod(self, uid: str) -> ClaimRecord:
        """No longer used by a pod."""
        return replace(self, pods=tuple(pod for pod in self.pods if pod != uid))

    def with_answer(self, driver: str, devices: Iterable[PreparedDevice]) -> ClaimRecord:
        """A driver has prepared its devices; what it said before no longer counts."""
        part = replace(self.drivers[driver], prepared=True, devices=tuple(devices))
        return replace(self, drivers={**self.drivers, driver: part})

    def unconfirmed(self) -> ClaimRecord:
        """All drivers must prepare again before the claim is used: the machine has been started anew."""
        parts = {name: replace(part, prepared=False) for name, part in self.drivers.items()}
        return replace(self, drivers=parts)


class ClaimBook:
    """All records, by the claim's uid, its name and the pods that use it."""

    def __init__(self, records: Iterable[ClaimRecord] = ()) -> None:
        self._records: dict[str, ClaimRecord] = {}
        self._by_name: dict[tuple[str, str], str] = {}
        self._by_pod: dict[str, dict[str, None]] = {}
        self._said: Counter[str] = Counter()
        for record in records:
            self.put(record)

    def __iter__(self) -> Iterator[ClaimRecord]:
        return iter(list(self._records.values()))

    def __len__(self) -> int:
        return len(self._records)

    def get(self, uid: str) -> ClaimRecord | None:
        """The record of a claim."""
        return self._records.get(uid)

    def named(self, namespace: str, name: str) -> ClaimRecord | None:
        """The record of a claim by its name; of a claim that was replaced it is the one that was prepared."""
        return self._records.get(self._by_name.get((namespace, name), ""))

    def put(self, record: ClaimRecord) -> None:
        """Notes a newer state of a record."""
        before = self._records.get(record.uid)
        self._records[record.uid] = record
        self._by_name[record.namespace, record.name] = record.uid
        self._count(record, 1)
        if before is not None:
            self._count(before, -1)
            self._forget_pods(record.uid, set(before.pods) - set(record.pods))
        for pod in record.pods:
            self._by_pod.setdefault(pod, {})[record.uid] = None

    def drop(self, uid: str) -> None:
        """The claim is no longer on this node."""
        record = self._records.pop(uid, None)
        if record is not None:
            self._count(record, -1)
            self._by_name.pop((record.namespace, record.name), None)
            self._forget_pods(uid, record.pods)

    def of_pod(self, uid: str) -> list[ClaimRecord]:
        """The claims that a pod uses."""
        return [self._records[claim] for claim in self._by_pod.get(uid, ())]

    def in_use(self) -> dict[str, int]:
        """How many claims each driver has on this node."""
        counts: dict[str, int] = {}
        for record in self._records.values():
            for driver in record.drivers:
                counts[driver] = counts.get(driver, 0) + 1
        return counts

    def said(self, driver: str) -> int:
        """How much a driver has said of all that it prepared here, in letters."""
        return self._said[driver]

    def _count(self, record: ClaimRecord, sign: int) -> None:
        for driver, part in record.drivers.items():
            self._said[driver] += sign * part.length

    def _forget_pods(self, uid: str, pods: Iterable[str]) -> None:
        for pod in pods:
            claims = self._by_pod.get(pod, {})
            claims.pop(uid, None)
            if not claims:
                self._by_pod.pop(pod, None)


def new_record(claim: ResourceClaim) -> ClaimRecord:
    """The record of an allocated claim before anything was prepared."""
    meta = claim.metadata
    return ClaimRecord(meta.namespace, meta.name, meta.uid, _parts(claim))


def _parts(claim: ResourceClaim) -> dict[str, DriverPart]:
    assert claim.status.allocation is not None
    parts: dict[str, DriverPart] = {}
    for result in claim.status.allocation.devices.results:
        part = parts.get(result.driver)
        device, request = (result.pool, result.device), request_parts(result.request)[0]
        if part is None:
            parts[result.driver] = DriverPart((device,), (request,), result.skip_node_operations)
            continue
        # An operation is skipped only if every device of the driver in the claim says so.
        skips = tuple(name for name in part.skips if name in result.skip_node_operations)
        requests = part.requests if request in part.requests else (*part.requests, request)
        parts[result.driver] = replace(part, allocated=(*part.allocated, device), requests=requests, skips=skips)
    return parts
