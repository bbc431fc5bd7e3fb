"""Group commit: everything that writers submit while one batch is on its way to disk forms the next batch.

The event loop hands a whole batch to one writer thread and hears back when it is durable. A batch is formed at the
end of a loop turn, or once it is large enough: writers that were acknowledged together and write again travel together
again, and the loop need not wait for the disk. While further ones come in each turn, a batch waits for them, for a few
turns: every commit costs the disk, the writer thread and whoever watches about the same, however much is in it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from time import perf_counter

from dray.store.backend import Backend, Batch
from dray.store.errors import OutOfSpace, StorageError
from dray.store.records import Event, needs_room

EARLY = 16
"""So many submissions do not wait for the end of the turn: the loop works on the next ones while the disk is busy."""

GATHERING_TURNS = 4
"""So many turns of the loop a batch of several waits for more."""

FORGET_AT = 1024
"""So many unneeded revisions are worth removing from disk along with the next write."""

log = logging.getLogger(__name__)


class Submission:
    """Changes that become durable together (none: a marker in the queue), and those who wait for the outcome."""

    __slots__ = ("_followers", "done", "events")

    def __init__(self, events: Sequence[Event], done: asyncio.Future[None]) -> None:
        self.events = events
        self.done = done
        self._followers: list[asyncio.Future[None]] | None = None

    async def settled(self) -> None:
        """Wait until the outcome is known, whatever it is. Does not share the writer's cancellation."""
        follower = asyncio.get_running_loop().create_future()
        if self._followers is None:
            self._followers = []
        self._followers.append(follower)
        await follower

    def settle(self, error: StorageError | None) -> None:
        """Tell the writer and all who wait. The writer may have been cancelled; its write stands all the same."""
        if not self.done.done():
            if error is None:
                self.done.set_result(None)
            else:
                self.done.set_exception(error)
        for follower in self._followers or ():
            if not follower.done():
                follower.set_result(None)


Settle = Callable[[Sequence[Submission], StorageError | None], None]


class Pipeline:
    """Batches submissions, has the backend commit them one batch at a time, and reports each in order."""

    def __init__(self, backend: Backend, revision: int, settle: Settle) -> None:
        self.commits = 0
        self.commit_seconds = 0.0
        self.problem: StorageError | None = None
        self._backend = backend
        self._revision = revision
        self._settle = settle
        self._waiting: list[Submission] = []
        self._forget: list[int] = []
        self._horizons: dict[str, int] = {}
        self._busy = False
        self._scheduled = False
        self._gathered = 0
        """How many were there a turn ago."""
        self._turns = 0
        self._outcome: tuple[list[Submission], Batch, StorageError | None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._inbox: SimpleQueue[tuple[list[Submission], Batch] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, submission: Submission) -> None:
        """Queue changes. Their revisions follow those of everything submitted before."""
        self._waiting.append(submission)
        if self._outcome is not None:
            self._collect()  # A long turn need not end before the next batch goes.
        if len(self._waiting) >= EARLY and not self._busy and self._backend.blocking:
            self._send()
        else:
            self._start()

    def forget(self, revisions: Sequence[int], resource: str, horizon: int) -> None:
        """Let a later batch remove revisions that are no longer needed."""
        self._forget += revisions
        self._horizons[resource] = horizon

    async def flush(self) -> None:
        """Wait until all that was submitted and all that can be forgotten is on disk. Raises `StorageError`."""
        marker = Submission((), asyncio.get_running_loop().create_future())
        self.submit(marker)
        await marker.done

    def stop(self) -> None:
        """End the writer thread. Only after `flush`."""
        if self._thread is not None:
            self._inbox.put(None)
            self._thread.join()
            self._thread = None

    def _start(self) -> None:
        if not self._busy and not self._scheduled:
            self._scheduled = True
            self._gathered = self._turns = 0
            self._loop = asyncio.get_running_loop()
            self._loop.call_soon(self._send_waiting)

    def _send_waiting(self) -> None:
        """At the end of a turn: what has gathered goes, unless it went early, or more is coming."""
        if self._is_gathering():
            assert self._loop is not None
            self._loop.call_soon(self._send_waiting)
            return
        self._scheduled = False
        if self._waiting and not self._busy:
            self._send()

    def _is_gathering(self) -> bool:
        """Whether there are several, and more than a turn ago. One alone waits for nobody."""
        before, self._gathered = self._gathered, len(self._waiting)
        self._turns += 1
        if self._busy or not self._backend.blocking or self._turns > GATHERING_TURNS:
            return False
        return self._gathered > max(before, 1)

    def _send(self) -> None:
        """Form a batch of all that waits and have it committed."""
        self._busy = True
        submissions, self._waiting = self._waiting, []
        events = [event for submission in submissions for event in submission.events]
        revision = events[-1].record.revision if events else self._revision
        forget: list[int] = []
        horizons: dict[str, int] = {}
        if len(self._forget) >= FORGET_AT or not all(submission.events for submission in submissions):
            forget, self._forget = self._forget, forget
            horizons, self._horizons = self._horizons, horizons
        batch = Batch(events, forget, horizons, revision)
        if not self._backend.blocking:
            self._committed(submissions, batch, self._commit(batch))
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._write, name="dray-store-writer", daemon=True)
            self._thread.start()
        self._inbox.put((submissions, batch))

    def _write(self) -> None:
        """The writer thread: commit what comes, report to the loop, until told to end."""
        while (work := self._inbox.get()) is not None:
            submissions, batch = work
            error = self._commit(batch)
            assert self._loop is not None
            self._outcome = (submissions, batch, error)
            try:
                self._loop.call_soon_threadsafe(self._collect)
            except RuntimeError:  # The loop was closed under the store: there is nobody left to tell.
                return

    def _commit(self, batch: Batch) -> StorageError | None:
        started = perf_counter()
        try:
            self._backend.commit(batch)
        except StorageError as error:
            return error
        except Exception as error:  # A bug must fail the writers, not hang them for ever.
            log.exception("a mistake while writing")
            return StorageError(f"cannot write: {error!r}")
        finally:
            self.commits += 1
            self.commit_seconds += perf_counter() - started
        return None

    def _collect(self) -> None:
        """Back on the loop: take what the writer thread has done, unless that has happened already."""
        if self._outcome is not None:
            outcome, self._outcome = self._outcome, None
            self._committed(*outcome)

    def _committed(self, submissions: list[Submission], batch: Batch, error: StorageError | None) -> None:
        """Report the batch, then let the next one gather."""
        if error is None:
            self._revision = max(self._revision, batch.revision)
        else:
            self._forget = batch.forget + self._forget
            self._horizons = {**batch.horizons, **self._horizons}
        if batch.events or batch.forget:  # An empty batch does not reach the disk and so tells nothing about it.
            self.problem = error
        self._busy = False
        if isinstance(error, OutOfSpace):
            submissions = self._set_aside(submissions)
        self._settle(submissions, error)
        if self._waiting:
            self._start()

    def _set_aside(self, submissions: list[Submission]) -> list[Submission]:
        """Those of a batch for which there was no room. Others that were in it and need none are tried again."""
        modest = [each for each in submissions if each.events and not any(map(needs_room, each.events))]
        if len(modest) == len(submissions):
            return submissions
        self._waiting = modest + self._waiting
        kept = set(map(id, modest))
        return [each for each in submissions if id(each) not in kept]
