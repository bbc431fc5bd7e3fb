"""The pods that must leave, each when it is due and when the limiter of one of its taints lets it.

    set(pod, causes) ─▶ waiting for its time ─▶ in line at each of its taints ─▶ taken ─▶ finish(pod)
                             │ ▲                      │                            │
                             │ └────────── postpone(pod): a policy puts it off ────┤
                             └───── set(pod, none) or finish(pod): out, from anywhere ┘

Deadlines are seconds since 1970 (`now`) for device taints; rates are kept by a clock that never jumps (`tick`), as are
the deadlines of node taints, which count from when they were seen.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Collection, Hashable, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from dray.eviction.causes import Cause, Causes, TaintKey
from dray.eviction.limiter import CATCH_UP, ROUNDING, Limiter

P = TypeVar("P", bound=Hashable)

SET_BACK: Final = 1.0
"""Seconds by which the wall clock goes back when somebody sets it, and does not only trim it."""
STALE_AT_ONCE: Final = 500
"""Deadlines that hold no longer and are passed over at a time: those of a rule that is gone may be many."""


class _Line(Generic[P]):
    """The pods that are due for one taint, in order, with the tick at which each came."""

    __slots__ = ("limiter", "number", "pods", "rate", "stamp", "taint")

    def __init__(self, taint: TaintKey, number: int) -> None:
        self.taint = taint
        self.number = number
        self.stamp = 0
        """Of when it was noted last when the line may move."""
        self.pods: deque[tuple[P, float]] = deque()
        self.rate: int | None = 1
        self.limiter = Limiter(1)

    def set_rate(self, rate: int | None, tick: float) -> None:
        self.rate = rate
        self.limiter.set_rate(rate, tick)


class Taken(NamedTuple, Generic[P]):
    """A pod whose time has come, and which of its causes was the first to let it go."""

    pod: P
    cause: Cause


class Evictions(Generic[P]):
    """All evictions that are planned or under way."""

    def __init__(self) -> None:
        self._causes: dict[P, Causes] = {}
        self._due: list[tuple[float, int, P, TaintKey]] = []
        self._lines: dict[TaintKey, _Line[P]] = {}
        self._free: list[tuple[float, int, _Line[P]]] = []
        """When the first of each line may go, or an empty one is forgotten; with the stamp of the line by then."""
        self._worth: list[tuple[float, int, _Line[P]]] = []
        """When it is worth to ask for that."""
        self._ready: list[tuple[float, int, int, _Line[P]]] = []
        """The lines whose time has come, the fastest first."""
        self._in_line: dict[P, set[TaintKey]] = {}
        self._taken: set[P] = set()
        self._postponed: dict[P, float] = {}
        self._ahead: float | None = None
        """How far the wall clock is ahead of the one that never jumps."""
        self._count = 0

    def __len__(self) -> int:
        return len(self._causes)

    @property
    def active_limiters(self) -> int:
        """How many taints are being rationed now (5055-94)."""
        return len(self._lines)

    @property
    def pods(self) -> Collection[P]:
        """All pods that must leave, now or later."""
        return self._causes.keys()

    def causes(self, pod: P) -> Causes:
        """Why a pod must leave; nothing if it may stay."""
        return self._causes.get(pod, {})

    def set(self, pod: P, causes: Causes, tick: float) -> bool:
        """A pod must leave for these causes, or (none) may stay. True if that is a change of mind."""
        before = self._causes.get(pod)
        if not causes:
            return self.finish(pod)
        if before == causes:
            return False
        self._causes[pod] = causes
        if pod in self._postponed and causes.keys() - (before or {}).keys():
            self.recall(pod)  # what was put off was not put off for this
        for taint, cause in causes.items():
            line = self._lines.get(taint)
            if line is not None and line.rate != cause.rate:
                line.set_rate(cause.rate, tick)
                self._note_line(line)
            known = before.get(taint) if before else None
            if pod not in self._taken and (known is None or known.due != cause.due):
                self._leave_line(pod, taint)
                self._wait_for(pod, cause)
        for taint in before or ():
            if taint not in causes:
                self._leave_line(pod, taint)
        return before is None

    def finish(self, pod: P) -> bool:
        """A pod has left, or may stay after all. True if it was to leave."""
        self._in_line.pop(pod, None)
        self._taken.discard(pod)
        self._postponed.pop(pod, None)
        return self._causes.pop(pod, None) is not None

    def postpone(self, taken: Taken[P], until: float) -> None:
        """A pod that was taken does not leave before some time. Its place at the limiter is free for another."""
        pod = taken.pod
        if pod not in self._taken:
            return
        self._taken.discard(pod)
        line = self._lines.get(taken.cause.taint)
        if line is not None:
            line.limiter.give_back()
            self._note_line(line)
        self._postponed[pod] = until
        for cause in self._causes[pod].values():
            self._wait_for(pod, cause)

    def recall(self, pod: P) -> None:
        """What was put off is due as if it had not been."""
        if self._postponed.pop(pod, None) is not None:
            for cause in self._causes.get(pod, {}).values():
                self._wait_for(pod, cause)

    @property
    def postponed(self) -> Mapping[P, float]:
        """The pods that were put off and have not been taken since, and until when."""
        return self._postponed

    def take(self, now: float, tick: float, limit: int | None = None) -> list[Taken[P]]:
        """The pods to evict now, each with the cause that was fastest: all, or so many.

        What is left is due at once, as `wait` says.
        """
        self._follow_clock(now - tick)
        self._line_up(now, tick, limit)
        taken: list[Taken[P]] = []
        while self._free and self._free[0][0] <= tick + ROUNDING:
            _, stamp, line = heapq.heappop(self._free)
            if self._is_noted(stamp, line) and not self._forget_idle(line, tick):
                # The fastest limiter serves first, so that a slow taint does not hold back what another wants gone
                # (5055-92).
                heapq.heappush(self._ready, (-_speed(line.rate), line.number, stamp, line))
        while self._ready and len(taken) != limit:
            _, _, stamp, line = heapq.heappop(self._ready)
            if not self._is_noted(stamp, line):
                continue
            taken.extend(self._serve(line, tick, None if limit is None else limit - len(taken)))
            if not self._forget_idle(line, tick):
                self._note_line(line)
        return taken

    def wait(self, now: float, tick: float) -> float | None:
        """After how many seconds `take` may have something; None if nothing is planned."""
        while self._worth and not self._is_noted(*self._worth[0][1:]):
            heapq.heappop(self._worth)
        waits = [max(at - tick, 0.0) for at, _, _ in self._worth[:1]]
        for _ in range(STALE_AT_ONCE):
            if not self._due or self._is_current(self._due[0]):
                break
            heapq.heappop(self._due)
        if self._due:
            waits.append(max(self._due[0][0] - now, 0.0))
        return min(waits, default=None)

    def _follow_clock(self, ahead: float) -> None:
        """Whoever was put off waits no longer than was meant when the wall clock is set back."""
        jump = 0.0 if self._ahead is None else ahead - self._ahead
        if self._ahead is None or abs(jump) > SET_BACK:
            self._ahead = ahead
        if jump < -SET_BACK:
            for pod in self._postponed:
                self._postponed[pod] += jump
                for cause in self._causes[pod].values():
                    self._wait_for(pod, cause)

    def _line_up(self, now: float, tick: float, limit: int | None) -> None:
        seen = 0
        longer: dict[TaintKey, _Line[P]] = {}
        while self._due and self._due[0][0] <= now and seen != limit:
            seen += 1
            entry = heapq.heappop(self._due)
            if not self._is_current(entry):
                continue
            _, _, pod, taint = entry
            line = self._lines.get(taint)
            if line is None:
                self._count += 1
                line = self._lines[taint] = _Line(taint, self._count)
                line.set_rate(self._causes[pod][taint].rate, tick)
            line.pods.append((pod, tick))
            self._in_line.setdefault(pod, set()).add(taint)
            longer[taint] = line
        for line in longer.values():
            self._note_line(line)

    def _note_line(self, line: _Line[P]) -> None:
        """A line may move at another time than before."""
        self._count += 1
        line.stamp = self._count
        if not line.pods:
            heapq.heappush(self._free, (line.limiter.idle_at, line.stamp, line))
            return
        since = line.pods[0][1]
        heapq.heappush(self._free, (line.limiter.free_at(since), line.stamp, line))
        heapq.heappush(self._worth, (line.limiter.worth_at(since, len(line.pods)), line.stamp, line))

    def _forget_idle(self, line: _Line[P], tick: float) -> bool:
        """Drops a line that a new one would be no different from; whether it did."""
        is_idle = not line.pods and line.limiter.is_idle(tick)
        if is_idle:
            del self._lines[line.taint]
        return is_idle

    def _is_noted(self, stamp: int, line: _Line[P]) -> bool:
        return line.stamp == stamp and self._lines.get(line.taint) is line

    def _wait_for(self, pod: P, cause: Cause) -> None:
        self._count += 1
        heapq.heappush(self._due, (self._due_at(pod, cause), self._count, pod, cause.taint))

    def _due_at(self, pod: P, cause: Cause) -> float:
        until = self._postponed.get(pod)
        return cause.due if until is None or until < cause.due else until

    def _is_current(self, entry: tuple[float, int, P, TaintKey]) -> bool:
        due, _, pod, taint = entry
        causes = self._causes.get(pod)
        if causes is None or pod in self._taken or taint in self._in_line.get(pod, ()):
            return False
        cause = causes.get(taint)
        return cause is not None and self._due_at(pod, cause) == due

    def _serve(self, line: _Line[P], tick: float, limit: int | None) -> list[Taken[P]]:
        taint = line.taint
        served: list[Taken[P]] = []
        while line.pods and len(served) != limit:
            pod, since = line.pods[0]
            if taint not in self._in_line.get(pod, ()):
                line.pods.popleft()  # evicted for another taint, or cancelled
                continue
            slot = line.limiter.free_at(since)
            if slot > tick + ROUNDING:
                break
            line.pods.popleft()
            # A pod that waits in line keeps its slot, so that waking up late does not lower the rate.
            line.limiter.take(max(slot, tick - CATCH_UP))
            self._in_line.pop(pod, None)
            self._postponed.pop(pod, None)
            self._taken.add(pod)
            served.append(Taken(pod, self._causes[pod][taint]))
        return served

    def _leave_line(self, pod: P, taint: TaintKey) -> None:
        places = self._in_line.get(pod)
        if places is not None:
            places.discard(taint)


def _speed(rate: int | None) -> float:
    return float("inf") if rate is None else rate
