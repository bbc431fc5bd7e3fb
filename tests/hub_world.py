"""A hub in memory with its controllers on a clock that tests move: short ways to make fleets and to read decisions.

async with hub_world() as hub:
    await hub.fleet("a", "b")
    await hub.create(placement())
    await hub.settle()
    assert await hub.decisions() == ["a", "b"]
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from controller_world import Manifest, World, controller_world, manifest
from dray.api import codec
from dray.api.times import MicroTime
from dray.process.clock import as_time
from local_server import LocalServer

GROUP = "cluster.open-cluster-management.io"
SET_LABEL = f"{GROUP}/clusterset"
PLACEMENT_LABEL = f"{GROUP}/placement"
AVAILABLE = "ManagedClusterConditionAvailable"
UNAVAILABLE = f"{GROUP}/unavailable"
UNREACHABLE = f"{GROUP}/unreachable"
HUB = (
    "managed-cluster-controller",
    "managed-cluster-set-controller",
    "placement-controller",
    "garbage-collector-controller",
)


def cluster_set(name: str = "clusterset1") -> Manifest:
    """A set of the clusters that are labelled for it."""
    return manifest(f"{GROUP}/v1beta2", "ManagedClusterSet", name, spec={})


def binding(name: str = "clusterset1", namespace: str = "default") -> Manifest:
    """A set bound to a namespace."""
    return manifest(f"{GROUP}/v1beta2", "ManagedClusterSetBinding", name, namespace, spec={"clusterSet": name})


def cluster(name: str, *taints: Manifest, in_set: str = "clusterset1", labels: Manifest | None = None) -> Manifest:
    """An accepted cluster."""
    meta = {"labels": {SET_LABEL: in_set, **(labels or {})}}
    spec = {"hubAcceptsClient": True, "taints": list(taints)}
    return manifest(f"{GROUP}/v1", "ManagedCluster", name, meta=meta, spec=spec)


def taint(text: str, **more: Any) -> Manifest:
    """A taint from `key[=value]:effect`."""
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return {"key": key, "effect": effect, **({"value": value} if value else {}), **more}


def placement(name: str = "placement1", namespace: str = "default", **spec: Any) -> Manifest:
    """A placement."""
    return manifest(f"{GROUP}/v1beta1", "Placement", name, namespace, spec=spec)


class Hub(World):
    """A world with clusters and placements."""

    async def fleet(self, *names: str) -> None:
        """Clusters of the one set, which namespace `default` may use; their agents say that all is well."""
        await self.create(cluster_set(), binding(), *map(cluster, names))
        await self.settle()
        for name in names:
            await self.report(name, "True")
        await self.settle()

    async def report(self, name: str, available: str | None) -> None:
        """What a cluster's agent says about it; None: it takes back what it said."""
        found = await self.get("managedclusters", name)
        others = [codec.to_builtins(one) for one in found.status.conditions if one.type != AVAILABLE]
        since = str(as_time(self.clock.now()))
        said = {
            "type": AVAILABLE,
            "status": available,
            "reason": "Reported",
            "message": "",
            "lastTransitionTime": since,
        }
        conditions = [*others, said] if available is not None else others
        await self.patch("managedclusters", name, {"status": {"conditions": conditions}}, "status")

    async def renew(self, *names: str) -> None:
        """The agents renew their leases."""
        now = MicroTime.of(datetime.fromtimestamp(self.clock.now(), UTC))
        for name in names:
            await self.patch("leases", "managed-cluster-lease", {"spec": {"renewTime": str(now)}}, namespace=name)

    async def taint(self, name: str, *taints: Manifest) -> None:
        """Sets the taints of a cluster."""
        await self.patch("managedclusters", name, {"spec": {"taints": list(taints)}})

    async def taints(self, name: str) -> list[str]:
        """The taints of a cluster as `key:effect`."""
        return [f"{one.key}:{one.effect}" for one in (await self.get("managedclusters", name)).spec.taints]

    async def decisions(self, of: str = "placement1", namespace: str = "default") -> list[str]:
        """The clusters in a placement's PlacementDecisions, in the order of these."""
        found = await self.objects("placementdecisions", namespace)
        own = [one for one in found if one.metadata.labels.get(PLACEMENT_LABEL) == of]
        own.sort(key=lambda one: int(one.metadata.name.rpartition("-")[2]))
        return [entry.cluster_name for one in own for entry in one.status.decisions]

    async def conditions(self, of: str = "placement1", namespace: str = "default") -> dict[str, tuple[str, str]]:
        """A placement's conditions: type → status and reason."""
        found = await self.get("placements", of, namespace)
        return {one.type: (one.status, one.reason) for one in found.status.conditions}


@contextlib.asynccontextmanager
async def hub_world(*wanted: str, server: LocalServer | None = None) -> AsyncIterator[Hub]:
    """A running hub: its controllers, each with its own rights."""
    async with controller_world(*(wanted or HUB), server=server) as world:
        yield Hub(world.server, world.manager)
