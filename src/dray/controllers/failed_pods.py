"""Pods that fail again and again in the same place are replaced later and later, so that nobody runs in circles."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

from dray.api.backoff import Backoff
from dray.api.meta import Object

FAILURES = Backoff(first=1.0, longest=900.0)
"""How long a failed pod stays before the next one takes its place, if there were failures before."""


class _Failures(NamedTuple):
    number: int
    until: float


class FailedPods:
    """Counts failures by workload and place; a changed workload starts anew, and so does a place after a long time."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._known: dict[str, tuple[int, dict[Hashable, _Failures]]] = {}
        """By the uid of a workload: its generation, and the failures since it has that, by place."""

    def wait(self, workload: Object, place: Hashable) -> float:
        """For how many seconds the next failed pod in a place has to stay; 0 if it may go."""
        known = self._places(workload).get(place)
        return max(known.until - self._monotonic(), 0.0) if known is not None else 0.0

    def count(self, workload: Object, place: Hashable) -> None:
        """A failed pod goes."""
        places, now = self._places(workload), self._monotonic()
        known = places.get(place)
        number = known.number + 1 if known is not None and now <= known.until + FAILURES.longest else 1
        places[place] = _Failures(number, now + FAILURES.after(number))
        self._known[workload.metadata.uid] = (workload.metadata.generation, places)

    def _places(self, workload: Object) -> dict[Hashable, _Failures]:
        generation, places = self._known.get(workload.metadata.uid, (0, {}))
        return places if generation == workload.metadata.generation else {}

    def forget(self, workload: Object) -> None:
        """The workload is gone."""
        self._known.pop(workload.metadata.uid, None)
