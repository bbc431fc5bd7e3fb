"""Work that takes long, done by threads beside the event loop: large bodies, large objects, long lists.

    verb (on the loop) ──▶ run(caller, function, …) ──▶ waits in its caller's queue ──▶ a thread ──▶ the verb goes on
                                  one of each caller at a time, next whoever has used least

Only pure functions are given away: whatever changes (the store, indexes, roles) is looked at on the loop alone. The
threads share the interpreter with the loop, which gets it back within half a millisecond of wanting it. So a request of
three megabytes costs its sender time, and nobody else.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

import msgspec

P = ParamSpec("P")
R = TypeVar("R")

THREADS = 4
"""How many callers are worked for at the same time."""
SWITCH_SECONDS = 0.0005
"""How long a thread keeps the interpreter once others want it. Python's own 5 ms, at every system call of the loop,
would make each small request wait for tens of milliseconds."""
MOST_KNOWN = 1024

LARGE = 32 * 1024
"""Bytes of an object from which on it is looked at beside the loop: before that, going there and back costs more."""
MANY = 200
"""Objects of a list from which on it is put together beside the loop."""
MANY_TO_SELECT = 2000
"""Objects from which on selectors are asked about them beside the loop: that is a microsecond or two for each."""


class _Job(msgspec.Struct, eq=False):
    """Something to be done, who waits for it, and what came of it, until they take it.

    An error knows all frames that it went through, and those of the thread know the job: so the job, and the future in
    it, forget the error. What knows itself is never thrown away (`process.garbage`), nor is all that was worked on.
    """

    work: Callable[[], Any]
    done: asyncio.Future[None]
    result: Any = None
    error: BaseException | None = None

    def carry_out(self) -> None:
        """Does the work, and keeps what comes of it."""
        try:
            self.result = self.work()
        except BaseException as error:
            traceback.clear_frames(error.__traceback__)  # a million parts are thrown away here, not on the loop
            self.error = error


class _Queue:
    """What one caller waits for."""

    __slots__ = ("is_running", "jobs", "used")

    def __init__(self, used: float) -> None:
        self.jobs: deque[_Job] = deque()
        self.is_running = False
        self.used = used
        """Seconds of processor time since everybody began; the least is next."""


class Beside:
    """Does work beside the loop that asks for it. One per server; the threads are started when there is something."""

    def __init__(self) -> None:
        self._queues: dict[str, _Queue] = {}
        """Of callers that wait or are worked for, and of those that have had more than their share."""
        self._running = 0
        self._floor = 0.0
        self._pool: ThreadPoolExecutor | None = None

    async def run(self, caller: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """What a pure function gives, or raises. Whoever is cancelled while waiting takes the work back."""
        job = _Job(lambda: function(*args, **kwargs), asyncio.get_running_loop().create_future())
        queue = self._queues.get(caller)
        if queue is None:
            queue = self._queues[caller] = _Queue(self._floor)
        queue.used = max(queue.used, self._floor)  # who was away has saved nothing up
        queue.jobs.append(job)
        self._start_next()
        try:
            await job.done
            if job.error is not None:
                raise job.error
            return job.result  # type: ignore[no-any-return]  # it is what the function gives
        finally:
            job.error = None

    def close(self) -> None:
        """Ends the threads once they have done what they are at; whoever still waits is told so."""
        for queue in self._queues.values():
            for job in queue.jobs:
                job.done.cancel()
            queue.jobs.clear()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    def _start_next(self) -> None:
        while self._running < THREADS:
            ready = [
                (queue.used, caller) for caller, queue in self._queues.items() if queue.jobs and not queue.is_running
            ]
            if not ready:
                return
            caller = min(ready)[1]
            queue = self._queues[caller]
            job = queue.jobs.popleft()
            if job.done.done():  # its client is gone
                continue
            self._floor = max(self._floor, queue.used)
            queue.is_running = True
            self._running += 1
            self._submit(caller, job)

    def _submit(self, caller: str, job: _Job) -> None:
        if self._pool is None:
            sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_SECONDS))
            self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="beside")
        loop = job.done.get_loop()

        def work() -> None:
            began = time.thread_time()
            job.carry_out()
            used = time.thread_time() - began
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(self._finish, caller, job, used)

        self._pool.submit(work)

    def _finish(self, caller: str, job: _Job, used: float) -> None:
        queue = self._queues[caller]
        queue.is_running = False
        queue.used += used
        self._running -= 1
        self._forget_idle()
        if job.done.done():  # its client has gone meanwhile
            job.error = None
        else:
            job.done.set_result(None)
        self._start_next()

    def _forget_idle(self) -> None:
        """Callers who wait for nothing are forgotten, but not what they have used while others wait for their share."""
        crowded = len(self._queues) > MOST_KNOWN
        self._queues = {
            caller: queue
            for caller, queue in self._queues.items()
            if queue.jobs or queue.is_running or (queue.used > self._floor and not crowded)
        }
