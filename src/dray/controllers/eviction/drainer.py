"""Drains through any client: pods leave through the eviction API, at the pace and under the terms of `eviction.Drain`.

    Progress: who must leave ─▶ Drain.next ─▶ eviction API ─┬─ 201: told        ─▶ Drain.left
                                                            └─ a budget says no ─▶ Drain.refused, later again

Works wherever there are budgets, beside whatever controllers: it needs none of them. A server that is away for a while,
as when it is started anew, is waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from dray.api.backoff import Backoff
from dray.api.generated.core import Pod
from dray.api.kinds import PODS
from dray.api.meta import DeleteOptions, Preconditions
from dray.api.status import ApiError
from dray.client import Client
from dray.controllers.eviction.progress import Progress
from dray.controllers.eviction.removal import evict_pod, refusal
from dray.eviction.drain import Drain
from dray.reconcile import Clock

LOOK_SECONDS: Final = 0.25
PACE_SECONDS: Final = 0.02
AWAY: Final = (502, 503, 504)
"""What a server answers, or somebody in front of it, that is not there or too busy now."""
AWAY_SECONDS: Final = 300.0
"""How long a server may be away before the drain gives up."""
AWAY_PAUSES: Final = Backoff(first=1.0, longest=10.0)


class Drainer:
    """Evicts until cancelled; whoever follows the progress says when that is."""

    def __init__(self, client: Client, clock: Clock, progress: Progress, drain: Drain) -> None:
        self._client = client
        self._clock = clock
        self._progress = progress
        self._drain = drain
        self._away_since: float | None = None
        self._pauses = AWAY_PAUSES.pauses()
        progress.drain = drain
        progress.pods.on_change(self._on_pod)

    async def run(self) -> None:
        """Tells pods to leave. Raises ApiError or OSError for what is no budget's refusal, and does not pass."""
        await self._progress.ready()
        await self._progress.looked_for_stop()
        while True:
            # Paces and deadlines run on the clock that never jumps: nobody leaves earlier, or never, for a new time.
            tick = self._clock.monotonic()
            ahead = self._clock.now() - tick
            due = [] if self._progress.stands_still else self._progress.due()
            pod = self._drain.next([(pod, since - ahead) for pod, since in due], tick)
            if pod is not None:
                await self._tell_patiently(pod, tick)
                continue
            self._progress.trouble = ""  # nobody is to be asked for
            await self._clock.sleep(PACE_SECONDS if due and self._drain.terms.rate else LOOK_SECONDS)

    async def _tell_patiently(self, pod: Pod, tick: float) -> None:
        try:
            await self._tell(pod, tick)
        except (ApiError, OSError) as error:
            self._away_since = tick if self._away_since is None else self._away_since
            may_pass = not isinstance(error, ApiError) or error.code in AWAY
            if not may_pass or tick - self._away_since >= AWAY_SECONDS:
                raise
            self._progress.trouble = f"the server cannot be asked now ({error}); it is asked again"
            self._progress.changed.set()
            await self._clock.sleep(self._pauses.next())
        else:
            self._away_since, self._progress.trouble = None, ""
            self._pauses.reset()

    async def _tell(self, pod: Pod, tick: float) -> None:
        if self._drain.is_over(tick):
            await self._delete(pod)
        else:
            try:
                await evict_pod(self._client, pod)
            except ApiError as error:
                why = refusal(error)
                if not why:
                    raise
                self._drain.refused(pod, why, tick)
                self._progress.changed.set()
                return
        self._drain.left(pod, tick)

    async def _delete(self, pod: Pod) -> None:
        options = DeleteOptions(preconditions=Preconditions(uid=pod.metadata.uid))
        try:
            await self._client.delete(PODS, pod.metadata.namespace, pod.metadata.name, options)
        except ApiError as error:
            if error.code not in (404, 409):
                raise

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._drain.drop(old)
        if new is not None:
            self._drain.put(new)


@contextlib.asynccontextmanager
async def draining(drainer: Drainer | None) -> AsyncIterator[None]:
    """Drains while the body follows the progress; a failure of either ends both. Nothing without a drainer."""
    if drainer is None:
        yield
        return
    task = asyncio.get_running_loop().create_task(drainer.run())
    mine = asyncio.current_task()

    def failed(ended: asyncio.Task[None]) -> None:
        if mine is not None and not ended.cancelled():
            mine.cancel()

    task.add_done_callback(failed)
    try:
        yield
    except asyncio.CancelledError:
        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
            raise error from None
        raise
    finally:
        task.remove_done_callback(failed)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, ApiError, OSError):
            await task
