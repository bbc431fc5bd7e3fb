"""Pods that fail again and again in the same place are replaced later and later, so that nobody runs in circles."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

from dray.api.backoff import Backoff
from dray.api.meta import Object

FAILURES = Backoff(first=1.0, longest=900.0)
"""How long a failed pod stays before the next one takes its place, if there were failures before."""


class _Place(NamedTuple):
    """A workload's template in one place: a node, or a number."""

    generation: int
    place: Hashable


class _Failures(NamedTuple):
    number: int
    until: float


class FailedPods:
    """Counts failures by workload and place; a changed workload starts anew, and so does a place after a long time."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._known: dict[str, dict[_Place, _Failures]] = {}

    def wait(self, workload: Object, place: Hashable) -> float:
        """For how many seconds the next failed pod in a place has to stay; 0 if it may go."""
        meta = workload.metadata
        known = self._known.get(meta.uid, {}).get(_Place(meta.generation, place))
        return max(known.until - self._monotonic(), 0.0) if known is not None else 0.0

    def count(self, workload: Object, place: Hashable) -> None:
        """A failed pod goes."""
        meta, now = workload.metadata, self._monotonic()
        places = {key: one for key, one in self._known.get(meta.uid, {}).items() if key.generation == meta.generation}
        known = places.get(_Place(meta.generation, place))
        number = known.number + 1 if known is not None and now <= known.until + FAILURES.longest else 1
        places[_Place(meta.generation, place)] = _Failures(number, now + FAILURES.after(number))
        self._known[meta.uid] = places

    def forget(self, workload: Object) -> None:
        """The workload is gone."""
        self._known.pop(workload.metadata.uid, None)
