"""The agent of a cluster against a hub in memory: it joins, renews, reports, and goes on through what goes wrong."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from msgspec.structs import replace

from dray.api.cluster import ManagedCluster, ManagedClusterSpec
from dray.api.kinds import CLUSTERS
from dray.api.meta import Object, ObjectMeta
from dray.api.quantity import Quantity
from dray.api.registry import Kind
from dray.api.status import ApiError
from dray.hub_agent.agent import Agent
from dray.hub_agent.report import ClusterReport
from dray.server.local import LocalClient
from dray.server.security.identity import authenticated, service_account_groups, service_account_user
from hub_world import Hub, hub_world

NAME = "c1"


class Door:
    """The way into the hub, which tests can shut. The agent gets the rights of its ServiceAccount there."""

    def __init__(self, hub: Hub, *, accepts: bool) -> None:
        self._hub = hub
        self._accepts = accepts
        self.is_shut = False
        self.opened = 0
        self.report = ClusterReport({"cpu": Quantity.parse("4")}, {"cpu": Quantity.parse("4")}, "v1.2")

    async def register(self) -> ManagedCluster:
        self.knock()
        spec = ManagedClusterSpec(hub_accepts_client=self._accepts, lease_duration_seconds=10)
        wanted = ManagedCluster(
            kind="ManagedCluster", api_version=CLUSTERS.api_version, metadata=ObjectMeta(name=NAME), spec=spec
        )
        return await self._hub.admin.create(wanted)

    async def find(self) -> ManagedCluster | None:
        self.knock()
        found = await self._hub.get("managedclusters", NAME)
        assert found is None or isinstance(found, ManagedCluster)
        return found

    async def open(self) -> OwnClient:
        self.knock()
        self.opened += 1
        return OwnClient(self, self._hub)

    async def look(self) -> ClusterReport:
        return self.report

    def knock(self) -> None:
        if self.is_shut:
            raise OSError("the hub does not answer")


class OwnClient(LocalClient):
    """Acts as the agent's ServiceAccount; renewing fails while the door is shut."""

    def __init__(self, door: Door, hub: Hub) -> None:
        server = hub.server
        user = service_account_user(NAME, "cluster-agent")
        super().__init__(server.engine, authenticated(user, service_account_groups(NAME)), server.roles)
        self._door = door

    async def patch(self, kind: Kind, namespace: str, name: str, patch: Any, **options: Any) -> Object:
        self._door.knock()
        return await super().patch(kind, namespace, name, patch, **options)

    async def close(self) -> None:
        """Nothing is open."""


@contextlib.asynccontextmanager
async def hub_with_agent(*, accepts: bool = True) -> AsyncIterator[tuple[Hub, Door, Agent]]:
    async with hub_world() as hub:
        door = Door(hub, accepts=accepts)
        agent = Agent(NAME, door, door.look, hub.clock)
        task = asyncio.get_running_loop().create_task(agent.run())
        try:
            yield hub, door, agent
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def available(hub: Hub) -> str | None:
    found = await hub.get("managedclusters", NAME)
    conditions = {one.type: one.status for one in found.status.conditions}
    return conditions.get("ManagedClusterConditionAvailable")


async def test_it_joins_renews_and_reports_what_is_news() -> None:
    async with hub_with_agent() as (hub, door, agent):
        await hub.settle(5)
        assert agent.problem == ""
        assert await available(hub) == "True"
        assert await hub.taints(NAME) == []
        before = await hub.get("managedclusters", NAME)
        assert str(before.status.allocatable["cpu"]) == "4"
        lease = await hub.get("leases", "managed-cluster-lease", NAME)
        await hub.settle(120)
        assert (await hub.get("managedclusters", NAME)).metadata.resource_version == before.metadata.resource_version
        renewed = await hub.get("leases", "managed-cluster-lease", NAME)
        assert (renewed.spec.renew_time.datetime() - lease.spec.renew_time.datetime()).total_seconds() >= 110
        door.report = replace(door.report, allocatable={"cpu": Quantity.parse("1")})
        await hub.settle(3)
        assert str((await hub.get("managedclusters", NAME)).status.allocatable["cpu"]) == "1"


async def test_a_cluster_that_changes_all_the_time_is_reported_at_a_bounded_rate() -> None:
    async with hub_with_agent() as (hub, door, _agent):
        await hub.settle(5)
        first = await hub.get("managedclusters", NAME)
        for number in range(200):
            door.report = replace(door.report, allocatable={"cpu": Quantity.of_int(number)})
            await hub.clock.advance(0.1, turns=5)
        writes = int((await hub.get("managedclusters", NAME)).metadata.resource_version)
        writes -= int(first.metadata.resource_version)
        assert 0 < writes <= 20  # 10 reports and the renewals in between, which share the store's revisions


async def test_it_waits_to_be_accepted() -> None:
    async with hub_with_agent(accepts=False) as (hub, _door, agent):
        await hub.settle(30)
        assert agent.problem == "waiting for the hub to accept cluster c1 (spec.hubAcceptsClient)"
        await hub.patch("managedclusters", NAME, {"spec": {"hubAcceptsClient": True}})
        await hub.settle(10)
        assert agent.problem == ""
        assert await available(hub) == "True"


async def test_it_comes_back_after_the_hub_was_away_and_says_that_it_is_well() -> None:
    async with hub_with_agent() as (hub, door, agent):
        await hub.settle(5)
        door.is_shut = True
        await hub.settle(80)
        assert agent.problem == "hub: the hub does not answer"
        assert await available(hub) == "Unknown"
        door.is_shut = False
        await hub.settle(15)
        assert agent.problem == ""
        assert await available(hub) == "True"
        assert await hub.taints(NAME) == []
        assert door.opened == 2


async def test_a_cluster_that_the_hub_denies_or_removes_is_not_forced_on_it() -> None:
    async with hub_with_agent() as (hub, _door, agent):
        await hub.settle(5)
        await hub.patch("managedclusters", NAME, {"spec": {"hubAcceptsClient": False}})
        await hub.settle(40)
        assert "waiting for the hub to accept" in agent.problem
        await hub.delete("managedclusters", NAME)
        await hub.settle(40)
        assert agent.problem == "the hub has no cluster c1 any more; start again to register it"
        assert await hub.get("managedclusters", NAME) is None


async def test_when_it_is_stopped_it_says_so_at_once() -> None:
    async with hub_world() as hub:
        door = Door(hub, accepts=True)
        agent = Agent(NAME, door, door.look, hub.clock)
        task = asyncio.get_running_loop().create_task(agent.run())
        await hub.settle(5)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, ApiError):
            await task
        await agent.leave()
        await hub.settle(1)
        assert await available(hub) == "False"
        assert await hub.taints(NAME) == ["cluster.open-cluster-management.io/unavailable:NoSelect"]
