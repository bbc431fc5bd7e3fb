"""Says of pods that they were bound. Under load the bindings themselves come first: news can wait for a few seconds.

Each namespace is told by itself: what is written there may take as long as a webhook likes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from dray.api.generated.core import Pod
from dray.api.references import full_name
from dray.reconcile import Clock, Controller, EventRecorder

LONGEST_SECONDS: Final = 5.0
PAUSE_SECONDS: Final = 0.05
AT_ONCE: Final = 32
MOST_WAITING: Final = 20_000
"""Of one namespace: then the oldest are not told, for nothing that is bound in five seconds is as much."""


class _Place(NamedTuple):
    namespace: str


class Announcements:
    """Events that are written at once while there is little to do, and late, but all of them, while there is much."""

    def __init__(self, recorder: EventRecorder, clock: Clock, is_busy: Callable[[], bool]) -> None:
        self._recorder = recorder
        self._clock = clock
        self._is_busy = is_busy
        self._waiting: dict[str, deque[tuple[float, Pod, str]]] = {}
        self._telling: Controller[_Place] = Controller("bound-pods", self._tell, clock)

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def bound(self, pod: Pod, node: str) -> None:
        """A pod has a node."""
        namespace = pod.metadata.namespace
        waiting = self._waiting.get(namespace)
        if waiting is None:
            waiting = self._waiting[namespace] = deque(maxlen=MOST_WAITING)
            self._telling.queue.add(_Place(namespace))
        waiting.append((self._clock.monotonic(), pod, node))

    async def run(self) -> None:
        """Writes until cancelled."""
        await self._telling.run()

    async def _tell(self, place: _Place) -> float | None:
        waiting = self._waiting[place.namespace]
        since = waiting[0][0]
        if self._is_busy() and self._clock.monotonic() - since < LONGEST_SECONDS:
            return PAUSE_SECONDS
        several = [waiting.popleft() for _ in range(min(AT_ONCE, len(waiting)))]
        news = [(pod, f"Successfully assigned {full_name(pod)} to {node}") for _, pod, node in several]
        await self._recorder.record_all("Scheduled", news)
        if waiting:
            self._telling.queue.add(place)
        else:
            del self._waiting[place.namespace]
        return None
