"""Health reports for the node: all devices at once, when something changes, and again before a report gets too old.

A driver that does not say anything any more, because its hardware hangs, is not repeated: the node then finds the last
report too old, and the devices unknown.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterable
from typing import Final

from dray.driver.driver import Health
from dray.plugins.generated import health_v1_pb2 as messages

REPEAT_SECONDS: Final = 10.0
"""Well below the 30 s for which a node believes a report."""

_STATUS: Final = {
    None: messages.HealthStatus.UNKNOWN,
    True: messages.HealthStatus.HEALTHY,
    False: messages.HealthStatus.UNHEALTHY,
}


class HealthReports:
    """The last known health, for any number of watchers."""

    def __init__(self, default_pool: str, interval: float) -> None:
        """`interval`: the seconds between two looks of the driver."""
        self._default_pool = default_pool
        self._valid_seconds = 2 * interval + REPEAT_SECONDS
        self._current: tuple[Health, ...] | None = None
        self._by_device: dict[tuple[str, str], Health] = {}
        self._looked_at = time.time()
        self._valid_until = 0.0
        self._changed = asyncio.Event()

    def put(self, reports: Iterable[Health]) -> bool:
        """What is known now; whether it is something else than before."""
        current = tuple(reports)
        self._looked_at = time.time()
        self._valid_until = time.monotonic() + self._valid_seconds
        if current == self._current:
            return False
        self._current = current
        self._by_device = {(report.pool or self._default_pool, report.device): report for report in current}
        self._changed.set()
        self._changed = asyncio.Event()
        return True

    @property
    def begun(self) -> bool:
        """Whether the driver has said anything yet."""
        return self._current is not None

    def find(self, pool: str, device: str) -> Health | None:
        """What is known of a device; None if that is nothing, or too old."""
        return self._by_device.get((pool, device)) if time.monotonic() < self._valid_until else None

    async def watch(self) -> AsyncIterator[messages.NodeWatchResourcesResponse]:
        """Reports without end, the first one at once."""
        changed = self._changed
        yield self._message()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REPEAT_SECONDS):
                    await changed.wait()
            if changed.is_set() or time.monotonic() < self._valid_until:
                changed = self._changed
                yield self._message()

    def _message(self) -> messages.NodeWatchResourcesResponse:
        now = int(self._looked_at)
        answer = messages.NodeWatchResourcesResponse()
        for report in self._current or ():
            answer.devices.add(
                device=messages.DeviceIdentifier(
                    pool_name=report.pool or self._default_pool, device_name=report.device
                ),
                health=_STATUS[report.healthy],
                last_updated_time=now,
                health_check_timeout_seconds=int(report.timeout),
                message=report.message,
            )
        return answer
