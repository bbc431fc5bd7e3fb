"""The news of bindings: at once while there is little to do, late while there is much, and never lost."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

import pytest

from dray.api.generated.core import Pod
from dray.api.meta import Object, ObjectMeta
from dray.reconcile import VirtualClock
from dray.scheduler import announcements
from dray.scheduler.announcements import AT_ONCE, LONGEST_SECONDS, Announcements


class Told:
    """A recorder that remembers what it was told, and is asked whether the scheduler is busy."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.busy = False

    async def record_all(self, reason: str, news: Sequence[tuple[Object, str]]) -> None:
        for about, message in news:
            assert reason == "Scheduled"
            if about.metadata.namespace == "hangs":
                await asyncio.Event().wait()
            self.texts.append(message)


def pod(name: str, namespace: str = "ns") -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace=namespace))


@contextlib.asynccontextmanager
async def running_announcements() -> AsyncIterator[tuple[Announcements, Told, VirtualClock]]:
    told, clock = Told(), VirtualClock()
    news = Announcements(told, clock, lambda: told.busy)  # type: ignore[arg-type]
    task = asyncio.get_running_loop().create_task(news.run())
    yield news, told, clock
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_at_once_while_there_is_little_to_do() -> None:
    async with running_announcements() as (news, told, clock):
        news.bound(pod("a"), "node-1")
        await clock.advance(0.0)
        assert told.texts == ["Successfully assigned ns/a to node-1"]


async def test_bindings_come_first_but_all_is_told_in_the_end() -> None:
    async with running_announcements() as (news, told, clock):
        told.busy = True
        for number in range(3 * AT_ONCE):
            news.bound(pod(f"p{number}"), "n")
        await clock.advance(LONGEST_SECONDS - 0.5)
        assert told.texts == []
        told.busy = False
        await clock.advance(0.2)
        assert told.texts == [f"Successfully assigned ns/p{number} to n" for number in range(3 * AT_ONCE)]
        assert len(news) == 0


async def test_nobody_waits_for_long_however_busy_it_is() -> None:
    async with running_announcements() as (news, told, clock):
        told.busy = True
        news.bound(pod("early"), "n")
        await clock.advance(3)
        news.bound(pod("late"), "n")
        await clock.advance(LONGEST_SECONDS - 2)
        assert "Successfully assigned ns/early to n" in told.texts
        await clock.advance(3.5)
        assert len(told.texts) == 2


async def test_a_namespace_whose_events_hang_holds_up_no_other_and_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcements, "MOST_WAITING", 100)
    async with running_announcements() as (news, told, clock):
        for number in range(1000):
            news.bound(pod(f"p{number}", "hangs"), "n")
        await clock.advance(1)
        news.bound(pod("a"), "n")
        await clock.advance(0.1)
        assert told.texts == ["Successfully assigned ns/a to n"]
        assert len(news) <= 100
