"""Who blocks the event loop: a thread that looks whether the loop still turns, and says what it is stuck in.

One loop serves everybody, so a turn of a second is a fault. It is logged with the stack of the culprit, once, and
counted, so that it can be found and alarmed on.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

STALL_SECONDS = 1.0
BEAT_SECONDS = 0.1
LOOK_SECONDS = 0.25

log = logging.getLogger(__name__)


@contextmanager
def watched(registry: CollectorRegistry) -> Iterator[None]:
    """Watches the running loop, and shows what is counted in a registry."""
    watchdog = Watchdog()
    registry.register(watchdog)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.stop()


class Watchdog(Collector):
    """Watches the loop that it is started on, from a thread of its own."""

    def __init__(self, stall_seconds: float = STALL_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._stall_seconds = stall_seconds
        self._clock = clock
        self._beat_at = clock()
        self._worked_until = 0.0
        self._told_of = -1.0
        self._stopped = threading.Event()
        self._loop_thread = 0
        self._timer: asyncio.TimerHandle | None = None
        self.stalls = 0
        self.stalled_seconds = 0.0
        self.longest = 0.0

    def start(self) -> None:
        """Begins to watch; to be called on the loop."""
        self._loop_thread = threading.get_ident()
        self._beat_at = self._clock()
        self._worked_until = time.thread_time()
        self._schedule()
        threading.Thread(target=self._look_often, name="watchdog", daemon=True).start()

    def stop(self) -> None:
        """Ends; to be called on the loop."""
        self._stopped.set()
        if self._timer is not None:
            self._timer.cancel()

    def _schedule(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(BEAT_SECONDS, self._beat)

    def _beat(self) -> None:
        """The loop turns. How long it did not is known here even if the thread could not run either."""
        now, worked = self._clock(), time.thread_time()
        held_up = now - self._beat_at - BEAT_SECONDS
        self.longest = max(self.longest, held_up)
        if held_up >= self._stall_seconds:
            self.stalls += 1
            self.stalled_seconds += held_up
            # Little of it at work: the loop waited, for a disk or for a machine that is busy with something else.
            at_work = worked - self._worked_until
            log.warning("the event loop stood still for %.1f s, of which it was at work for %.1f s", held_up, at_work)
        self._beat_at, self._worked_until = now, worked
        self._schedule()

    def _look_often(self) -> None:
        while not self._stopped.wait(LOOK_SECONDS):
            self.look()

    def look(self) -> None:
        """Tells once of a loop that stands still, with what it does."""
        beat_at = self._beat_at
        held_up = self._clock() - beat_at - BEAT_SECONDS
        if held_up < self._stall_seconds or beat_at == self._told_of:
            return
        self._told_of = beat_at
        frame = sys._current_frames().get(self._loop_thread)
        stack = "".join(traceback.format_stack(frame)) if frame is not None else "(unknown)"
        log.error("the event loop stands still since %.1f s, in:\n%s", held_up, stack)

    def collect(self) -> Iterator[Metric]:
        """What was counted, as metric families."""
        yield CounterMetricFamily("dray_loop_stalls", "How often the event loop stood still for a second.", self.stalls)
        yield CounterMetricFamily(
            "dray_loop_stalled_seconds",
            "How long the event loop stood still, in stalls of a second or more.",
            self.stalled_seconds,
        )
        yield GaugeMetricFamily(
            "dray_loop_longest_turn_seconds", "The longest that the event loop was held up.", self.longest
        )
