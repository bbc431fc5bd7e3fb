"""Heartbeats: each running node renews its Lease every ten seconds. Nodes take turns, so that the load is even."""

from __future__ import annotations

import asyncio
import zlib
from datetime import UTC, datetime
from typing import Final

from msgspec.structs import replace

from dray.api.generated.coordination import Lease, LeaseSpec
from dray.api.generated.core import Node
from dray.api.kinds import LEASES
from dray.api.meta import ObjectMeta, OwnerReference
from dray.api.status import ApiError
from dray.api.times import MicroTime
from dray.api.well_known import LEASE_NAMESPACE
from dray.client import Client
from dray.reconcile import Clock

NAMESPACE: Final = LEASE_NAMESPACE
TURNS: Final = 10
TURN_SECONDS: Final = 1.0
LEASE_SECONDS: Final = 40


class Heartbeats:
    """The leases of nodes that run. Losing a renewal is harmless: the next one is seconds away."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._turns: list[dict[str, Lease]] = [{} for _ in range(TURNS)]
        self._new: dict[str, None] = {}
        self.renewals = 0
        self.failures = 0

    def start(self, node: Node) -> None:
        """A node runs: its lease is renewed with the next turn, and from then on every TURNS turns."""
        name = node.metadata.name
        turn = self._turn(name)
        if name not in turn or turn[name].metadata.owner_references[0].uid != node.metadata.uid:
            turn[name] = _lease(node)
            self._new[name] = None

    def stop(self, name: str) -> None:
        """A node has stopped or is gone."""
        self._turn(name).pop(name, None)
        self._new.pop(name, None)

    def _turn(self, name: str) -> dict[str, Lease]:
        return self._turns[zlib.crc32(name.encode()) % TURNS]

    async def run(self) -> None:
        """Renews until cancelled."""
        turn = 0
        while True:
            due = dict(self._turns[turn % TURNS])
            for name in self._new:
                due[name] = self._turn(name)[name]
            self._new.clear()
            await asyncio.gather(*(self._renew(lease) for lease in due.values()))
            turn += 1
            await self._clock.sleep(TURN_SECONDS)

    async def _renew(self, lease: Lease) -> None:
        now = MicroTime.of(datetime.fromtimestamp(self._clock.now(), UTC))
        name = lease.metadata.name
        try:
            stored = await self._write(replace(lease, spec=replace(lease.spec, renew_time=now)))
            self.renewals += 1
        except (ApiError, OSError, TimeoutError):
            stored = replace(lease, metadata=replace(lease.metadata, resource_version=""))
            self.failures += 1
        turn = self._turn(name)
        if turn.get(name) is lease:  # else the node has stopped meanwhile, or is another one
            turn[name] = stored

    async def _write(self, lease: Lease) -> Lease:
        """Servers take the update of a lease only from who names the version that is there."""
        if lease.metadata.resource_version:
            return await self._client.update(lease)
        try:
            return await self._client.create(lease)
        except ApiError as error:
            if error.code != 409:
                raise
        found = await self._client.get(LEASES, NAMESPACE, lease.metadata.name)
        known = replace(lease.metadata, resource_version=found.metadata.resource_version)
        return await self._client.update(replace(lease, metadata=known))


def _lease(node: Node) -> Lease:
    """The lease as it is made."""
    name = node.metadata.name
    owner = OwnerReference(api_version="v1", kind="Node", name=name, uid=node.metadata.uid)
    return Lease(
        kind="Lease",
        api_version="coordination.k8s.io/v1",
        metadata=ObjectMeta(name=name, namespace=NAMESPACE, owner_references=(owner,)),
        spec=LeaseSpec(holder_identity=name, lease_duration_seconds=LEASE_SECONDS),
    )
