"""Of versions that were replaced or deleted, the history keeps the bytes; typed objects are there for the last ones."""

from __future__ import annotations

from dray.store import LocalStore, MemoryBackend, Store
from dray.store.log import TYPED_EVENTS
from store_objects import pod

COUNT = 2 * TYPED_EVENTS


def decode(resource: str, data: bytes) -> object:
    return [resource, data.decode()]


async def changed_often() -> Store:
    store = LocalStore(MemoryBackend(), decode)
    await store.create(pod("a"), lambda revision: (["pods", str(revision)], str(revision).encode()))
    for _ in range(COUNT):
        last = store.revision
        await store.update(pod("a"), last, lambda revision: (["pods", str(revision)], str(revision).encode()))
    return store


async def test_few_replaced_versions_have_a_typed_object() -> None:
    store = await changed_often()
    await store.delete(pod("a"), store.revision, lambda revision: (["pods", str(revision)], str(revision).encode()))
    await store.create(pod("b"), lambda revision: (["pods", str(revision)], str(revision).encode()))
    for _ in range(TYPED_EVENTS):
        last = store.revision
        await store.update(pod("b"), last, lambda revision: (["pods", str(revision)], str(revision).encode()))
    events = store.watch("pods", 1).read()
    assert len(events) == COUNT + TYPED_EVENTS + 3
    decoded = sum(event.record.is_decoded for event in events)
    assert decoded <= TYPED_EVENTS + 2
    assert events[-1].record.is_decoded
    assert store.list("pods").records[0].is_decoded


async def test_whoever_watches_from_the_past_sees_them_all_the_same() -> None:
    store = await changed_often()
    events = store.watch("pods", 1).read()
    assert not events[1].record.is_decoded
    assert [event.record.obj for event in events] == [["pods", str(event.revision)] for event in events]
    before = [event.previous for event in events if event.previous is not None]
    assert [one.obj for one in before] == [["pods", str(one.revision)] for one in before]
    assert events[1].record.obj is events[1].record.obj, "decoded once"
