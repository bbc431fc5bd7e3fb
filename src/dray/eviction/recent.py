"""Who has left without a confirmation, and when. Guards that share it count each other's evictions, each pod once.

What has to outlive the process is told as a `Past`: how many have left in which minute, how many are on their way, and
since when something is held. Whoever starts anew begins with it, and whoever runs beside others, in processes of their
own, counts what these tell.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable
from typing import Final, Generic, NamedTuple, TypeVar

P = TypeVar("P", bound=Hashable)

SLACK: Final = 1000
"""So many may be kept longer than needed, so that forgetting costs little."""
MINUTE: Final = 60.0
"""Seconds. Those who left in one minute are told together, and what is up so soon after a start was up before it."""


class Departed(NamedTuple):
    """So many have left by a time, and so many of them used devices."""

    by: float
    pods: int
    with_devices: int


class Past(NamedTuple):
    """What a guard that starts anew has to know."""

    departed: tuple[Departed, ...] = ()
    held_since: float | None = None
    """When that came up which is held for longest."""


class Recent(Generic[P]):
    """Pods in the order in which they left. Ticks are of a clock that never jumps."""

    def __init__(self) -> None:
        self._pods: list[P | None] = []
        self._ticks: list[float] = []
        self._device_ticks: list[float] = []
        self._replaced = {False: 0, True: 0}
        """How many of the first of all (False), and of those that used devices (True), somebody came in place of."""
        self._known: set[P | None] = set()
        self._needs: dict[int, float] = {}
        self._minutes: dict[int, Departed] = {}
        self._going: dict[P, bool] = {}
        self._held: dict[int, float] = {}
        self._past: tuple[float, float] | None = None
        """When the guard before held something since, and until when that is believed to be what comes up."""
        self.told_as = ""
        """The name that this process tells its part under."""
        self.told_by: set[str] = set()
        """The controllers of this process that count here."""
        self._others: tuple[Departed, ...] = ()
        self.news = 0
        """How often others, in processes of their own, told something else than before."""
        self.begun = 0
        """How many have been on their way, ever."""
        self.is_restored = False

    def __len__(self) -> int:
        return len(self._pods)

    def begin(self, pod: P, *, uses_devices: bool) -> None:
        """A pod is on its way out."""
        if pod not in self._going and pod not in self._known:
            self._going[pod] = uses_devices
            self.begun += 1

    def stay(self, pod: P) -> None:
        """A pod that was on its way stays for the time being."""
        self._going.pop(pod, None)

    def add(self, pod: P, tick: float, *, uses_devices: bool) -> None:
        """A pod has left."""
        self._going.pop(pod, None)
        if pod not in self._known:
            self._known.add(pod)
            self._add(pod, tick, uses_devices=uses_devices)

    def _add(self, pod: P | None, tick: float, *, uses_devices: bool) -> None:
        tick = max(tick, self._ticks[-1]) if self._ticks else tick
        self._pods.append(pod)
        self._ticks.append(tick)
        if uses_devices:
            self._device_ticks.append(tick)
        minute = int(tick // MINUTE)
        _, pods, with_devices = self._minutes.get(minute, (tick, 0, 0))
        self._minutes[minute] = Departed(tick, pods + 1, with_devices + uses_devices)

    def since(self, tick: float, *, only_devices: bool) -> int:
        """How many have left from that time on, of all or of those that use devices."""
        ticks = self._device_ticks if only_devices else self._ticks
        others = ((with_devices if only_devices else pods) for by, pods, with_devices in self._others if by >= tick)
        return len(ticks) - bisect_left(ticks, tick) + sum(others)

    def unreplaced(self, tick: float, *, only_devices: bool) -> int:
        """The same without those in whose place somebody came; what others tell of theirs nobody knows that of."""
        ticks = self._device_ticks if only_devices else self._ticks
        gone = max(0, self._replaced[only_devices] - bisect_left(ticks, tick))
        return self.since(tick, only_devices=only_devices) - gone

    def replace(self, *, only_devices: bool) -> bool:
        """A pod has come, in place of whoever left first, if there is anybody whose place is empty."""
        is_so = self._replaced[only_devices] < len(self._device_ticks if only_devices else self._ticks)
        self._replaced[only_devices] += is_so
        return is_so

    def hold(self, who: object, since: float | None) -> None:
        """Somebody holds something since a time, or nothing."""
        if since is None:
            self._held.pop(id(who), None)
        else:
            self._held[id(who)] = since

    def came_up(self, tick: float) -> float:
        """When something really came up that was first seen at a time: what is there at a start may have been held."""
        return min(tick, self._past[0]) if self._past is not None and tick <= self._past[1] else tick

    def past(self, tick: float) -> Past:
        """What a guard that starts anew has to know; who is on the way counts as left by now."""
        departed = tuple(self._minutes.values())
        if self._going:
            departed += (Departed(tick, len(self._going), sum(self._going.values())),)
        return Past(departed, min(self._held.values(), default=None))

    def hear(self, others: Iterable[Departed]) -> None:
        """This is what all others tell of who has left: those before a start, and those in other processes."""
        heard = tuple(sorted(others))
        if heard != self._others:
            self._others = heard
            self.news += 1

    def restore(self, held_since: float | None, tick: float) -> None:
        """Begins with what was told before a start, which is now. Once, and before anybody leaves."""
        self.is_restored = True
        if held_since is not None:
            self._past = (held_since, tick + MINUTE)

    @property
    def needed_since(self) -> float:
        """Nobody asks about the time before that."""
        return min(self._needs.values(), default=float("-inf"))

    def forget(self, who: object, tick: float) -> None:
        """Somebody who asks does not ask about the time before that."""
        self._needs[id(who)] = tick
        needed = self.needed_since
        for minute in [minute for minute, departed in self._minutes.items() if departed.by < needed]:
            del self._minutes[minute]
        old = bisect_left(self._ticks, needed)
        if old > SLACK:
            self._known.difference_update(self._pods[:old])
            old_devices = bisect_left(self._device_ticks, needed)
            del self._pods[:old], self._ticks[:old], self._device_ticks[:old_devices]
            for only_devices, gone in ((False, old), (True, old_devices)):
                self._replaced[only_devices] = max(0, self._replaced[only_devices] - gone)
