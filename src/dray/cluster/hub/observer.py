"""Looks at the own cluster for the hub: nodes, device classes, and what the scheduler's tracker knows of devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from dray.api.generated.core import Node
from dray.api.registry import by_kind
from dray.api.resource import DeviceClass
from dray.api.status import ApiError
from dray.client import Client
from dray.cluster.hub.device_counts import DeviceCounts
from dray.cluster.hub.report import Report, describe_devices, describe_nodes
from dray.cluster.overview import NODES, Overview
from dray.reconcile.informers import Informers
from dray.tracker import PoolView

CLASSES: Final = by_kind("resource.k8s.io/v1", "DeviceClass")
NAMESPACES: Final = by_kind("v1", "Namespace")

Pools = Callable[[], Mapping[tuple[str, str], PoolView]]


class Observer:
    """Makes reports when asked; costs what changed since the last."""

    def __init__(self, client: Client, informers: Informers, overview: Overview, pools: Pools, version: str) -> None:
        """`pools` are those of the tracker, by driver and name."""
        self._client = client
        self._nodes = informers.of(NODES, Node)
        self._classes = informers.of(CLASSES, DeviceClass)
        self._overview = overview
        self._pools = pools
        self._version = version
        self._counts = DeviceCounts()

    async def look(self) -> Report:
        """The cluster as it is now."""
        capacity, allocatable = describe_nodes(self._nodes)
        counts = self._counts.count(self._pools(), self._classes, self._overview.held)
        problem = await self._check()
        return Report(capacity, allocatable, self._version, describe_devices(counts), problem)

    async def _check(self) -> str:
        """Why the cluster's API cannot be used; empty if it can."""
        try:
            await self._client.get(NAMESPACES, "", "default")
        except (ApiError, OSError, TimeoutError) as error:
            return f"the API server of the cluster does not answer: {error}"
        return ""
