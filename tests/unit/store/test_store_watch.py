"""Watches: no gap, no duplicate, bookmarks, stalled readers cut off, wake-ups shared by a batch."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from dray.store import (
    Closed,
    Event,
    EventType,
    Expired,
    Key,
    LocalStore,
    MemoryBackend,
    Record,
    Retention,
    Slow,
    Store,
    folded,
)
from dray.store.watch import WAKE_SECONDS
from patience import PATIENCE
from store_objects import made, pod


def seen(events: list[Event]) -> list[tuple[str, str, int]]:
    return [(event.type.value, event.record.key.name, event.revision) for event in events]


async def test_a_watch_gives_every_change_after_its_revision_in_order(store: Store) -> None:
    await store.create(pod("a"), made("1"))
    watcher = store.watch("pods", store.revision)
    await store.update(pod("a"), 2, made("2"))
    await store.create(Key("nodes", "", "n"), made("n"))
    await store.delete(pod("a"), 3, made("3"))
    events = watcher.read()
    assert seen(events) == [("MODIFIED", "a", 3), ("DELETED", "a", 5)]
    assert [event.previous.data for event in events if event.previous] == [b"1", b"2"]
    assert events[1].record.data == b"3"
    assert watcher.read() == []


async def test_a_watch_from_the_past_begins_with_the_history(store: Store) -> None:
    for name in "abc":
        await store.create(pod(name), made(name))
    assert seen(store.watch("pods", 2).read()) == [("ADDED", "b", 3), ("ADDED", "c", 4)]
    assert seen(store.watch("pods", 1).read(limit=2)) == [("ADDED", "a", 2), ("ADDED", "b", 3)]


async def test_a_namespace_watch_sees_only_its_namespace(store: Store) -> None:
    watcher = store.watch("pods", 1, "x")
    waiting = asyncio.ensure_future(watcher.next())
    await store.create(pod("a", "y"), made("a"))
    await asyncio.sleep(0)
    assert not waiting.done()
    await store.create(pod("b", "x"), made("b"))
    assert seen(await waiting) == [("ADDED", "b", 3)]


async def test_a_waiting_reader_gets_a_batch_in_one_piece(store: Store) -> None:
    watcher = store.watch("pods", 1)
    waiting = asyncio.ensure_future(watcher.next())
    await asyncio.sleep(0)
    await asyncio.gather(*(store.create(pod(str(n)), made("x")) for n in range(100)))
    assert len(await waiting) == 100


async def test_wake_ups_of_many_watchers_are_spaced_and_nothing_is_lost(store: Store) -> None:
    watchers = [store.watch("pods", 1) for _ in range(100)]
    wakes = 0

    async def follow(number: int) -> list[int]:
        nonlocal wakes
        revisions: list[int] = []
        while len(revisions) < 40:
            revisions += [event.revision for event in await watchers[number].next()]
            wakes += 1
        return revisions

    followers = [asyncio.ensure_future(follow(number)) for number in range(100)]
    await asyncio.sleep(0)
    started = asyncio.get_running_loop().time()
    for number in range(40):
        await store.create(pod(str(number)), made("x"))
    streams = await asyncio.gather(*followers)
    duration = asyncio.get_running_loop().time() - started
    assert all(stream == list(range(2, 42)) for stream in streams)
    assert wakes <= 100 * (2 + duration / (100 * WAKE_SECONDS))


async def test_an_idle_watcher_knows_the_revision_for_a_bookmark(store: Store) -> None:
    watcher = store.watch("pods", 1)
    await store.create(Key("nodes", "", "n"), made("n"))
    assert await watcher.next(timeout=0.01) == []
    assert watcher.revision == store.revision == 2


async def test_a_bookmark_never_passes_an_event_that_was_not_handed_out(store: Store) -> None:
    watcher = store.watch("pods", 1)
    for name in "abc":
        await store.create(pod(name), made(name))
    watcher.read(limit=1)
    assert watcher.revision == 2
    watcher.read()
    assert watcher.revision == 4


async def test_a_watch_from_a_revision_to_come_starts_there(store: Store) -> None:
    watcher = store.watch("pods", 3)
    for name in "abc":
        await store.create(pod(name), made(name))
    assert seen(watcher.read()) == [("ADDED", "c", 4)]


async def test_a_revision_older_than_the_history_is_expired() -> None:
    store = LocalStore(MemoryBackend(), decode=lambda _resource, data: data, retention=Retention(max_events=2))
    for name in "abcd":
        await store.create(pod(name), made(name))
    with pytest.raises(Expired):
        store.watch("pods", 2)
    assert len(store.watch("pods", 3).read()) == 2


async def test_a_quiet_resource_keeps_its_history_while_a_busy_one_churns() -> None:
    store = LocalStore(MemoryBackend(), decode=lambda _resource, data: data, retention=Retention(max_events=2))
    await store.create(Key("nodes", "", "n"), made("n"))
    for number in range(20):
        await store.create(pod(str(number)), made("x"))
    assert [event.type for event in store.watch("nodes", 1).read()] == [EventType.ADDED]


async def test_a_stalled_reader_is_cut_off_and_the_others_go_on() -> None:
    store = LocalStore(MemoryBackend(), decode=lambda _resource, data: data, retention=Retention(max_events=3))
    stalled, reader = store.watch("pods", 1), store.watch("pods", 1)
    count = 0
    for number in range(6):
        await store.create(pod(str(number)), made("x"))
        count += len(reader.read())
    with pytest.raises(Slow, match=r"after revision 1$"):
        stalled.read()
    assert count == 6
    assert store.stats().watchers == {"pods": 1}


async def test_history_ages() -> None:
    now = 0.0
    store = LocalStore(
        MemoryBackend(), decode=lambda _resource, data: data, retention=Retention(max_age=60), clock=lambda: now
    )
    await store.create(pod("old"), made("x"))
    now = 50.0
    await store.create(pod("new"), made("x"))
    now = 100.0
    await store.compact()
    with pytest.raises(Expired):
        store.watch("pods", 1)
    assert seen(store.watch("pods", 2).read()) == [("ADDED", "new", 3)]


async def test_history_is_bounded_in_bytes() -> None:
    store = LocalStore(MemoryBackend(), decode=lambda _resource, data: data, retention=Retention(max_bytes=1000))
    record = await store.create(pod("a"), made("x" * 400))
    for _ in range(5):
        record = await store.update(pod("a"), record.revision, made("x" * 400))
    assert store.stats().events["pods"] == 2


async def test_closing_ends_a_pending_wait(store: Store) -> None:
    with store.watch("pods", 1) as watcher:
        waiting = asyncio.ensure_future(watcher.next())
        await asyncio.sleep(0)
        await store.close()
        with pytest.raises(Closed):
            await waiting
    with pytest.raises(Closed):
        store.watch("pods", 1)


async def test_a_cancelled_wait_leaves_the_watcher_usable(store: Store) -> None:
    watcher = store.watch("pods", 1)
    waiting = asyncio.ensure_future(watcher.next(timeout=PATIENCE))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await store.create(pod("a"), made("x"))
    assert seen(await watcher.next()) == [("ADDED", "a", 2)]


async def test_a_limit_spent_on_other_namespaces_does_not_stop_the_reader(store: Store) -> None:
    for number in range(5):
        await store.create(pod(str(number), "y"), made("x"))
    await store.create(pod("mine", "x"), made("x"))
    watcher = store.watch("pods", 1, "x")
    assert seen(await watcher.next(timeout=PATIENCE, limit=2)) == [("ADDED", "mine", 7)]
    assert await watcher.next(timeout=0) == []


@pytest.mark.parametrize("seed", range(20))
async def test_changes_that_are_folded_come_to_the_same(store: Store, seed: int) -> None:
    """However many changes are gathered: who is told what they come to has what is there, and has heard of all there
    was, of each once; or twice, if it came and went."""
    chance = random.Random(seed)
    watcher = store.watch("pods", store.revision)
    there: dict[Key, Record] = {}
    for _ in range(15):
        raw = []
        for _ in range(chance.randrange(1, 12)):
            await happen(store, chance)
            raw += watcher.read()
        told = folded(raw)
        heard = Counter((event.record.key, event.record.create_revision) for event in told)
        assert heard.keys() == {(event.record.key, event.record.create_revision) for event in raw}
        news = {(event.record.key, event.record.create_revision) for event in told if event.type is EventType.ADDED}
        assert all(count == 1 or (count == 2 and one in news) for one, count in heard.items())
        for event in told:
            known = there.pop(event.record.key, None)
            assert event.previous is known
            assert event.type is (EventType.ADDED if known is None else event.type)
            if event.type is EventType.DELETED:
                assert known is not None
                assert known.create_revision == event.record.create_revision
            else:
                there[event.record.key] = event.record
        assert sorted(there.values(), key=lambda one: one.key) == store.list("pods").records


async def happen(store: Store, chance: random.Random) -> None:
    """One change to one of three pods."""
    key = pod(chance.choice("abc"))
    known = store.get(key)
    if known is None:
        await store.create(key, made("new"))
    elif chance.random() < 0.5:
        await store.update(key, known.revision, made("newer"))
    else:
        await store.delete(key, known.revision, made("last"))
