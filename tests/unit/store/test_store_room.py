"""When there is no room for more: what grows is refused, deletes and what does not grow go on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dray.store import Finish, LocalStore, MemoryBackend, OutOfSpace, open_store
from dray.store.backend import Batch
from dray.store.log import Retention
from dray.store.records import needs_room
from dray.store.reserve import AHEAD, LEAST, Reserve
from store_objects import pod


class FullBackend(MemoryBackend):
    """Takes nothing that needs room while it is `full`; it notices that when it commits."""

    def __init__(self) -> None:
        super().__init__()
        self.full = False
        self.noticed = False

    def commit(self, batch: Batch) -> None:
        if self.full and any(map(needs_room, batch.events)):
            self.noticed = True
            raise OutOfSpace("the disk is full")
        super().commit(batch)

    def refusal(self) -> str:
        return "the disk is full" if self.full and self.noticed else ""


def made(size: int) -> Finish:
    return lambda _revision: ("x" * size, b"x" * size)


async def test_of_a_batch_that_does_not_fit_what_needs_no_room_is_written() -> None:
    backend = FullBackend()
    store = LocalStore(backend, decode=lambda _resource, data: data)
    old = [await store.create(pod(f"old-{number}"), made(2000)) for number in range(3)]
    backend.full = True
    outcomes = await asyncio.gather(
        store.create(pod("new"), made(10)),
        store.delete(pod("old-0"), None, made(2000)),
        store.update(pod("old-1"), old[1].revision, made(2100)),
        store.update(pod("old-2"), old[2].revision, made(5000)),
        return_exceptions=True,
    )
    assert [isinstance(outcome, OutOfSpace) for outcome in outcomes] == [True, False, False, True]
    assert {record.key.name for record in store.list("pods").records} == {"old-1", "old-2"}
    with pytest.raises(OutOfSpace):
        await store.create(pod("new"), made(10))
    await store.delete(pod("old-1"), None, made(2100))
    backend.full = False
    await store.create(pod("new"), made(10))
    again = LocalStore(backend, decode=lambda _resource, data: data)
    assert {record.key.name for record in again.list("pods").records} == {"old-2", "new"}


async def test_beyond_its_quota_a_database_takes_deletes_and_then_more(tmp_path: Path) -> None:
    retention = Retention(max_events=1)
    store = open_store(tmp_path, lambda _resource, data: data, quota_bytes=4 << 20, retention=retention)
    number = 0
    while not store.refusal:
        await store.create(pod(f"large-{number}"), made(500_000))
        number += 1
    assert 7 <= number <= 9
    with pytest.raises(OutOfSpace, match=r"database space exceeded: .*data\.mdb holds \d+ bytes, its quota is 4194304"):
        await store.create(pod("more"), made(1))
    kept = store.get(pod("large-0"))
    assert kept is not None
    await store.update(kept.key, kept.revision, made(400_000))
    assert store.refusal
    for index in range(1, number):
        await store.delete(pod(f"large-{index}"), None, made(10))
    await store.compact()
    assert store.refusal == ""
    await store.create(pod("after"), made(500_000))
    await store.close()


async def test_a_quota_counts_what_was_stored_before(tmp_path: Path) -> None:
    store = open_store(tmp_path, lambda _resource, data: data)
    for number in range(5):
        await store.create(pod(f"large-{number}"), made(1_000_000))
    await store.close()
    again = open_store(tmp_path, lambda _resource, data: data, quota_bytes=4 << 20)
    assert "database space exceeded" in again.refusal
    await again.close()


def test_there_is_room_ahead_of_a_file_and_its_size_is_what_it_was(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 4096)
    reserve = Reserve(file)
    assert reserve.secure(4096)
    allocated = file.stat().st_blocks * 512
    assert file.stat().st_size == 4096
    assert allocated >= AHEAD
    assert reserve.secure(AHEAD - LEAST)
    assert file.stat().st_blocks * 512 == allocated
    assert reserve.secure(AHEAD)
    assert file.stat().st_blocks * 512 > allocated
