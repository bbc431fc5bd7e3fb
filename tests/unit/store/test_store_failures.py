"""A disk that refuses: the writers are told, nobody has seen the write, the store goes on."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from dray.store import Conflict, LocalStore, MemoryBackend, StorageError, Store, open_store
from dray.store.backend import Batch
from store_objects import made, pod


class FailingBackend(MemoryBackend):
    """Fails the next commits with what is in `errors`."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[Exception] = []

    def commit(self, batch: Batch) -> None:
        if self.errors:
            raise self.errors.pop(0)
        super().commit(batch)


@pytest.fixture
def backend() -> FailingBackend:
    return FailingBackend()


@pytest.fixture
def failing(backend: FailingBackend) -> Store:
    return LocalStore(backend, decode=lambda _resource, data: data)


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """No file of this process may grow beyond `size`: how a full disk looks to LMDB."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("error", [StorageError("no space left"), RuntimeError("a bug")])
async def test_a_failed_batch_fails_its_writers_and_is_never_seen(
    backend: FailingBackend, failing: Store, error: Exception
) -> None:
    kept = await failing.create(pod("kept"), made("1"))
    watcher = failing.watch("pods", failing.revision)
    backend.errors.append(error)
    writes = [failing.update(pod("kept"), kept.revision, made("2")), failing.create(pod("new"), made("x"))]
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [StorageError, StorageError]
    assert failing.list("pods").records == [kept]
    assert failing.revision == 2
    assert watcher.read() == []


async def test_after_a_failure_the_same_writes_succeed_with_later_revisions(
    backend: FailingBackend, failing: Store
) -> None:
    backend.errors.append(StorageError("once"))
    with pytest.raises(StorageError):
        await failing.create(pod("a"), made("x"))
    watcher = failing.watch("pods", 1)
    record = await failing.create(pod("a"), made("x"))
    assert record.revision == 3
    assert [event.record for event in watcher.read()] == [record]


async def test_who_waited_behind_a_failed_write_is_judged_by_what_is_stored(
    backend: FailingBackend, failing: Store
) -> None:
    first = await failing.create(pod("a"), made("1"))
    backend.errors.append(StorageError("once"))
    lost, won = await asyncio.gather(
        failing.update(pod("a"), first.revision, made("lost")),
        failing.update(pod("a"), first.revision, made("won")),
        return_exceptions=True,
    )
    assert isinstance(lost, StorageError)
    assert not isinstance(won, BaseException)
    assert failing.get(pod("a")) is won
    with pytest.raises(Conflict):
        await failing.update(pod("a"), first.revision, made("late"))


async def test_a_failed_compaction_is_made_up_for_later(backend: FailingBackend) -> None:
    now = 0.0
    store = LocalStore(backend, decode=lambda _resource, data: data, clock=lambda: now)
    await store.create(pod("a"), made("x"))
    await store.delete(pod("a"), None, made("x"))
    now = 1000.0
    await store.compact()
    now = 2000.0
    backend.errors.append(StorageError("full"))
    with pytest.raises(StorageError):
        await store.compact()
    await store.compact()
    assert list(backend.load().entries) == []
    assert backend.load().revision == 3


async def test_a_full_disk_fails_writes_cleanly_and_they_resume_when_there_is_room(tmp_path: Path) -> None:
    store = open_store(tmp_path, lambda _resource, data: data)
    await asyncio.gather(*(store.create(pod(f"old-{n}"), made("x" * 3000)) for n in range(300)))
    with file_size_limit((tmp_path / "data.mdb").stat().st_size):
        outcomes = await asyncio.gather(
            *(store.create(pod(f"new-{n}"), made("x" * 3000)) for n in range(100)), return_exceptions=True
        )
        assert {type(outcome) for outcome in outcomes} == {StorageError}
        assert len(store.list("pods").records) == 300
    record = await store.create(pod("after"), made("x"))
    await store.close()

    again = open_store(tmp_path, lambda _resource, data: data)
    assert len(again.list("pods").records) == 301
    assert again.revision == record.revision
    await again.close()


async def test_a_full_disk_is_called_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What LMDB says of it is "Input/output error", which sends people looking for broken disks."""
    store = open_store(tmp_path, lambda _resource, data: data)
    await store.create(pod("old"), made("x"))
    monkeypatch.setattr("dray.store.reserve.shutil.disk_usage", lambda _path: SimpleNamespace(free=4096))
    with file_size_limit((tmp_path / "data.mdb").stat().st_size), pytest.raises(StorageError) as failed:
        await asyncio.gather(*(store.create(pod(f"new-{n}"), made("x" * 3000)) for n in range(200)))
    assert "the disk is full: 4096 bytes are free; deletes are taken, and once there is room, writing goes on" in str(
        failed.value
    )
    await store.close()
