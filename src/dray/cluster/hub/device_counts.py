"""Devices by class: how many there are, how many are free, how many tainted. Only pools that changed are looked at."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from dray.allocator.judge import judge_of
from dray.api.resource import DeviceClass
from dray.api.resource.taint import EFFECT_NONE
from dray.tracker import DeviceId, PoolView

PoolKey = tuple[str, str]


class Count(NamedTuple):
    """The devices of one class. A device that is neither held nor tainted is free."""

    total: int = 0
    free: int = 0
    tainted: int = 0


class _Matched(NamedTuple):
    """What a class selects of one pool."""

    view: PoolView
    expressions: tuple[str, ...]
    untainted: frozenset[DeviceId]
    total: int
    tainted: int


class DeviceCounts:
    """Remembers what each class selects of each pool while both stay as they are."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, PoolKey], _Matched] = {}

    def count(
        self,
        pools: Mapping[PoolKey, PoolView],
        classes: Iterable[DeviceClass],
        held: Collection[DeviceId],
    ) -> dict[str, Count]:
        """By class name. Pools that cannot be allocated from count for nothing."""
        usable = {key: view for key, view in pools.items() if view.problem is None}
        busy: dict[PoolKey, list[DeviceId]] = {}
        for device in held:
            busy.setdefault((device.driver, device.pool), []).append(device)
        known, self._known = self._known, {}
        counts: dict[str, Count] = {}
        for entry in classes:
            name, expressions = entry.metadata.name, _expressions(entry)
            total = free = tainted = 0
            for key, view in usable.items() if expressions is not None else ():
                matched = known.get((name, key))
                if matched is None or matched.view is not view or matched.expressions != expressions:
                    matched = _match(view, expressions or ())
                self._known[name, key] = matched
                total += matched.total
                tainted += matched.tainted
                free += len(matched.untainted) - sum(device in matched.untainted for device in busy.get(key, ()))
            counts[name] = Count(total, free, tainted)
        return counts


def _expressions(entry: DeviceClass) -> tuple[str, ...] | None:
    """The class's expressions; None if it has a selector of a kind that nobody here knows, which selects nothing."""
    selectors = [selector.cel for selector in entry.spec.selectors]
    known = [selector.expression for selector in selectors if selector is not None]
    return tuple(known) if len(known) == len(selectors) else None


def _match(view: PoolView, expressions: tuple[str, ...]) -> _Matched:
    judge = judge_of(expressions)
    found = [device for device in view.devices if judge.judge(device) is None]
    tainted = [device for device in found if any(tracked.effect != EFFECT_NONE for tracked in device.taints)]
    untainted = frozenset(device.id for device in found) - frozenset(device.id for device in tainted)
    return _Matched(view, expressions, untainted, len(found), len(tainted))
