"""No namespace takes all the room there is: beyond its share it is refused what grows, and others go on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dray.store import Create, Finish, Key, LocalStore, MemoryBackend, ShareExceeded, open_store
from dray.store.shares import LEAST_SHARE, OBJECT_BYTES, Shares, share_of


class SmallBackend(MemoryBackend):
    """Its store has a share of 64 MiB, the least there is."""

    quota_bytes = 1


def made(size: int) -> Finish:
    return lambda _revision: ("x" * size, b"x" * size)


def store_on(backend: MemoryBackend) -> LocalStore:
    return LocalStore(backend, decode=lambda _resource, data: data)


@pytest.mark.parametrize(("namespace", "resource"), [("greedy", "maps"), ("", "slices")])
async def test_beyond_its_share_a_namespace_or_resource_gets_no_more_and_others_do(
    namespace: str, resource: str
) -> None:
    store = store_on(backend := SmallBackend())
    for number in range(8):
        await store.create(Key(resource, namespace, f"n{number}"), made(8 << 20))
    whose = namespace or resource
    with pytest.raises(ShareExceeded, match=rf'"{whose}" has {8 * ((8 << 20) + 1024)} bytes stored.* {LEAST_SHARE}'):
        await store.create(Key(resource, namespace, "more"), made(1))
    with pytest.raises(ShareExceeded):
        await store_on(backend).create(Key(resource, namespace, "after-a-restart"), made(1))
    await store.create(Key(resource, "other", "one"), made(1))
    await store.create(Key("others", "", "one"), made(1))
    first = store.get(Key(resource, namespace, "n0"))
    assert first is not None
    with pytest.raises(ShareExceeded):
        await store.update(first.key, first.revision, made((8 << 20) + 1000))
    await store.update(first.key, first.revision, made(1000))
    await store.create(Key(resource, namespace, "more"), made(1))


async def test_who_adds_a_little_again_and_again_comes_to_an_end_and_deletes_are_still_marked() -> None:
    store = store_on(SmallBackend())
    store._shares.most = 1 << 20
    record = await store.create(Key("maps", "other", "one"), made(1 << 20))
    sizes = [(1 << 20) + 500 * step for step in range(1, 1000)]
    for size in sizes:
        try:
            record = await store.update(record.key, record.revision, made(size))
        except ShareExceeded:
            break
    held = len(record.data)
    assert (1 << 20) + (1 << 16) < held < (1 << 20) + (1 << 18)
    with pytest.raises(ShareExceeded):
        await store.update(record.key, record.revision, made(held + 20))
    record = await store.update(record.key, record.revision, made(held + 1))  # a revision with one more digit

    def marked(_revision: int) -> tuple[str, bytes]:
        data = b"x" * held + b'"deletionTimestamp":"2026-11-18T11:00:00Z","deletionGracePeriodSeconds":30'
        return ("gone", data)

    await store.update(record.key, record.revision, marked)


async def test_events_of_a_namespace_take_no_room_from_what_they_are_about() -> None:
    store = store_on(SmallBackend())
    await store.create(Key("events", "default", "loud"), made(LEAST_SHARE))
    with pytest.raises(ShareExceeded, match=r'namespace "default" has \d+ bytes of events stored'):
        await store.create(Key("events", "default", "more"), made(1))
    await store.create(Key("pods", "default", "one"), made(1))


async def test_several_objects_in_one_transaction_are_all_refused() -> None:
    store = store_on(SmallBackend())
    await store.create(Key("maps", "greedy", "large"), made(LEAST_SHARE))
    with pytest.raises(ShareExceeded):
        await store.transact([Create(Key("maps", "ann", "a"), made(1)), Create(Key("maps", "greedy", "b"), made(1))])
    assert store.get(Key("maps", "ann", "a")) is None


def test_the_share_is_a_part_of_the_quota() -> None:
    assert share_of(0) == share_of(8 << 30) == 1 << 30
    assert share_of(1 << 20) == LEAST_SHARE


CHANGES = st.lists(
    st.tuples(st.sampled_from(["create", "update", "delete"]), st.integers(0, 3), st.integers(1, 900)), max_size=30
)


@given(CHANGES)
async def test_what_is_counted_is_what_is_there(changes: list[tuple[str, int, int]]) -> None:
    store = store_on(backend := MemoryBackend())
    for verb, number, size in changes:
        key = Key("maps", f"namespace-{number % 2}", f"n{number}")
        found = store.get(key)
        if verb == "create" and found is None:
            await store.create(key, made(size))
        elif verb == "update" and found is not None:
            await store.update(key, found.revision, made(size))
        elif verb == "delete" and found is not None:
            await store.delete(key, None, made(size))
    expected = Counter[str]()
    for record in store.list("maps").records:
        expected[record.key.namespace] += OBJECT_BYTES + len(record.data)
    assert store._shares._bytes == expected
    assert store_on(backend)._shares._bytes == expected


async def test_a_state_directory_has_shares_of_its_quota(tmp_path: Path) -> None:
    store = open_store(tmp_path, lambda _resource, data: data, quota_bytes=4 << 30)
    assert isinstance(store, LocalStore)
    assert isinstance(store._shares, Shares)
    assert store._shares.most == 512 << 20
    await store.close()
