"""Looks at the own cluster for the hub: nodes, device classes, and what the scheduler knows of devices."""

from __future__ import annotations

from collections.abc import Callable

from dray.api.generated.core import Node
from dray.api.kinds import CLASSES, NAMESPACES, NODES
from dray.api.resource import DeviceClass
from dray.api.status import ApiError
from dray.client import Client
from dray.hub_agent.device_counts import DeviceCounts
from dray.hub_agent.report import ClusterReport, describe_devices, describe_nodes
from dray.reconcile.informers import Informers
from dray.scheduling.cluster import Cluster


class Observer:
    """Makes reports when asked; costs what changed since the last."""

    def __init__(self, client: Client, informers: Informers, cluster: Callable[[], Cluster], version: str) -> None:
        """`cluster` is the scheduler's, which may be another one after it failed."""
        self._client = client
        self._nodes = informers.of(NODES, Node)
        self._classes = informers.of(CLASSES, DeviceClass)
        self._cluster = cluster
        self._version = version
        self._counts = DeviceCounts()

    async def look(self) -> ClusterReport:
        """The cluster as it is now."""
        capacity, allocatable = describe_nodes(self._nodes)
        counts = self._counts.count(self._cluster(), self._classes)
        problem = await self._check()
        return ClusterReport(capacity, allocatable, self._version, describe_devices(counts), problem)

    async def _check(self) -> str:
        """Why the cluster's API cannot be used; empty if it can."""
        try:
            await self._client.get(NAMESPACES, "", "default")
        except (ApiError, OSError, TimeoutError) as error:
            return f"the API server of the cluster does not answer: {error}"
        return ""
