"""The way into a hub: the cluster is registered with what the user gave, and works as its agent from then on.

    --hub kubeconfig ─▶ ManagedCluster ─▶ accepted by the hub ─▶ token of the agent's ServiceAccount ─▶ own client

Whoever may accept clusters on the hub accepts the new one right away; else a hub admin has to. An agent may only touch
its own cluster and lease. A kubeconfig that may not ask for the agent's token is taken to be the agent's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from dray.api.cluster import ManagedCluster, ManagedClusterSpec
from dray.api.cluster.managed_cluster import AGENT_ACCOUNT
from dray.api.generated.authorization import ResourceAttributes
from dray.api.kinds import CLUSTERS, SERVICE_ACCOUNTS
from dray.api.meta import ObjectMeta
from dray.api.status import ApiError
from dray.client import Client
from dray.client.calls import find, may
from dray.client.kubeconfig import Connection

if TYPE_CHECKING:
    from dray.client.http import HttpClient

TOKEN_SECONDS: Final = 3600
PROGRAM: Final = "dray cluster agent"


class Membership(msgspec.Struct, frozen=True):
    """As what a cluster joins which hub."""

    cluster: str
    hub: Connection
    lease_seconds: int = 0
    """How often the lease is renewed, 0 for what the hub says; counts when the cluster is new there."""


class Access:
    """Registers, and opens clients. Raises ApiError, OSError or TimeoutError."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership

    async def register(self) -> ManagedCluster:
        """The cluster on the hub, made if it is not there. One that is there is left as it is, accepted or not."""
        name = self._membership.cluster
        async with self._bootstrap() as client:
            found = await find(client, CLUSTERS, "", name, ManagedCluster)
            if found is not None:
                return found
            return await client.create(self._new_cluster(accepted=await _may_accept(client, name)))

    async def find(self) -> ManagedCluster | None:
        """The cluster as it stands on the hub, None if it is not there."""
        async with self._bootstrap() as client:
            return await find(client, CLUSTERS, "", self._membership.cluster, ManagedCluster)

    async def open(self) -> HttpClient:
        """A client that acts as the cluster's agent; whoever opens it closes it."""
        name, hub = self._membership.cluster, self._membership.hub
        async with self._bootstrap() as client:
            try:
                body = {"spec": {"expirationSeconds": TOKEN_SECONDS}}
                answer = await client.post(SERVICE_ACCOUNTS, name, AGENT_ACCOUNT, "token", body)
            except ApiError as error:
                if error.code not in (403, 404):
                    raise
                return _client(hub)
        token: Any = answer.get("status", {}).get("token", "")
        return _client(hub.of_another(str(token)))

    def _bootstrap(self) -> HttpClient:
        return _client(self._membership.hub)

    def _new_cluster(self, *, accepted: bool) -> ManagedCluster:
        spec = ManagedClusterSpec(hub_accepts_client=accepted, lease_duration_seconds=self._membership.lease_seconds)
        metadata = ObjectMeta(name=self._membership.cluster)
        return ManagedCluster(kind="ManagedCluster", api_version=CLUSTERS.api_version, metadata=metadata, spec=spec)


def _client(connection: Connection) -> HttpClient:
    """Made here alone: most clusters have no hub, and need none of what speaks to one."""
    from dray.client.http import HttpClient

    return HttpClient(connection, agent=PROGRAM)


async def _may_accept(client: Client, cluster: str) -> bool:
    """Whether the hub lets this user accept clusters: the right that Open Cluster Management asks for."""
    asked = ResourceAttributes(
        verb="update",
        group="register.open-cluster-management.io",
        resource="managedclusters",
        subresource="accept",
        name=cluster,
    )
    return await may(client, asked)
