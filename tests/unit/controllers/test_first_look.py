"""Handlers that judge objects by others hear of them when all are known (issue 21)."""

from __future__ import annotations

import asyncio

from dray.api.generated.core import Pod
from dray.client import Informer
from dray.controllers.first_look import AT_ONCE, FirstLook
from listed_pods import PODS, Much, pod

COUNT = 3 * AT_ONCE


def informer_of(*pods: Pod) -> Informer[Pod]:
    return Informer(Much(list(pods), []), PODS, sleep=asyncio.sleep)  # type: ignore[arg-type]


async def test_handlers_wait_for_the_other_lists_and_leave_turns_to_others() -> None:
    first, second = informer_of(*map(pod, range(COUNT))), informer_of(pod(0))
    heard: list[Pod | None] = []
    look = FirstLook((first, lambda _, new: heard.append(new)), (second, lambda _, new: heard.append(new)))
    looking = asyncio.ensure_future(look.look())
    running = [asyncio.ensure_future(first.run())]
    await first.synced()
    await asyncio.sleep(0)
    assert heard == []
    assert not look.has_begun
    running.append(asyncio.ensure_future(second.run()))
    most = before = 0
    while not looking.done():
        await asyncio.sleep(0)
        most, before = max(most, len(heard) - before), len(heard)
    assert heard == [*first, *second]
    assert most == AT_ONCE
    for one in running:
        one.cancel()
    await asyncio.gather(*running, return_exceptions=True)


async def test_what_happens_meanwhile_is_told_once() -> None:
    informer = informer_of(*map(pod, range(COUNT)))
    heard: list[tuple[Pod | None, Pod | None]] = []
    look = FirstLook((informer, lambda old, new: heard.append((old, new))))
    running = asyncio.ensure_future(informer.run())
    await informer.synced()
    looking = asyncio.ensure_future(look.look())
    while not heard:
        await asyncio.sleep(0)
    last = pod(COUNT - 1)
    newer = pod(COUNT - 1, revision=200)
    informer.put(newer)
    await looking
    assert [(old, new) for old, new in heard if new is not None and new.metadata.name == last.metadata.name] == [
        (last, newer)
    ]
    await look.look()
    assert len(heard) == COUNT, "looked at again, after another start of the same controller"
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
