"""Devices in numbers, by driver and state, counted a few pools at a time: nobody waits while forty thousand are."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import Final

from dray.scheduling.cluster import Cluster
from dray.scheduling.device_states import DeviceStates, PoolState

AT_ONCE: Final = 20
"""Nodes or pools that are looked at before others get a turn of the loop."""
STATES: Final = ("free", "held", "tainted", "blocked")
_POOLS: Final = "pools"

Counts = dict[tuple[str, str], int]
"""By driver and state; `all` is a state, too. A device counts for everything that it is."""


class CountedDevices:
    """What was counted last. `look` counts anew, which costs what changed since."""

    def __init__(self) -> None:
        self._states = DeviceStates()
        self._looking = asyncio.Lock()
        self._by_driver: dict[str, Counter[str]] = {}
        """With the number of pools, so that a driver without any is forgotten."""
        self.counts: Counts = {}

    async def look(self, cluster: Cluster) -> None:
        """Counts, with turns of the loop for others in between. Whoever comes meanwhile waits, and counts again."""
        async with self._looking:
            for differences in self._states.differences(cluster, AT_ONCE):
                for before, after in differences:
                    self._add(before, -1)
                    self._add(after, 1)
                await asyncio.sleep(0)
            self._by_driver = {driver: one for driver, one in sorted(self._by_driver.items()) if one[_POOLS]}
            self.counts = {
                (driver, state): one[state] for driver, one in self._by_driver.items() for state in ("all", *STATES)
            }

    def total(self, state: str) -> int:
        """How many devices are in a state, of all drivers."""
        return sum(number for (_, of), number in self.counts.items() if of == state)

    def _add(self, pools: Iterable[PoolState], step: int) -> None:
        """Pools are counted, or (`step` -1) no longer."""
        for pool in pools:
            counted = self._by_driver.setdefault(pool.view.driver, Counter())
            for state, devices in zip(STATES, (pool.free, pool.held, pool.tainted, pool.blocked), strict=True):
                counted[state] += step * devices.bit_count()
            counted["all"] += step * len(pool.view.devices)
            counted[_POOLS] += step
