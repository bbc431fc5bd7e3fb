"""Identities of taints: what lets an eviction go on when its taint is edited (5055-80)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import TypeAlias

import msgspec

from dray.api.resource import DeviceTaint
from dray.tracker.view import TrackedTaint

_Attributes: TypeAlias = tuple[str, str, str, str | None, str, bytes | None, int | None]

TaintHits: TypeAlias = list[tuple[TrackedTaint, int]]
"""Taints that rules put on devices of a slice, with the positions of these devices."""


class TaintIds:
    """Numbers for taints that have not been seen before."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def next(self) -> int:
        """A number that was never given."""
        return next(self._numbers)


class PublishedTaints:
    """The taints in the slices of one pool. Taints with the same attributes are one, on however many devices."""

    def __init__(self, ids: TaintIds) -> None:
        self._ids = ids
        self._tracked: dict[_Attributes, TrackedTaint] = {}

    def refresh(self, taints: Iterable[DeviceTaint]) -> None:
        """Make these the taints of the pool: known ones keep their identity, others are forgotten or new."""
        known, self._tracked = self._tracked, {}
        for taint in taints:
            attributes = _attributes(taint)
            if attributes not in self._tracked:
                tracked = known.get(attributes) or TrackedTaint(self._ids.next(), taint)
                self._tracked[attributes] = tracked

    def tracked(self, taint: DeviceTaint) -> TrackedTaint:
        """The identity of a taint that was given to `refresh`."""
        return self._tracked[_attributes(taint)]


def spread(hits: TaintHits, size: int) -> list[tuple[TrackedTaint, ...]]:
    """The taints at each position of a slice. They are shared if, as mostly, all devices have the same."""
    everywhere = (1 << size) - 1
    if all(mask == everywhere for _, mask in hits):
        return [tuple([taint for taint, _ in hits])] * size
    return [tuple([taint for taint, mask in hits if mask >> position & 1]) for position in range(size)]


def _attributes(taint: DeviceTaint) -> _Attributes:
    data = None if taint.data is None else msgspec.json.encode(taint.data, order="deterministic")
    return (
        taint.key,
        taint.value,
        taint.effect,
        taint.time_added,
        taint.description,
        data,
        taint.evictions_per_second,
    )
