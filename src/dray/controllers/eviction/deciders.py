"""Ways to ask a policy: in the event loop, in a thread beside it, or (see `webhook`) over the network."""

from __future__ import annotations

import asyncio
import contextlib
import math
import queue
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from dray.api.generated.core import Pod
from dray.eviction.builtin_policies import Delete
from dray.eviction.policy import Decision, EvictionCause, EvictionPolicy, Force, Never, Now, PolicyState, Wait
from dray.reconcile import Clock

T = TypeVar("T")

THREADS = 8
SHORTEST_WAIT = 1.0
LONGEST_WAIT = 24 * 3600.0
MAX_REASON = 512
"""Letters of a reason that are shown."""


class Decider(Protocol):
    """A policy with a name, that may take time."""

    name: str
    follows_up: bool
    counts_siblings: bool
    """Whether it wants to know how the other pods of a pod's controller are."""
    may_block: bool
    """Whether an answer may take long. One that does not comes without anything else happening in between."""

    def decide(self, pod: Pod, cause: EvictionCause, state: PolicyState, now: float) -> Coroutine[Any, Any, Decision]:
        """What the policy says. Raises whatever goes wrong; may take any time."""
        ...

    async def close(self) -> None:
        """Gives up what it holds. It may be used again afterwards."""
        ...


class PolicyFailed(Exception):
    """A policy could not be asked, or has not answered in time or in a way that can be understood. Says why."""


class TookTooLong(Exception):
    """A policy has not answered in time."""


async def ask(
    decider: Decider, about: tuple[Pod, EvictionCause, PolicyState], timeout: float, clock: Clock
) -> Decision:
    """What a policy decides, with waits in bounds and reasons that can be shown. Raises PolicyFailed."""
    now = clock.now()
    asking = decider.decide(*about, now)
    try:
        answer = await (within(timeout, asking, clock) if decider.may_block else asking)
        return _checked(answer, now)
    except PolicyFailed:
        raise
    except TookTooLong:
        raise PolicyFailed(f"no answer in {timeout:g} s") from None
    except Exception as error:  # whatever goes wrong in somebody else's code
        raise PolicyFailed(one_line(f"{type(error).__name__}: {error}")) from error


def _checked(answer: object, now: float) -> Decision:
    """An answer as it may be acted on: plugins may say anything. Raises PolicyFailed."""
    match answer:
        case Wait(until=int() | float() as until) if math.isfinite(until):
            return Wait(min(max(until, now + SHORTEST_WAIT), now + LONGEST_WAIT), one_line(answer.reason))
        case Now():
            return Now(one_line(answer.reason), respect_budgets=bool(answer.respect_budgets))
        case Never() | Force():
            return type(answer)(one_line(answer.reason))
    raise PolicyFailed(one_line(f"{answer!r} is no decision"))


def one_line(text: object) -> str:
    """A text from anywhere as events and conditions may show it: of bounded length, without control characters."""
    said = str(text)[:MAX_REASON]
    return "".join(letter if letter.isprintable() else " " for letter in said).strip()


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
        self.counts_siblings = not isinstance(policy, Delete)
        self._policy = policy

    async def decide(self, pod: Pod, cause: EvictionCause, state: PolicyState, now: float) -> Decision:
        """What the policy says."""
        return self._policy.decide(pod, cause, state, now)

    async def close(self) -> None:
        """Nothing is held."""


class Threaded:
    """A policy that may block. Threads that hang are left behind: they do not keep the process from ending."""

    counts_siblings = True
    may_block = True

    def __init__(self, name: str, policy: EvictionPolicy) -> None:
        self.name = name
        self.follows_up = bool(getattr(policy, "follows_up", False))
        self._policy = policy
        self._threads = _DaemonThreads(name)

    async def decide(self, pod: Pod, cause: EvictionCause, state: PolicyState, now: float) -> Decision:
        """What the policy says."""
        return await self._threads.call(lambda: self._policy.decide(pod, cause, state, now))

    async def close(self) -> None:
        """The threads end when they have finished what they are at."""
        self._threads.close()


class _DaemonThreads:
    """A few threads that work on calls. Unlike an executor's, the interpreter does not wait for them at its end."""

    def __init__(self, name: str) -> None:
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
                # Neither may a plugin end the process (SystemExit), nor can a future hold a StopIteration.
                failure = PolicyFailed(one_line(f"{type(error).__name__}: {error}"))
                _deliver(loop, future, future.set_exception, failure)
            else:
                _deliver(loop, future, future.set_result, answer)

        self._calls.put(work)
        if len(self._threads) < THREADS:
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
