"""Devices in numbers for /metrics: how many are free, held, tainted, blocked, of each driver."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dray.live.counted_devices import CountedDevices


class DeviceMetrics(Collector):
    """Shows what was counted; whoever makes a page of the numbers has them counted first."""

    def __init__(self, devices: CountedDevices) -> None:
        self._devices = devices

    def describe(self) -> list[Metric]:
        """Nothing is looked at before somebody asks for the numbers."""
        return []

    def collect(self) -> Iterator[Metric]:
        """A device counts for everything that it is, and in `all`."""
        family = GaugeMetricFamily("dray_devices", "Devices by driver and state.", labels=["driver", "state"])
        for (driver, state), number in self._devices.counts.items():
            family.add_metric([driver, state], number)
        yield family
