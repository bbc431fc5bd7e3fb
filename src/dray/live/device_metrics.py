"""Devices in numbers for /metrics: how many are free, held, tainted, blocked, of each driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dray.scheduling.cluster import Cluster
from dray.scheduling.device_states import DeviceStates


class DeviceMetrics(Collector):
    """Looks when somebody asks; costs what changed since."""

    def __init__(self, registry: CollectorRegistry, cluster: Callable[[], Cluster]) -> None:
        """`cluster` is the scheduler's, which may be another one after it failed."""
        self._cluster = cluster
        self._states = DeviceStates()
        registry.register(self)

    def describe(self) -> list[Metric]:
        """Nothing is looked at before somebody asks for the numbers."""
        return []

    def collect(self) -> Iterator[Metric]:
        """A device counts for everything that it is, and in `all`."""
        counts: dict[tuple[str, str], int] = {}
        for pool in self._states.pools(self._cluster()):
            sets = {"free": pool.free, "held": pool.held, "tainted": pool.tainted, "blocked": pool.blocked}
            numbers = {state: devices.bit_count() for state, devices in sets.items()}
            for state, number in {**numbers, "all": len(pool.view.devices)}.items():
                key = (pool.view.driver, state)
                counts[key] = counts.get(key, 0) + number
        family = GaugeMetricFamily("dray_devices", "Devices by driver and state.", labels=["driver", "state"])
        for (driver, state), number in counts.items():
            family.add_metric([driver, state], number)
        yield family
