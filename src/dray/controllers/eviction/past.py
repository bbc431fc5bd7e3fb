"""Who leaves is written down before they do, for guards that start anew and for those in other processes.

worker: a pod is to leave ─▶ written() ─┬─ written already
                                        └─ one write for all who are on their way ─▶ the pod is deleted

A write says on what it is based, so that of two processes one comes second: it hears of the other's pods before its own
are written, and its guard judges anew before they leave.
"""

from __future__ import annotations

import asyncio
from typing import Final

from dray.api.generated.core import Namespace
from dray.api.kinds import NAMESPACES
from dray.api.status import ApiError
from dray.client import Informer
from dray.controllers.context import Context
from dray.eviction.stop import PLACE
from dray.eviction.told_past import PAST_ANNOTATION, Offset, Told, departed, held_before, of_past, read_told, told_text

LOOK_SECONDS: Final = 30.0
CATCH_UP_SECONDS: Final = 0.1
TRIES: Final = 20


class ToldPast:
    """The annotation: read whenever it changes, and written. Controllers of one process write the same."""

    def __init__(self, context: Context, namespaces: Informer[Namespace], who: str) -> None:
        self._context = context
        self._namespaces = namespaces
        self._who = who
        self._recent = context.recent_evictions
        self._recent.told_by.add(who)
        self._name = self._recent.told_as = self._recent.told_as or f"{context.randomness.getrandbits(64):016x}"
        self._lock = asyncio.Lock()
        self._begun = 0
        self._told_held: bool | None = None
        self._heard: dict[str, Told] = {}
        self._offset = Offset()

    def restore(self) -> None:
        """Begins with what the controllers before have told. The informer has listed."""
        self.hear(self._namespaces.get("", PLACE))
        if not self._recent.is_restored:
            clock = self._context.clock
            tick = clock.monotonic()
            held = held_before(self._heard.values(), self._recent.told_by, clock.now(), clock.now() - tick)
            self._recent.restore(held, tick)
            self._told_held = held is not None

    def hear(self, namespace: Namespace | None) -> None:
        """Takes in what others tell, and what is told of us."""
        told = read_told(namespace)
        own = told.pop(self._name, None)
        if own is not None and self._told_held is not None:
            self._told_held = own.held_since is not None  # maybe by a write that was not answered, and came late
        if told != self._heard:
            self._heard = told
            self._recent.hear(departed(told.values(), self._context.clock.monotonic(), self._least_offset()))

    def _least_offset(self) -> int:
        clock = self._context.clock
        return self._offset.least(clock.monotonic(), clock.now())

    async def written(self) -> None:
        """Waits until all who are on their way are written down. Raises ApiError or OSError."""
        wanted = self._recent.begun
        async with self._lock:
            if self._begun < wanted:
                await self._write()

    async def keep_written(self) -> None:
        """Tells since when something is held, too; goes on until cancelled."""
        while True:
            self._least_offset()
            await self._context.clock.sleep(LOOK_SECONDS)
            if self._told_held is None or self._is_held() == self._told_held:
                continue
            try:
                async with self._lock:
                    await self._write()
            except (ApiError, OSError) as error:
                self._context.report(self._who, PAST_ANNOTATION, error)

    def _is_held(self) -> bool:
        return self._recent.past(0).held_since is not None

    async def _write(self) -> None:
        for number in range(TRIES):
            place = self._namespaces.get("", PLACE)
            if place is None:  # there is nothing that could say it
                return
            self.hear(place)
            begun = self._recent.begun
            own, text = self._text()
            metadata = {"resourceVersion": place.metadata.resource_version, "annotations": {PAST_ANNOTATION: text}}
            try:
                await self._context.client.patch(NAMESPACES, "", PLACE, {"metadata": metadata})
                self._begun, self._told_held = begun, own.held_since is not None
                return
            except ApiError as error:
                if error.code != 409 or number == TRIES - 1:
                    raise
            await self._context.clock.sleep(CATCH_UP_SECONDS)  # somebody else was first, and is heard soon

    def _text(self) -> tuple[Told, str]:
        clock, recent = self._context.clock, self._recent
        tick = clock.monotonic()
        jump = clock.now() - tick
        own = of_past(recent.past(tick), recent.told_by, jump)
        return own, told_text(self._heard, self._name, own, recent.needed_since + self._least_offset())
