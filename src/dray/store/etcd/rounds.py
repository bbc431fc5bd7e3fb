"""Consistent reads: one question to etcd for all who wait, and then waiting until what it says is visible here."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from dray.store.errors import Closed, StorageError, StoreError, Unreachable
from dray.store.watch import Progress

REACH_SECONDS: Final = 5.0
"""So long nothing more may be told, until whoever waits for a revision that etcd has is told that it does not come."""
NUDGE_SECONDS: Final = 0.02
"""After so long, etcd is asked to say how far it has told: the revision may be one of somebody else's keys."""


class Rounds:
    """`join` waits for a question that is asked after it was called; `reach` for a revision."""

    def __init__(
        self, ask: Callable[[], Awaitable[int]], nudge: Callable[[], Awaitable[None]], progress: Progress
    ) -> None:
        self._ask = ask
        self._nudge = nudge
        self._progress = progress
        self._next: list[asyncio.Future[int]] = []
        self._task: asyncio.Task[None] | None = None
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._number = 0
        self.count = 0
        self.seconds = 0.0

    async def join(self) -> int:
        """Everything acknowledged before this call is visible afterwards; the revision. Raises Unreachable."""
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._next.append(future)
        self.begin()
        return await future

    def begin(self) -> None:
        """Asks, for whoever comes to wait, unless a question is under way."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def reach(self, revision: int) -> None:
        """Waits until a revision is visible. Raises Unreachable."""
        if self._progress.revision >= revision:
            return
        loop = asyncio.get_running_loop()
        self._number += 1
        future: asyncio.Future[None] = loop.create_future()
        heapq.heappush(self._waiting, (revision, self._number, future))
        done, _ = await asyncio.wait([future], timeout=NUDGE_SECONDS)
        told, end = self._progress.revision, loop.time() + REACH_SECONDS
        while not done:
            if self._progress.revision > told:  # a long past is replayed
                told, end = self._progress.revision, loop.time() + REACH_SECONDS
            if loop.time() > end:
                future.cancel()
                raise Unreachable(f"etcd has revision {revision}, and tells no more than {self._progress.revision}")
            await self._nudge()
            done, _ = await asyncio.wait([future], timeout=0.25)
        future.result()

    def advanced(self, revision: int) -> None:
        """So much is visible now."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= revision:
            future = heapq.heappop(waiting)[2]
            if not future.done():
                future.set_result(None)

    def close(self) -> None:
        """Nobody waits any longer."""
        if self._task is not None:
            self._task.cancel()
        _refuse([*self._next, *(future for *_, future in self._waiting)])

    async def _run(self) -> None:
        """One round after the other, as long as somebody waits."""
        try:
            await self._rounds()
        finally:  # whatever ended it, who asks from now on begins anew
            self._task = None
            _refuse(self._next)
            self._next = []

    async def _rounds(self) -> None:
        is_first = True
        while self._next or is_first:
            is_first = False
            await asyncio.sleep(0)  # all who ask in this turn
            current, self._next = self._next, []
            began = time.perf_counter()
            try:
                revision = await self._ask()
                await self.reach(revision)
            except StorageError as error:
                _fail(current, error)
            except (Exception, asyncio.CancelledError):
                _refuse(current)
                raise
            else:
                for future in current:
                    if not future.done():  # else who waits has gone
                        future.set_result(revision)
                self.count += 1
                self.seconds += time.perf_counter() - began


def _refuse(futures: Iterable[asyncio.Future[Any]]) -> None:
    """Whoever waits is told that there is nothing to wait for. Cancelled, they would seem to be told to end."""
    _fail(futures, Closed("the store is closing"))


def _fail(futures: Iterable[asyncio.Future[Any]], error: StoreError) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(error)
            future.exception()  # those who wait may have gone
