"""How often it is told that devices of a driver have another health. Pure: time is handed in.

A change is told at once, for pods show it. A driver that changes its mind all the time would have the status of its
pods written each time; what it says then is put together, and told every few seconds.
"""

from __future__ import annotations

from typing import Final

from dray.node.health import DeviceKey

AT_ONCE: Final = 5
"""So many changes of a driver in a row are told as they come."""
PAUSE_SECONDS: Final = 5.0
"""After those, there is one in so many seconds."""


class HealthPace:
    """What is told of each driver, and what waits to be."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[DeviceKey]] = {}
        self._free_at: dict[str, float] = {}
        """When all that was told counts no more."""

    def take(self, driver: str, changed: set[DeviceKey], now: float) -> set[DeviceKey]:
        """Devices of a driver have changed: those that are told now."""
        if changed:
            self._waiting.setdefault(driver, set()).update(changed)
        return self._told(driver, now)

    def due(self, now: float) -> set[DeviceKey]:
        """What has waited long enough."""
        self._free_at = {driver: at for driver, at in self._free_at.items() if at > now}
        return set[DeviceKey]().union(*(self._told(driver, now) for driver in list(self._waiting)))

    def _told(self, driver: str, now: float) -> set[DeviceKey]:
        free_at = max(self._free_at.get(driver, now), now)
        if driver not in self._waiting or free_at - now > (AT_ONCE - 1) * PAUSE_SECONDS:
            return set()
        self._free_at[driver] = free_at + PAUSE_SECONDS
        return self._waiting.pop(driver)
