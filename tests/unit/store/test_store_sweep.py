"""Of versions that nobody has written for a while only packed bytes are kept, and nobody notices (issue 21)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dray.store import LocalStore, MemoryBackend, Record
from dray.store.log import TYPED_EVENTS
from dray.store.packing import Packed
from dray.store.sweep import EACH_BYTES, PACKED_IN_A_TURN, SEEN_IN_A_TURN, Sweep
from dray.store.table import Table
from store_objects import pod

COUNT = TYPED_EVENTS + 5 * PACKED_IN_A_TURN


class Typed:
    """What bytes are decoded to."""

    def __init__(self, value: Any) -> None:
        self.value = value


def decode(_resource: str, data: bytes) -> Typed:
    return Typed(json.loads(data))


def value(number: int, revision: int) -> dict[str, Any]:
    return {"number": number, "revision": revision, "spec": {"containers": [{"command": ["run"] * 100}]}}


def made(number: int) -> Callable[[int], tuple[Typed, bytes]]:
    def finish(revision: int) -> tuple[Typed, bytes]:
        written = value(number, revision)
        return Typed(written), json.dumps(written).encode()

    return finish


def is_packed(record: Record) -> bool:
    return isinstance(record._data, Packed)


class Loop:
    """Has what is due called when it is told to."""

    def __init__(self) -> None:
        self.due: list[Callable[[], None]] = []
        self.turns = 0

    def call_soon(self, function: Callable[[], None]) -> None:
        self.due.append(function)

    def run(self) -> None:
        while self.due:
            self.turns += 1
            self.due.pop(0)()


def all_swept(store: LocalStore) -> int:
    loop = Loop()
    store.sweep.wrote(EACH_BYTES, loop.call_soon)
    loop.run()
    return loop.turns


async def filled(count: int = COUNT) -> LocalStore:
    """Twice as many versions as pods: each is there, replaced or deleted."""
    store = LocalStore(MemoryBackend(), decode)
    created = await asyncio.gather(*(store.create(pod(str(number)), made(number)) for number in range(count)))
    await asyncio.gather(*(store.update(record.key, record.revision, made(1)) for record in created[::2]))
    await asyncio.gather(*(store.delete(pod(str(number)), None, made(number)) for number in range(1, count, 2)))
    return store


async def test_what_nobody_writes_is_packed_and_the_last_versions_are_not() -> None:
    store = await filled()
    all_swept(store)
    events = store.watch("pods", 0).read()
    past, recent = events[:-TYPED_EVENTS], events[-TYPED_EVENTS:]
    assert not any(is_packed(event.record) or event.previous is None for event in recent)
    assert sum(is_packed(event.previous) for event in past if event.previous is not None) > 0
    present = {record.revision for record in store.list("pods").records}
    written_long_ago = [event.record for event in past if event.record.revision in present]
    assert written_long_ago
    assert sum(map(is_packed, written_long_ago)) >= len(written_long_ago) - 1, "but for the example"


async def test_lists_history_and_watches_say_what_they_said() -> None:
    store = await filled()
    half = store.list("pods").revision - COUNT // 4

    def seen() -> list[Any]:
        events = store.watch("pods", 0).read()
        return [
            [(record.key, record.revision, record.data, record.obj.value) for record in store.list("pods").records],
            [(record.key, record.data) for record in store.list("pods", revision=half).records],
            [(event.type, event.record.data, event.record.obj.value) for event in events],
            [(event.previous.data, event.previous.size) for event in events if event.previous is not None],
        ]

    before = seen()
    all_swept(store)
    assert seen() == before


async def test_an_object_that_somebody_else_has_is_not_made_again() -> None:
    store = await filled()
    cached = {record.key: record.obj for record in store.list("pods").records}
    kept = next(iter(cached))
    for key in list(cached)[1:]:
        del cached[key]
    all_swept(store)
    by_key = {record.key: record for record in store.list("pods").records}
    assert by_key[kept].obj is cached[kept]
    assert sum(record.is_decoded for record in by_key.values()) <= TYPED_EVENTS + 1


async def test_no_turn_packs_many_or_looks_at_many(monkeypatch: pytest.MonkeyPatch) -> None:
    store = await filled(3 * SEEN_IN_A_TURN)
    seen, packed = [0], [0]
    rest, cold = Record.rest, Table.cold

    def counted_rest(record: Record, *told: Any) -> bool:
        packed[-1] += (found := rest(record, *told))
        return found

    def counted_cold(table: Table) -> Iterator[Record]:
        for record in cold(table):
            seen[-1] += 1
            yield record

    monkeypatch.setattr(Record, "rest", counted_rest)
    monkeypatch.setattr(Table, "cold", counted_cold)
    for _ in range(2):
        loop = Loop()
        store.sweep.wrote(EACH_BYTES, loop.call_soon)
        while loop.due:
            seen.append(0)
            packed.append(0)
            loop.due.pop(0)()
    assert max(seen) == SEEN_IN_A_TURN
    assert max(packed) == PACKED_IN_A_TURN


def test_a_sweep_begins_when_enough_was_written_and_says_when_it_ends() -> None:
    ended: list[int] = []
    loop, sweep = Loop(), Sweep({}, decode)
    sweep.on_end = lambda: ended.append(1)
    sweep.loaded(EACH_BYTES // 2)
    sweep.wrote(EACH_BYTES // 2 - 1, loop.call_soon)
    assert not loop.due
    sweep.wrote(1, loop.call_soon)
    sweep.wrote(EACH_BYTES, loop.call_soon)
    assert len(loop.due) == 1, "one at a time"
    loop.run()
    assert ended == [1]
    sweep.wrote(1, loop.call_soon)
    loop.run()
    assert ended == [1, 1], "what was written meanwhile counts for the next one"


async def test_the_more_there_is_to_look_at_the_more_is_written_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else most of the time would go into looking whether a hundred thousand versions are packed already."""
    store = await filled()
    monkeypatch.setattr("dray.store.sweep.BYTES_FOR_EACH_SEEN", EACH_BYTES)
    assert all_swept(store) > 1
    assert all_swept(store) == 0
    loop = Loop()
    store.sweep.wrote(2 * COUNT * EACH_BYTES, loop.call_soon)
    loop.run()
    assert loop.turns


async def test_a_store_that_is_closed_packs_nothing() -> None:
    store = await filled()
    loop = Loop()
    store.sweep.wrote(EACH_BYTES, loop.call_soon)
    await store.close()
    loop.run()
    assert not any(is_packed(record) for record in store.list("pods").records)


def test_while_it_is_held_none_begins_and_what_was_written_counts() -> None:
    loop, sweep = Loop(), Sweep({}, decode)
    sweep.hold()
    sweep.wrote(EACH_BYTES, loop.call_soon)
    assert not loop.due
    sweep.release(loop.call_soon)
    assert len(loop.due) == 1
