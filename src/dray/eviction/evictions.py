"""The pods that must leave, each when it is due and when the limiter of one of its taints lets it.

set(pod, causes) ─▶ waiting for its time ─▶ in line at each of its taints ─▶ taken
                         │                        │
                         └──── set(pod, none) ────┘ cancelled, at any point
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Hashable, Mapping
from typing import Generic, NamedTuple, TypeVar

from dray.eviction.causes import Cause
from dray.eviction.limiter import Limiter

P = TypeVar("P", bound=Hashable)


class Progress(NamedTuple):
    """How far the eviction for one rule is."""

    pending: int
    evicted: int


class Evictions(Generic[P]):
    """All evictions that are planned or under way. Times are seconds since 1970, handed in."""

    def __init__(self) -> None:
        self._causes: dict[P, Mapping[int, Cause]] = {}
        self._due: list[tuple[float, int, P, int]] = []
        self._lines: dict[int, deque[P]] = {}
        self._in_line: dict[P, set[int]] = {}
        self._limiters: dict[int, Limiter] = {}
        self._evicted: dict[str, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._causes)

    @property
    def active_limiters(self) -> int:
        """How many taints are being rationed now (5055-94)."""
        return len(self._limiters)

    def is_pending(self, pod: P) -> bool:
        """Whether a pod is going to be evicted."""
        return pod in self._causes

    def progress(self, rule: str) -> Progress:
        """Pods that still must leave because of a rule, and those that left since this started."""
        pending = sum(any(cause.rule == rule for cause in causes.values()) for causes in self._causes.values())
        return Progress(pending, self._evicted.get(rule, 0))

    def set(self, pod: P, causes: Mapping[int, Cause], now: float) -> bool:
        """A pod must leave for these causes, or (none) may stay. True if that is a change of mind."""
        before = self._causes.get(pod)
        if not causes:
            if before is None:
                return False
            self._drop(pod)
            return True
        if before == causes:
            return False
        self._causes[pod] = dict(causes)
        for taint, cause in causes.items():
            limiter = self._limiters.get(taint)
            if limiter is not None:
                limiter.set_rate(cause.rate, now)
            known = before.get(taint) if before else None
            if known is None or known.due != cause.due:
                self._leave_line(pod, taint)
                self._count += 1
                heapq.heappush(self._due, (cause.due, self._count, pod, taint))
        for taint in set(before or ()) - set(causes):
            self._leave_line(pod, taint)
        return before is None

    def take(self, now: float) -> list[tuple[P, Cause]]:
        """The pods to evict now, each with the cause that was fastest."""
        self._line_up(now)
        taken: list[tuple[P, Cause]] = []
        # The fastest limiter serves first, so that a slow taint does not hold back what another wants gone (5055-92).
        for taint in sorted(self._lines, key=lambda each: -self._rate(each)):
            taken.extend(self._serve(taint, now))
        self._forget_idle(now)
        return taken

    def next_time(self, now: float) -> float | None:
        """When `take` may have something; None if nothing is planned."""
        times = [self._limiter(taint, now).free_at(now) for taint, line in self._lines.items() if line]
        while self._due and not self._is_current(self._due[0]):
            heapq.heappop(self._due)
        if self._due:
            times.append(self._due[0][0])
        return min(times, default=None)

    def _line_up(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            entry = heapq.heappop(self._due)
            if self._is_current(entry):
                _, _, pod, taint = entry
                self._lines.setdefault(taint, deque()).append(pod)
                self._in_line.setdefault(pod, set()).add(taint)

    def _is_current(self, entry: tuple[float, int, P, int]) -> bool:
        due, _, pod, taint = entry
        cause = self._causes.get(pod, {}).get(taint)
        return cause is not None and cause.due == due and taint not in self._in_line.get(pod, ())

    def _serve(self, taint: int, now: float) -> list[tuple[P, Cause]]:
        line = self._lines[taint]
        limiter = self._limiter(taint, now)
        served = []
        while line and limiter.free_at(now) <= now:
            pod = line.popleft()
            if taint not in self._in_line.get(pod, ()):
                continue  # evicted for another taint, or cancelled
            limiter.take(now)
            cause = self._causes[pod][taint]
            for other in self._causes[pod].values():
                if other.rule is not None:
                    self._evicted[other.rule] = self._evicted.get(other.rule, 0) + 1
            self._drop(pod)
            served.append((pod, cause))
        if not line:
            del self._lines[taint]
        return served

    def _limiter(self, taint: int, now: float) -> Limiter:
        limiter = self._limiters.get(taint)
        if limiter is None:
            limiter = self._limiters[taint] = Limiter(self._rate(taint))
            limiter.free_at(now)
        return limiter

    def _rate(self, taint: int) -> int:
        for pod in self._lines.get(taint, ()):
            cause = self._causes.get(pod, {}).get(taint)
            if cause is not None:
                return cause.rate
        return 1

    def _leave_line(self, pod: P, taint: int) -> None:
        places = self._in_line.get(pod)
        if places is not None:
            places.discard(taint)

    def _drop(self, pod: P) -> None:
        self._causes.pop(pod, None)
        self._in_line.pop(pod, None)

    def _forget_idle(self, now: float) -> None:
        for taint in [
            each for each, limiter in self._limiters.items() if each not in self._lines and limiter.is_idle(now)
        ]:
            del self._limiters[taint]
