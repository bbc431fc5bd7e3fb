"""Waiting that somebody breaks off with Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from dray.cli import waiting
from dray.cli.tables import REST
from dray.cli.taint_options import Manner
from dray.controllers.eviction import drainer
from dray.controllers.eviction.progress import Standing
from dray.eviction.drain import DrainTerms


class Progress:
    drain = None

    def standing(self) -> Standing:
        return Standing(total=3, evicted=1, gone=0)

    async def stop(self) -> None:
        pass


@pytest.mark.parametrize(
    ("terms", "told"),
    [(DrainTerms(), "Nobody else leaves, and the taint stays."), (None, "The eviction goes on without it.")],
)
async def test_who_breaks_it_off_is_told_what_becomes_of_the_rest(
    terms: DrainTerms | None, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    follows = asyncio.Event()

    async def follow(*_: Any) -> Standing:
        follows.set()
        await asyncio.Event().wait()
        raise AssertionError

    @contextlib.asynccontextmanager
    async def draining(_: Any) -> AsyncIterator[None]:
        yield

    monkeypatch.setattr(waiting, "follow", follow)
    monkeypatch.setattr(drainer, "draining", draining)
    monkeypatch.setattr(drainer, "Drainer", lambda *_: None)
    progress: Any = Progress()
    client: Any = None
    waits = asyncio.ensure_future(waiting.wait_for(progress, Manner(wait=True, drain=terms), client))
    await follows.wait()
    waits.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waits
    assert capsys.readouterr().err == f"dray: stopped at 1 of 3 pods. {told}\n"


def test_of_many_pods_that_could_not_leave_it_is_said_how_many_more_there_are() -> None:
    refused = {f"ml/p{number:02}": "no" for number in range(13)}
    ending = waiting.Ending(Standing(total=13, evicted=0, gone=0), 1.0, False, refused)
    *told, last = ending.tell_others().splitlines()
    assert told == [f"  ml/p{number:02}: no" for number in range(10)]
    assert last == f"  … and 3 more pods; {REST}"
    assert len(msgspec.structs.replace(ending, refusals={"ml/p": "no"}).tell_others().splitlines()) == 1


@pytest.mark.parametrize(
    ("hold", "told"),
    [
        ("", "Nobody else leaves; go on with the same command, or put back with"),
        ("the drain is paused", "The drain is paused; then go on with the same command, or put back with"),
    ],
)
def test_who_gives_up_on_a_drain_is_told_why_it_stood_still(hold: str, told: str) -> None:
    assert waiting.Ending(Standing(total=2, evicted=0, gone=0, hold=hold), 1.0, False, drains=True).goes_on == told
