"""Heartbeats on a server that, as Kubernetes does, takes updates of leases only with the version that is there."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TypeVar

import builders
from controller_world import find_kind
from dray.api.generated.coordination import Lease
from dray.api.generated.core import Node
from dray.api.meta import Object
from dray.server.local import LocalClient
from dray.simulation.heartbeats import NAMESPACE, Heartbeats
from local_server import ADMIN, LocalServer, local_server

T = TypeVar("T", bound=Object)
LEASES = find_kind("leases")


class Strict(LocalClient):
    """Notes updates that name no version."""

    def __init__(self, server: LocalServer) -> None:
        super().__init__(server.engine, ADMIN, server.roles)
        self.blind = 0

    async def update(self, obj: T, subresource: str = "") -> T:
        self.blind += not obj.metadata.resource_version
        return await super().update(obj, subresource)


def node(uid: str = "u1") -> Node:
    return builders.typed(builders.manifest("v1", "Node", "n", meta={"uid": uid}), Node)


async def stored(client: LocalClient) -> Lease:
    lease = await client.get(LEASES, NAMESPACE, "n")
    assert isinstance(lease, Lease)
    return lease


async def test_every_renewal_names_the_version_that_it_replaces_whatever_happened_to_the_lease() -> None:
    async with local_server(with_roles=False) as server:
        client, clock = Strict(server), server.clock
        for beats in (Heartbeats(client, clock), Heartbeats(client, clock)):  # the second after a restart
            beats.start(node())
            task = asyncio.create_task(beats.run())
            try:
                await clock.advance(25, turns=40)
                first = await stored(client)
                await client.patch(LEASES, NAMESPACE, "n", {"metadata": {"labels": {"touched": "yes"}}})
                await clock.advance(25, turns=40)
                second = await stored(client)
                await client.delete(LEASES, NAMESPACE, "n")
                await clock.advance(25, turns=40)
                third = await stored(client)
            finally:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            times = [lease.spec.renew_time for lease in (first, second, third)]
            assert None not in times
            assert times == sorted(set(times), key=str)
        assert client.blind == 0
