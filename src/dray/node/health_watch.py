"""Follows the health that drivers report, one stream per driver, and tells whose pods are concerned."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

import grpc
import grpc.aio

from dray.node.drivers import DriverMissing, Drivers, Instance
from dray.node.health import HEALTHY, UNHEALTHY, UNKNOWN, DeviceKey, HealthReport, HealthTable
from dray.node.health_pace import HealthPace
from dray.plugins import contracts
from dray.plugins.generated import health_v1_pb2 as messages
from dray.process.tasks import cancel_all
from dray.reconcile import Clock

log = logging.getLogger(__name__)

RETRY_SECONDS: Final = 5.0
LOOK_SECONDS: Final = 1.0
LONGEST_LEASE: Final = 24 * 3600.0
PAUSE_SECONDS: Final = 0.1
"""Between two messages of a driver: whoever sends them without end is read no faster."""
AT_ONCE: Final = 16
"""Reports that are looked at in one turn of the loop: one in letters that do not print takes up to a millisecond."""

_NAMES: Final = {messages.HEALTHY: HEALTHY, messages.UNHEALTHY: UNHEALTHY}


class HealthWatch:
    """Keeps the table current. `on_change` hears of devices whose health is another one now."""

    def __init__(
        self, drivers: Drivers, table: HealthTable, clock: Clock, on_change: Callable[[set[DeviceKey]], None]
    ) -> None:
        self._drivers = drivers
        self._table = table
        self._clock = clock
        self._on_change = on_change
        self._pace = HealthPace()
        self._streams: dict[str, tuple[Instance, asyncio.Task[None]]] = {}
        drivers.on_change(self._driver_changed)

    async def run(self) -> None:
        """Lets reports grow old, until cancelled."""
        try:
            while True:
                await self._clock.sleep(LOOK_SECONDS)
                now = self._clock.monotonic()
                expired = self._table.expire(now) if self._table.next_expiry is not None else set()
                self._tell(expired | self._pace.due(now))
        finally:
            tasks = [task for _, task in self._streams.values()]
            await cancel_all(tasks)

    def _driver_changed(self, driver: str) -> None:
        """The stream is that of the instance to use, and of no other."""
        try:
            instance = self._drivers.instance(driver)
        except DriverMissing:
            instance = None
        current = self._streams.get(driver)
        if current is not None and current[0] is not instance:
            current[1].cancel()
            del self._streams[driver]
            self._changed(driver, self._table.forget(driver))
        if instance is not None and instance.identity.health_version is not None and driver not in self._streams:
            task = asyncio.get_running_loop().create_task(self._follow(instance, instance.identity.health_version))
            self._streams[driver] = (instance, task)

    async def _follow(self, instance: Instance, version: str) -> None:
        failure: grpc.StatusCode | None = None
        while True:
            try:
                async for response in contracts.stream(
                    instance.channel, contracts.WATCH_HEALTH[version], messages.NodeWatchResourcesRequest()
                ):
                    if not isinstance(response, messages.NodeWatchResourcesResponse):
                        break  # which is how gRPC hands on what it could not decode
                    failure = None
                    await self._take(instance.driver, response.devices)
                    await self._clock.sleep(PAUSE_SECONDS)
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                    return  # it has no health to report after all, until it registers again
                if error.code() is not failure:  # said when it starts, not every few seconds
                    log.info("health of driver %s: %s: %s", instance.driver, error.code().name, error.details())
                failure = error.code()
            self._changed(instance.driver, self._table.forget(instance.driver))
            await self._clock.sleep(RETRY_SECONDS)

    async def _take(self, driver: str, devices: Sequence[messages.DeviceHealth]) -> None:
        """A message, in as many turns as it takes."""
        changed: set[DeviceKey] = set()
        for start in range(0, len(devices), AT_ONCE):
            reports = _reports(devices[start : start + AT_ONCE])
            changed |= self._table.update(driver, reports, self._clock.monotonic())
            await asyncio.sleep(0)
        self._changed(driver, changed)

    def _changed(self, driver: str, changed: set[DeviceKey]) -> None:
        self._tell(self._pace.take(driver, changed, self._clock.monotonic()))

    def _tell(self, changed: set[DeviceKey]) -> None:
        if changed:
            self._on_change(changed)


def _reports(devices: Sequence[messages.DeviceHealth]) -> list[HealthReport]:
    return [
        HealthReport(
            one.device.pool_name,
            one.device.device_name,
            _NAMES.get(one.health, UNKNOWN),
            one.message,
            _lease(one.health_check_timeout_seconds),
        )
        for one in devices
    ]


def _lease(seconds: int) -> float:
    return min(float(seconds), LONGEST_LEASE) if seconds > 0 else contracts.HEALTH_SECONDS
