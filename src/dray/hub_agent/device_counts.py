"""Devices by class: how many there are, are free, tainted, blocked. Only pools that changed are looked at."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from dray.allocator.judge import judge_of
from dray.api.resource import DeviceClass
from dray.scheduling.cluster import Cluster
from dray.scheduling.device_states import DeviceStates
from dray.tracker import PoolView


class Count(NamedTuple):
    """The devices of one class, by what they are (`scheduling.device_states`)."""

    total: int = 0
    free: int = 0
    tainted: int = 0
    blocked: int = 0


class _Matched(NamedTuple):
    """What a class selects of one pool, or of a part of one, as a set of positions."""

    view: PoolView
    expressions: tuple[str, ...]
    devices: int


class DeviceCounts:
    """Remembers what each class selects of each pool while both stay as they are."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], _Matched] = {}
        self._states = DeviceStates()

    def count(self, cluster: Cluster, classes: Iterable[DeviceClass]) -> dict[str, Count]:
        """By class name."""
        pools = list(self._states.pools(cluster))
        known, self._known = self._known, {}
        counts: dict[str, Count] = {}
        for entry in classes:
            name, expressions = entry.metadata.name, _expressions(entry)
            total = free = tainted = blocked = 0
            for pool in pools if expressions is not None else ():
                key = (name, id(pool.view))
                matched = known.get(key)
                if matched is None or matched.view is not pool.view or matched.expressions != expressions:
                    matched = _match(pool.view, expressions or ())
                self._known[key] = matched
                total += matched.devices.bit_count()
                free += (matched.devices & pool.free).bit_count()
                tainted += (matched.devices & pool.tainted).bit_count()
                blocked += (matched.devices & pool.blocked).bit_count()
            counts[name] = Count(total, free, tainted, blocked)
        return counts


def _expressions(entry: DeviceClass) -> tuple[str, ...] | None:
    """The class's expressions; None if it has a selector of a kind that nobody here knows, which selects nothing."""
    selectors = [selector.cel for selector in entry.spec.selectors]
    known = [selector.expression for selector in selectors if selector is not None]
    return tuple(known) if len(known) == len(selectors) else None


def _match(view: PoolView, expressions: tuple[str, ...]) -> _Matched:
    judge = judge_of(expressions)
    found = sum(1 << number for number, device in enumerate(view.devices) if judge.judge(device) is None)
    return _Matched(view, expressions, found)
