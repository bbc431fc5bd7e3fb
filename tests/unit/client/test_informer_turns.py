"""Others get turns of the loop while an informer takes in much; what they write meanwhile is not lost (issue 21)."""

from __future__ import annotations

import asyncio

from dray.api.generated.core import Pod
from dray.client import Informer
from dray.client.informer import LISTED_AT_ONCE, WATCHED_AT_ONCE
from listed_pods import PODS, Much, pod

COUNT = 20 * WATCHED_AT_ONCE


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
