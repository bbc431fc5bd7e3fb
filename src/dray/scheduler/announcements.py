"""Says of pods that they were bound. Under load the bindings themselves come first: news can wait for a few seconds."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from dray.api.generated.core import Pod
from dray.api.references import full_name
from dray.reconcile import Clock, EventRecorder

LONGEST_SECONDS: Final = 5.0
PAUSE_SECONDS: Final = 0.05
AT_ONCE: Final = 32


class Announcements:
    """Events that are written at once while there is little to do, and late, but all of them, while there is much."""

    def __init__(self, recorder: EventRecorder, clock: Clock, is_busy: Callable[[], bool]) -> None:
        self._recorder = recorder
        self._clock = clock
        self._is_busy = is_busy
        self._waiting: deque[tuple[float, Pod, str]] = deque()
        self._came = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def bound(self, pod: Pod, node: str) -> None:
        """A pod has a node."""
        self._waiting.append((self._clock.monotonic(), pod, node))
        self._came.set()

    async def run(self) -> None:
        """Writes until cancelled."""
        while True:
            if not self._waiting:
                self._came.clear()
                await self._came.wait()
            since = self._waiting[0][0]
            if self._is_busy() and self._clock.monotonic() - since < LONGEST_SECONDS:
                await self._clock.sleep(PAUSE_SECONDS)
                continue
            several = [self._waiting.popleft() for _ in range(min(AT_ONCE, len(self._waiting)))]
            news = [(pod, f"Successfully assigned {full_name(pod)} to {node}") for _, pod, node in several]
            await self._recorder.record_all("Scheduled", news)
