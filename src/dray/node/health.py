"""What drivers say of the health of their devices, as long as it counts. Pure: time is handed in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from dray.api.visible import visible_start

HEALTHY: Final = "Healthy"
UNHEALTHY: Final = "Unhealthy"
UNKNOWN: Final = "Unknown"
LONGEST_MESSAGE: Final = 1024
MOST_DEVICES: Final = 10_000
"""Of one driver: what it makes up beyond that, or under names that no device has, leaves others alone."""
LONGEST_NAME: Final = 512


class DeviceKey(NamedTuple):
    """A device on this node."""

    driver: str
    pool: str
    device: str


class HealthReport(msgspec.Struct, frozen=True):
    """What a driver says of one device, and for how many seconds that counts."""

    pool: str
    device: str
    health: str
    message: str
    seconds: float


class Health(msgspec.Struct, frozen=True):
    """What is known of a device now."""

    health: str = UNKNOWN
    message: str = ""


NOTHING_KNOWN: Final = Health()


class HealthTable:
    """The last report per device."""

    def __init__(self) -> None:
        self._known: dict[DeviceKey, tuple[Health, float]] = {}
        self._counts: Counter[str] = Counter()

    def get(self, key: DeviceKey) -> Health:
        """The health of a device; unknown if nobody said anything that still counts."""
        found = self._known.get(key)
        return found[0] if found is not None else NOTHING_KNOWN

    def update(self, driver: str, reports: Iterable[HealthReport], now: float) -> set[DeviceKey]:
        """Takes reports of a driver; the devices whose health is another one now."""
        changed = set()
        for report in reports:
            key = DeviceKey(driver, report.pool, report.device)
            health = Health(report.health, visible_start(report.message, LONGEST_MESSAGE))
            if key not in self._known:
                if self._counts[driver] >= MOST_DEVICES or len(report.pool) + len(report.device) > LONGEST_NAME:
                    continue
                self._counts[driver] += 1
            if self.get(key) != health:
                changed.add(key)
            self._known[key] = (health, now + report.seconds)
        return changed

    def expire(self, now: float) -> set[DeviceKey]:
        """Forgets what no longer counts; the devices that are unknown from now on."""
        due = {key for key, (_, until) in self._known.items() if until <= now}
        return self._forget(due)

    def forget(self, driver: str) -> set[DeviceKey]:
        """The driver no longer reports: its devices are unknown from now on."""
        return self._forget({key for key in self._known if key.driver == driver})

    @property
    def next_expiry(self) -> float | None:
        """When something stops counting, if it is not reported again."""
        return min((until for _, until in self._known.values()), default=None)

    def _forget(self, keys: set[DeviceKey]) -> set[DeviceKey]:
        changed = {key for key in keys if self.get(key) != NOTHING_KNOWN}
        for key in keys:
            del self._known[key]
            self._counts[key.driver] -= 1
        return changed
