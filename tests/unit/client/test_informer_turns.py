"""Others get turns of the loop while an informer takes in much; what they write meanwhile is not lost (issue 21)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from dray.api.generated.core import Pod
from dray.api.meta import ObjectMeta
from dray.api.registry import by_kind
from dray.client import Informer, ObjectList, WatchEvent
from dray.client.informer import LISTED_AT_ONCE, WATCHED_AT_ONCE

PODS = by_kind("v1", "Pod")
COUNT = 20 * WATCHED_AT_ONCE


def pod(number: int, revision: int = 1, name: str = "") -> Pod:
    meta = ObjectMeta(name=name or f"pod-{number}", namespace="ns", uid=f"u{number}", resource_version=str(revision))
    return Pod(kind="Pod", api_version="v1", metadata=meta)


class Much:
    """A list and a watch that have everything ready at once."""

    def __init__(self, listed: list[Pod], watched: list[Pod]) -> None:
        self.listed, self.watched = listed, watched

    async def list(self, *_: Any, **__: Any) -> ObjectList:
        return ObjectList(tuple(self.listed), "100")

    async def watch(self, *_: Any, **__: Any) -> AsyncIterator[WatchEvent]:
        for one in self.watched:
            yield WatchEvent("MODIFIED", one)
        await asyncio.Event().wait()


async def most_between_turns(informer: Informer[Pod]) -> tuple[int, int]:
    """How many changes handlers heard of, at most, between two turns of somebody else; and how many in all."""
    heard = turn = most = 0

    def note(_old: Pod | None, _new: Pod | None) -> None:
        nonlocal heard
        heard += 1

    informer.on_change(note)
    running = asyncio.ensure_future(informer.run())
    for _ in range(3 * COUNT):
        await asyncio.sleep(0)
        most, turn = max(most, heard - turn), heard
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return most, heard


async def test_a_first_list_leaves_turns_to_others() -> None:
    informer: Informer[Pod] = Informer(Much([pod(n) for n in range(COUNT)], []), PODS, sleep=asyncio.sleep)  # type: ignore[arg-type]
    assert await most_between_turns(informer) == (LISTED_AT_ONCE, COUNT)
    assert informer.has_synced


async def test_many_events_leave_turns_to_others() -> None:
    events = [pod(n, 200 + n) for n in range(COUNT)]
    informer: Informer[Pod] = Informer(Much([], events), PODS, sleep=asyncio.sleep)  # type: ignore[arg-type]
    assert await most_between_turns(informer) == (WATCHED_AT_ONCE, COUNT)


async def test_what_is_written_while_a_list_is_taken_in_stays() -> None:
    """The answer to a write is newer than the list, whose turn comes later."""
    informer: Informer[Pod] = Informer(Much([pod(n) for n in range(COUNT)], []), PODS, sleep=asyncio.sleep)  # type: ignore[arg-type]
    running = asyncio.ensure_future(informer.run())
    while not len(informer):
        await asyncio.sleep(0)
    informer.put(pod(COUNT - 1, 150))
    informer.put(pod(-1, 151, "new"))
    await informer.synced()
    last, new = informer.get("ns", f"pod-{COUNT - 1}"), informer.get("ns", "new")
    assert last is not None
    assert last.metadata.resource_version == "150"
    assert new is not None
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
