"""Ways to ask a policy: in the event loop, in a thread beside it, or (see `webhook`) over the network."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from dray.api.generated.core import Pod
from dray.eviction.policy import Decision, EvictionCause, EvictionPolicy, PolicyState
from dray.reconcile import Clock

T = TypeVar("T")

THREADS = 8


class Decider(Protocol):
    """A policy with a name, that may take time."""

    name: str
    follows_up: bool
    may_block: bool
    """Whether an answer may take long. One that does not comes without anything else happening in between."""

    def decide(self, pod: Pod, cause: EvictionCause, state: PolicyState, now: float) -> Coroutine[Any, Any, Decision]:
        """What the policy says. Raises whatever goes wrong; may take any time."""
        ...

    async def close(self) -> None:
        """Gives up what it holds. It may be used again afterwards."""
        ...


class TookTooLong(Exception):
    """A policy has not answered in time."""


async def within(seconds: float, asking: Coroutine[Any, Any, T], clock: Clock) -> T:
    """What is answered in so many seconds of a clock. Raises TookTooLong, or what asking raises."""
    loop = asyncio.get_running_loop()
    answer, alarm = loop.create_task(asking), loop.create_task(clock.sleep(seconds))
    try:
        await asyncio.wait((answer, alarm), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise TookTooLong
        return answer.result()
    finally:
        for task in (answer, alarm):
            task.cancel()
        await asyncio.gather(answer, alarm, return_exceptions=True)


class Direct:
    """A policy that is known to be quick: it is asked in the event loop."""

    follows_up = False
    may_block = False

    def __init__(self, name: str, policy: EvictionPolicy) -> None:
        self.name = name
        self._policy = policy

    async def decide(self, pod: Pod, cause: EvictionCause, state: PolicyState, now: float) -> Decision:
        """What the policy says."""
        return self._policy.decide(pod, cause, state, now)

    async def close(self) -> None:
        """Nothing is held."""


class Threaded:
    """A policy that may block. Threads that hang are left behind: they do not keep the process from ending."""

    may_block = True

    def __init__(self, name: str, policy: EvictionPolicy) -> None:
        self.name = name
        self.follows_up = bool(getattr(policy, "follows_up", False))
        self._policy = policy
        self._threads = _DaemonThreads(THREADS, name)

    async def decide(self, pod: Pod, cause: EvictionCause, state: PolicyState, now: float) -> Decision:
        """What the policy says."""
        return await self._threads.call(lambda: self._policy.decide(pod, cause, state, now))

    async def close(self) -> None:
        """The threads end when they have finished what they are at."""
        self._threads.close()


class _DaemonThreads:
    """A few threads that work on calls. Unlike an executor's, the interpreter does not wait for them at its end."""

    def __init__(self, limit: int, name: str) -> None:
        self._limit = limit
        self._name = name
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    async def call(self, function: Callable[[], T]) -> T:
        """What a function returns or raises, from a thread."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def work() -> None:
            if future.cancelled():
                return
            try:
                answer = function()
            except BaseException as error:
                _deliver(loop, future, future.set_exception, error)
            else:
                _deliver(loop, future, future.set_result, answer)

        self._calls.put(work)
        if len(self._threads) < self._limit:
            thread = threading.Thread(target=self._run, name=f"eviction policy {self._name}", daemon=True)
            self._threads.append(thread)
            thread.start()
        return await future

    def close(self) -> None:
        """Lets idle threads end."""
        threads, self._threads = self._threads, []
        calls, self._calls = self._calls, queue.SimpleQueue()
        for _ in threads:
            calls.put(None)

    def _run(self) -> None:
        calls = self._calls
        while (work := calls.get()) is not None:
            work()


def _deliver(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[T], settle: Callable[[Any], None], value: object
) -> None:
    """Brings an answer to the loop, if it is still there and somebody still wants it."""

    def arrive() -> None:
        if not future.done():
            settle(value)

    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
        loop.call_soon_threadsafe(arrive)
