"""Registers the node, renews its Lease, and reports its status from time to time.

The not-ready taint that new nodes get is taken away by the node lifecycle controller once the node reports that it is
ready: a node may not change its own taints.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Final

from msgspec.structs import replace

from dray.api.backoff import Backoff
from dray.api.generated.coordination import Lease, LeaseSpec
from dray.api.generated.core import Node
from dray.api.kinds import LEASES, NODES
from dray.api.meta import ObjectMeta, OwnerReference
from dray.api.nodes import is_simulated
from dray.api.status import ApiError
from dray.api.times import MicroTime
from dray.api.well_known import LEASE_NAMESPACE
from dray.client import Client
from dray.node import node_object
from dray.process.clock import as_time
from dray.reconcile import Clock

log = logging.getLogger(__name__)

LEASE_SECONDS: Final = 40
RENEW_SECONDS: Final = 10.0
REPORT_SECONDS: Final = 300.0
RETRY: Final = Backoff(first=0.2, longest=7.0)


class NodeTaken(Exception):
    """Somebody else plays this node; the message says who, and what to do."""


class Heartbeat:
    """The node's own object and lease."""

    def __init__(self, client: Client, name: str, address: str, runtime: str, clock: Clock) -> None:
        self._client = client
        self._name = name
        self._address = address
        self._runtime = runtime
        self._clock = clock
        self._lease: Lease | None = None
        self.serving: node_object.Serving | None = None
        """Where logs and commands are served, once they are."""
        self.node: Node | None = None

    async def register(self) -> Node:
        """Creates the node or brings it up to date, until that succeeds. Raises NodeTaken, or ApiError if forbidden."""
        pauses = RETRY.pauses()
        while True:
            try:
                self.node = await self._register()
                return self.node
            except ApiError as error:
                if error.code in (401, 403, 422):
                    raise
                log.warning("cannot register node %s: %s; trying again", self._name, error)
            except (OSError, TimeoutError) as error:
                log.warning("cannot register node %s: %s; trying again", self._name, error)
            await self._clock.sleep(pauses.next())

    async def run(self) -> None:
        """Renews and reports until cancelled; a node that was deleted is registered again."""
        reported = self._clock.monotonic()
        pauses = RETRY.pauses()
        while True:
            pause = RENEW_SECONDS
            try:
                await self._renew()
                if self._clock.monotonic() - reported >= REPORT_SECONDS:
                    self.node = await self._register()
                    reported = self._clock.monotonic()
                pauses.reset()
            except (ApiError, OSError, TimeoutError) as error:
                log.warning("cannot renew the lease of node %s: %s; trying again", self._name, error)
                self._lease = None
                pause = pauses.next()
            await self._clock.sleep(pause)

    async def _register(self) -> Node:
        now = as_time(self._clock.now())
        wanted = node_object.new_node(self._name, self._address, self._runtime, now, self.serving)
        node = await self._stored()
        if node is None:
            return await self._client.create(wanted)
        if is_simulated(node):
            raise NodeTaken(f"node {self._name} is simulated. Give another --name, or delete it.")
        meta = node.metadata
        labels = {**meta.labels, **wanted.metadata.labels}
        notes = {**meta.annotations, **wanted.metadata.annotations}
        if labels != meta.labels or notes != meta.annotations:
            node = await self._client.update(replace(node, metadata=replace(meta, labels=labels, annotations=notes)))
        told = node_object.with_status(node, self._address, self._runtime, now, self.serving)
        return await self._client.update(told, "status")

    async def _stored(self) -> Node | None:
        try:
            found = await self._client.get(NODES, "", self._name)
        except ApiError as error:
            if error.code == 404:
                return None
            raise
        assert isinstance(found, Node)
        return found

    async def _renew(self) -> None:
        now = MicroTime.of(datetime.fromtimestamp(self._clock.now(), UTC))
        if self._lease is None:
            self._lease = await self._find_lease(now)
        renewed = replace(self._lease, spec=replace(self._lease.spec, renew_time=now))
        self._lease = await self._client.update(renewed)

    async def _find_lease(self, now: MicroTime) -> Lease:
        """The lease, made if it is missing, as is the node."""
        node = await self._stored() or await self._register()
        try:
            found = await self._client.get(LEASES, LEASE_NAMESPACE, self._name)
        except ApiError as error:
            if error.code != 404:
                raise
            return await self._client.create(self._new_lease(node, now))
        assert isinstance(found, Lease)
        spec = replace(found.spec, holder_identity=self._name, lease_duration_seconds=LEASE_SECONDS)
        return replace(found, spec=spec)

    def _new_lease(self, node: Node, now: MicroTime) -> Lease:
        owner = OwnerReference(api_version="v1", kind="Node", name=self._name, uid=node.metadata.uid)
        return Lease(
            kind="Lease",
            api_version=LEASES.api_version,
            metadata=ObjectMeta(name=self._name, namespace=LEASE_NAMESPACE, owner_references=(owner,)),
            spec=LeaseSpec(holder_identity=self._name, lease_duration_seconds=LEASE_SECONDS, renew_time=now),
        )
