"""The agent: joins the hub, renews the lease, reports. Goes on through everything that can go wrong on the way.

register ─▶ wait to be accepted ─▶ lease and report ──hub gone, token expired, cluster denied──▶ wait, again
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Protocol

from msgspec.structs import replace

from dray.api.backoff import Backoff
from dray.api.cluster import ManagedCluster
from dray.api.cluster.managed_cluster import CONDITION_HUB_ACCEPTED, DEFAULT_LEASE_DURATION_SECONDS, is_accepted
from dray.api.conditions import find_condition
from dray.api.kinds import CLUSTERS, LEASES
from dray.api.status import ApiError
from dray.api.times import MicroTime
from dray.client import Client, Informer
from dray.hub_agent.report import ClusterReport, status_of
from dray.placement.availability import LEASE_NAME
from dray.process.clock import as_time
from dray.process.tasks import is_told_to_end
from dray.reconcile import Clock

REPORT_SECONDS = 2.0
"""The cluster is looked at so often, and reported if it changed."""
ACCEPT_SECONDS = 2.0
RETRY = Backoff(first=1.0, longest=10.0)
GOODBYE_SECONDS = 2.0


class OpenClient(Client, Protocol):
    """A client that can be closed."""

    async def close(self) -> None:
        """Ends all connections."""
        ...


class HubAccess(Protocol):
    """What the agent needs to get in; see `Access`."""

    async def register(self) -> ManagedCluster:
        """Makes the cluster known to the hub."""
        ...

    async def find(self) -> ManagedCluster | None:
        """The cluster as the hub has it."""
        ...

    async def open(self) -> OpenClient:
        """A client as the agent."""
        ...


class Agent:
    """One cluster's agent. `problem` says why it does not work now, empty if it does."""

    def __init__(
        self, name: str, access: HubAccess, look: Callable[[], Awaitable[ClusterReport]], clock: Clock
    ) -> None:
        """`look` makes a report of the cluster."""
        self.name = name
        self.problem = "not registered with the hub yet"
        self._access = access
        self._look = look
        self._clock = clock
        self._is_registered = False
        self._client: OpenClient | None = None

    async def run(self) -> None:
        """Works until cancelled."""
        pauses = RETRY.pauses()
        while True:
            try:
                await self._join()
                pauses.reset()
                await self._work()
            except* (ApiError, OSError, TimeoutError) as group:
                error = group.exceptions[0]
                self.problem = f"hub: {error}" if str(error) else f"hub: {type(error).__name__}"
            await self._clock.sleep(pauses.next())

    async def leave(self) -> None:
        """Tells the hub that the cluster is going to stop, so that nobody waits for its lease to expire.

        Best effort, within GOODBYE_SECONDS. Call it when `run` has ended.
        """
        client = self._client
        if client is None:
            return
        with contextlib.suppress(ApiError, OSError, TimeoutError):
            async with asyncio.timeout(GOODBYE_SECONDS):
                current = await client.get(CLUSTERS, "", self.name)
                assert isinstance(current, ManagedCluster)
                await self._report(client, current, replace(await self._look(), problem="the cluster was stopped"))
        await self._close()

    async def _join(self) -> None:
        """Returns once the hub has accepted the cluster. What the hub removed is not brought back."""
        cluster: ManagedCluster | None
        if not self._is_registered:
            cluster = await self._access.register()
            self._is_registered = True
        else:
            cluster = await self._access.find()
        while cluster is None or not is_accepted(cluster):
            self.problem = (
                f"the hub has no cluster {self.name} any more; start again to register it"
                if cluster is None
                else f"waiting for the hub to accept cluster {self.name} ({_why_not(cluster)})"
            )
            await self._clock.sleep(ACCEPT_SECONDS)
            cluster = await self._access.find()

    async def _work(self) -> None:
        """Lease and reports, until something fails."""
        await self._close()
        self._client = client = await self._access.open()
        fields = f"metadata.name={self.name}"
        own: Informer[ManagedCluster] = Informer(client, CLUSTERS, fields=fields, sleep=self._clock.sleep)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(own.run())
                group.create_task(self._renew(client, own))
                group.create_task(self._keep_reporting(client, own))
        finally:
            if not is_told_to_end():  # then the client stays open for saying goodbye
                await self._close()

    async def _renew(self, client: Client, own: Informer[ManagedCluster]) -> None:
        """As often as the hub's spec of the cluster says; the hub gives up after five times that."""
        while True:
            now = MicroTime.of(datetime.fromtimestamp(self._clock.now(), UTC))
            await client.patch(LEASES, self.name, LEASE_NAME, {"spec": {"renewTime": str(now)}})
            self.problem = ""
            await own.synced()
            cluster = own.get("", self.name)
            seconds = cluster.spec.lease_duration_seconds if cluster is not None else 0
            await self._clock.sleep(seconds or DEFAULT_LEASE_DURATION_SECONDS)

    async def _keep_reporting(self, client: Client, own: Informer[ManagedCluster]) -> None:
        """What the hub made of the cluster is watched: where it calls it unknown, the next report says otherwise."""
        await own.synced()
        while True:
            current = own.get("", self.name)
            if current is not None:
                written = await self._report(client, current, await self._look())
                if written is not None:
                    own.put(written)
            await self._clock.sleep(REPORT_SECONDS)

    async def _report(self, client: Client, current: ManagedCluster, report: ClusterReport) -> ManagedCluster | None:
        """Writes what is news; None if nothing is, or if somebody else was faster, which the next look takes in."""
        status = status_of(current, report, as_time(self._clock.now()))
        if status == current.status:
            return None
        try:
            return await client.update(replace(current, status=status), subresource="status")
        except ApiError as error:
            if error.code != 409:
                raise
            return None

    async def _close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()


def _why_not(cluster: ManagedCluster) -> str:
    """What the hub says of a cluster that it does not accept; if nothing, what has to be set."""
    said = find_condition(cluster.status.conditions, CONDITION_HUB_ACCEPTED)
    return said.message if said is not None and cluster.spec.hub_accepts_client else "spec.hubAcceptsClient"
