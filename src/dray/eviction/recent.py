"""Who has left without a confirmation, and when. Guards that share it count each other's evictions, each pod once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

P = TypeVar("P", bound=Hashable)

SLACK: Final = 1000
"""So many may be kept longer than needed, so that forgetting costs little."""


class Recent(Generic[P]):
    """Pods in the order in which they left. Ticks are of a clock that never jumps."""

    def __init__(self) -> None:
        self._pods: list[P] = []
        self._ticks: list[float] = []
        self._device_ticks: list[float] = []
        self._known: set[P] = set()
        self._needs: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def add(self, pod: P, tick: float, *, uses_devices: bool) -> None:
        """A pod has left."""
        if pod in self._known:
            return
        tick = max(tick, self._ticks[-1]) if self._ticks else tick
        self._known.add(pod)
        self._pods.append(pod)
        self._ticks.append(tick)
        if uses_devices:
            self._device_ticks.append(tick)

    def since(self, tick: float, *, only_devices: bool) -> int:
        """How many have left from that time on, of all or of those that use devices."""
        ticks = self._device_ticks if only_devices else self._ticks
        return len(ticks) - bisect_left(ticks, tick)

    def forget(self, who: object, tick: float) -> None:
        """Somebody who asks does not ask about the time before that."""
        self._needs[id(who)] = tick
        needed = min(self._needs.values())
        old = bisect_left(self._ticks, needed)
        if old > SLACK:
            self._known.difference_update(self._pods[:old])
            del self._pods[:old], self._ticks[:old]
            del self._device_ticks[: bisect_left(self._device_ticks, needed)]
