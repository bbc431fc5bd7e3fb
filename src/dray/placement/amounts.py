"""How much of each resource the clusters have, in order: the least and the most are found without looking at all."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple


class Extremes(NamedTuple):
    """The least and the most that any of some clusters has."""

    least: float
    most: float


class Amounts:
    """What clusters have, resource by resource, kept in order."""

    def __init__(self) -> None:
        self._in_order: dict[str, list[tuple[float, str]]] = {}

    def replace(self, cluster: str, old: Mapping[str, float], new: Mapping[str, float]) -> None:
        """A cluster has other amounts now."""
        if old == new:
            return
        for resource, amount in old.items():
            entries = self._in_order[resource]
            del entries[bisect_left(entries, (amount, cluster))]
        for resource, amount in new.items():
            insort(self._in_order.setdefault(resource, []), (amount, cluster))

    def extremes(self, resource: str, counts: Callable[[str], bool]) -> Extremes | None:
        """Those among the clusters that count; None if none of them says how much it has."""
        entries = self._in_order.get(resource, [])
        least = _first(entries, counts)
        most = _first(reversed(entries), counts) if least is not None else None
        return Extremes(least, most) if least is not None and most is not None else None


def _first(entries: Iterable[tuple[float, str]], counts: Callable[[str], bool]) -> float | None:
    return next((amount for amount, cluster in entries if counts(cluster)), None)
