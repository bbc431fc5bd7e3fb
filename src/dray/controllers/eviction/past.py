"""Who leaves is written down before they do, for a guard that starts anew.

worker: a pod is to leave ─▶ written() ─┬─ written already
                                        └─ one write for all who are on their way ─▶ the pod is deleted
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
from dray.eviction.told_past import PAST_ANNOTATION, past_text, told_past

LOOK_SECONDS: Final = 30.0


class ToldPast:
    """The annotation, read at the start and written from then on. Controllers of one process write the same."""

    def __init__(self, context: Context, namespaces: Informer[Namespace], who: str) -> None:
        self._context = context
        self._namespaces = namespaces
        self._who = who
        self._recent = context.recent_evictions
        self._lock = asyncio.Lock()
        self._begun = 0
        self._told_held: bool | None = None

    def restore(self) -> None:
        """Begins with what the controllers before have told. The informer has listed."""
        if not self._recent.is_restored:
            clock = self._context.clock
            tick = clock.monotonic()
            past = told_past(self._namespaces.get("", PLACE), clock.now(), clock.now() - tick)
            self._recent.restore(past, tick)
            self._told_held = past.held_since is not None

    async def written(self) -> None:
        """Waits until all who are on their way are written down. Raises ApiError or OSError."""
        wanted = self._recent.begun
        async with self._lock:
            if self._begun < wanted:
                await self._write()

    async def keep_written(self) -> None:
        """Tells since when something is held, too; goes on until cancelled."""
        while True:
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
        clock, begun = self._context.clock, self._recent.begun
        tick = clock.monotonic()
        past = self._recent.past(tick)
        text = past_text(past, clock.now() - tick)
        try:
            patch = {"metadata": {"annotations": {PAST_ANNOTATION: text}}}
            await self._context.client.patch(NAMESPACES, "", PLACE, patch)
        except ApiError as error:
            if error.code != 404:  # there is no such namespace, so there is nothing that it could say
                raise
        self._begun = begun
        self._told_held = past.held_since is not None
