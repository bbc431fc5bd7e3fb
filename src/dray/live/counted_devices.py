"""Devices in numbers, by driver and state, counted a few pools at a time: nobody waits while forty thousand are."""

from __future__ import annotations

import asyncio
from typing import Final

from dray.scheduling.cluster import Cluster
from dray.scheduling.device_states import DeviceStates, PoolState

AT_ONCE: Final = 20
"""Nodes or pools that are looked at before others get a turn of the loop."""
STATES: Final = ("free", "held", "tainted", "blocked")

Counts = dict[tuple[str, str], int]
"""By driver and state; `all` is a state, too. A device counts for everything that it is."""


class CountedDevices:
    """What was counted last. `look` counts anew, which costs what changed since."""

    def __init__(self) -> None:
        self._states = DeviceStates()
        self._looking = asyncio.Lock()
        self.counts: Counts = {}

    async def look(self, cluster: Cluster) -> None:
        """Counts, with turns of the loop for others in between. Whoever comes meanwhile waits, and counts again."""
        async with self._looking:
            counts: Counts = {}
            for pools in self._states.portions(cluster, AT_ONCE):
                for pool in pools:
                    _add(counts, pool)
                await asyncio.sleep(0)
            self.counts = dict(sorted(counts.items()))

    def total(self, state: str) -> int:
        """How many devices are in a state, of all drivers."""
        return sum(number for (_, of), number in self.counts.items() if of == state)


def _add(counts: Counts, pool: PoolState) -> None:
    driver = pool.view.driver
    sets = (pool.free, pool.held, pool.tainted, pool.blocked)
    for state, devices in zip(STATES, sets, strict=True):
        counts[driver, state] = counts.get((driver, state), 0) + devices.bit_count()
    counts[driver, "all"] = counts.get((driver, "all"), 0) + len(pool.view.devices)
