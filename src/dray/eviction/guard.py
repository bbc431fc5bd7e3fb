"""Evictions that are so many that they may be a mistake are held until somebody confirms them. Pure.

    want(pod, taints) ─▶ counted by taint ─▶ judge() ─┬─ few, or confirmed: allowed
                                                      └─ too many: held, until confirmed or few again

What counts is what a taint has evicted plus what it would evict. Nothing is allowed before it was judged, so that the
first of many pods are not gone before the last ones are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable
from typing import Generic, NamedTuple, TypeVar

from dray.eviction.settings import Limit

K = TypeVar("K", bound=Hashable)
P = TypeVar("P", bound=Hashable)


class Hold(NamedTuple):
    """What is held: so many pods, out of so many that could be evicted."""

    pods: int
    of: int
    limit: Limit

    def __str__(self) -> str:
        pods = "1 pod" if self.pods == 1 else f"{self.pods} pods"
        return f"{pods} of {self.of} would be evicted, more than {self.limit}"


class Guard(Generic[K, P]):
    """What each taint wants to evict, and whether it may. `K` tells taints apart, `P` pods."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._wants: dict[P, frozenset[K]] = {}
        self._pods: dict[K, dict[P, None]] = {}
        self._going: set[P] = set()
        self._evicted: Counter[K] = Counter()
        self._allowed: set[K] = set()
        self._unsure: set[K] = set()
        self.held: dict[K, Hold] = {}

    @property
    def is_sure(self) -> bool:
        """Whether `judge` has nothing to do."""
        return not self._unsure

    def want(self, pod: P, taints: Collection[K]) -> None:
        """A pod must leave for these taints; for none if it may stay, or is gone."""
        before, after = self._wants.get(pod, frozenset()), frozenset(taints)
        if before == after:
            return
        if after:
            self._wants[pod] = after
        else:
            del self._wants[pod]
            if pod in self._going:
                self._going.discard(pod)
                self._evicted.update(before)
        for taint in before - after:
            self._discard(taint, pod)
        for taint in after - before:
            self._pods.setdefault(taint, {})[pod] = None
        self._unsure |= before ^ after

    def mark_going(self, pod: P, *, is_so: bool) -> None:
        """A pod is being evicted, or (not so) stays for the time being. One that goes counts as evicted when gone."""
        (self._going.add if is_so else self._going.discard)(pod)

    def reset(self, taint: K) -> None:
        """The taint is another one now, or gone: it is counted and judged anew."""
        self._evicted.pop(taint, None)
        self._allowed.discard(taint)
        self._unsure.add(taint)

    def review(self, taint: K) -> None:
        """Somebody may have confirmed it."""
        self._unsure.add(taint)

    def judge(self, of: int, is_confirmed: Callable[[K], bool]) -> set[K]:
        """Decides about every taint that has changed, given how many pods could be evicted in all.

        Returns the taints that are allowed or held now and were not before, or the other way round.
        """
        changed = set()
        for taint in self._unsure:
            before = taint in self._allowed, taint in self.held
            self._allowed.discard(taint)
            self.held.pop(taint, None)
            self._judge_one(taint, of, is_confirmed)
            if before != (taint in self._allowed, taint in self.held):
                changed.add(taint)
        self._unsure.clear()
        return changed

    def allows(self, taint: K) -> bool:
        """Whether pods may be evicted for a taint."""
        return taint in self._allowed

    def pods(self, taint: K) -> Collection[P]:
        """The pods that must leave for a taint."""
        return self._pods.get(taint, {}).keys()

    def _judge_one(self, taint: K, of: int, is_confirmed: Callable[[K], bool]) -> None:
        pending = len(self._pods.get(taint, ()))
        if not pending:
            return
        gone = self._evicted[taint]
        if self._limit.is_passed(pending + gone, of + gone) and not is_confirmed(taint):
            self.held[taint] = Hold(pending, of, self._limit)
        else:
            self._allowed.add(taint)

    def _discard(self, taint: K, pod: P) -> None:
        pods = self._pods[taint]
        del pods[pod]
        if not pods:
            del self._pods[taint]
