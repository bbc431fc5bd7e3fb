"""How fast pods are evicted for one taint: ten at once, then no more than the rate, whenever one looks."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from dray.api.generated.core import Event
from dray.process.virtual_loop import LoopClock
from fault_simulation.ledger import Ledger
from fault_simulation.network import Request

BURST: Final = 10


class Pace:
    """Counts the evictions that one controller begins."""

    def __init__(self, account: str, ledger: Ledger, clock: LoopClock, starts: list[float]) -> None:
        """`starts` is when the controller was started; limits start anew with it."""
        self._account = account
        self._ledger = ledger
        self._clock = clock
        self._starts = starts
        self._attempts: dict[str, list[float]] = defaultdict(list)
        self._attempted: set[tuple[str, int]] = set()
        self._renewals: dict[str, list[float]] = defaultdict(list)

    def begun(self, request: Request) -> str | None:
        """The uid of the pod whose eviction a request begins, each time that the controller runs once: it says so."""
        event = request.content
        if request.account != self._account or not isinstance(event, Event) or "Marking" not in event.message:
            return None
        uid = event.involved_object.uid
        if (uid, len(self._starts)) in self._attempted:
            return None
        self._attempted.add((uid, len(self._starts)))
        return uid

    def renew(self, taint: str) -> None:
        """A taint is another one from now on, with a limit of its own: its attributes are not what they were."""
        self._renewals[taint].append(self._clock.monotonic())

    def check(self, taint: str, rate: int) -> None:
        """An eviction begins now for a taint."""
        attempts, now = self._attempts[taint], self._clock.monotonic()
        attempts.append(now)
        for number, first in enumerate(attempts):
            count = len(attempts) - number
            restarts = sum(first <= start <= now for start in self._starts)
            renewals = sum(first < renewal <= now for renewal in self._renewals[taint])
            if count > BURST * (1 + restarts + renewals) + rate * (now - first) + 1:
                self._ledger.blame(f"{count} pods were evicted within {now - first:.2f}s at {rate}/s for {taint}")
                return
