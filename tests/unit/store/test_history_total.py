"""The past of all resources together is bounded: writing to many kinds adds up to no more than that.

What is counted is compared with what the logs hold, event by event.
"""

from __future__ import annotations

import pytest

from dray.store import Expired, Key, LocalStore, MemoryBackend, Retention, Slow
from dray.store.log import EVENT_BYTES, EventLog, Total
from dray.store.records import Event, EventType, Record
from store_objects import made

MOST = 200_000


def _store() -> LocalStore:
    return LocalStore(
        MemoryBackend(), decode=lambda _resource, data: data, retention=Retention(max_total_bytes=MOST, max_bytes=MOST)
    )


def _really_held(store: LocalStore) -> int:
    events = [event for table in store._tables.values() for event in table.log.events]
    data = sum(len(event.previous.data) for event in events if event.previous is not None)
    gone = sum(len(event.record.data) for event in events if event.type is EventType.DELETED)
    return data + gone + EVENT_BYTES * len(events)


async def _write(store: LocalStore, resource: str, times: int, size: int) -> None:
    record = await store.create(Key(resource, "x", "a"), made("x" * size))
    for _ in range(times):
        record = await store.update(Key(resource, "x", "a"), record.revision, made("x" * size))
    await store.delete(Key(resource, "x", "a"), record.revision, made("x" * size))


@pytest.mark.parametrize("size", [1, 100, 20_000])
async def test_writes_to_many_kinds_do_not_add_up(size: int) -> None:
    store = _store()
    for number in range(60):
        await _write(store, f"kind-{number}.example.com", 20, size)
        assert _really_held(store) == store._history.bytes
        assert _really_held(store) <= MOST


async def test_kinds_with_little_past_keep_it() -> None:
    """A tenant who floods kinds of its own takes nothing from the watchers of pods."""
    store = _store()
    await _write(store, "pods", 5, 100)
    with store.watch("kind-0", 1) as behind:
        for number in range(40):
            await _write(store, f"kind-{number}", 20, 1_000)
        assert len(store.watch("pods", 1).read()) == 7
        with pytest.raises(Slow):
            behind.read()
    with pytest.raises(Expired):
        store.watch("kind-0", 1)


async def test_what_leaves_the_past_leaves_the_disk() -> None:
    backend = MemoryBackend()
    store = LocalStore(backend, decode=lambda _resource, data: data, retention=Retention(max_total_bytes=MOST))
    for number in range(30):
        await _write(store, f"kind-{number}", 20, 1_000)
    await store.compact()
    stored = sum(len(entry.data) for entry in backend.load().entries)
    assert stored <= MOST


def test_a_total_is_what_its_logs_hold() -> None:
    total = Total()
    logs = [EventLog(Retention(max_events=50), total=total) for _ in range(3)]
    old: Record | None = None
    for number in range(1, 400):
        record = Record(Key("pods", "", "a"), number, 1, b"x" * number)
        logs[number % 3].append(Event(EventType.MODIFIED, record, old))
        old = record
        if number % 7 == 0:
            logs[number % 2].halve()
        for log in logs:
            log.prune(0.0)
        assert total.bytes == sum(log.held for log in logs)
    while any(log.events for log in logs):
        for log in logs:
            if log.events:
                log.halve()
    assert total.bytes == 0
