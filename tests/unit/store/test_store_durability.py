"""What is on disk: state, history and counter survive a restart; unneeded revisions leave the file."""

from __future__ import annotations

import asyncio
from pathlib import Path

import lmdb
import pytest

from dray.store import EventType, Expired, Key, LmdbBackend, LocalStore, MemoryBackend, Record, Retention, open_store
from dray.store.backend import Batch
from store_objects import made, pod


def decode(_resource: str, data: bytes) -> str:
    return data.decode()


def stored_revisions(directory: Path) -> list[int]:
    """The revisions in the database file, read past the store."""
    with lmdb.open(str(directory), readonly=True, max_dbs=2) as env:
        log = env.open_db(b"log", create=False)
        with env.begin(log) as txn:
            return [int.from_bytes(key, "big") for key, _ in txn.cursor()]


@pytest.mark.req("4381-38")
async def test_everything_acknowledged_is_there_after_a_restart(tmp_path: Path) -> None:
    store = open_store(tmp_path, decode)
    await store.create(pod("a"), made("a"))
    updated = await store.update(pod("a"), 2, made("status: stored reliably"))
    await store.create(pod("b"), made("b"))
    await store.delete(pod("b"), None, made("b"))
    await store.close()

    again = open_store(tmp_path, decode)
    record = again.get(pod("a"))
    assert record is not None
    assert (record.obj, record.revision, record.create_revision) == ("status: stored reliably", updated.revision, 2)
    assert again.get(pod("b")) is None
    assert again.revision == 5
    assert (await again.create(pod("c"), made("c"))).revision == 6
    await again.close()


async def test_a_watch_resumes_over_a_restart_without_gap(tmp_path: Path) -> None:
    store = open_store(tmp_path, decode)
    await store.create(pod("a"), made("1"))
    await store.update(pod("a"), 2, made("2"))
    await store.delete(pod("a"), 3, made("3"))
    before = store.watch("pods", 2).read()
    await store.close()

    again = open_store(tmp_path, decode)
    after = again.watch("pods", 2).read()
    assert [(event.type, event.revision, event.record.data) for event in after] == [
        (event.type, event.revision, event.record.data) for event in before
    ]
    assert [event.previous.obj for event in after if event.previous] == ["1", "2"]
    assert [record.obj for record in again.list("pods", revision=3).records] == ["2"]
    await again.close()


async def test_compaction_removes_from_disk_what_nobody_can_ask_for(tmp_path: Path) -> None:
    store = open_store(tmp_path, decode, retention=Retention(max_events=2))
    record = await store.create(pod("kept"), made("x"))
    for _ in range(10):
        record = await store.update(pod("kept"), record.revision, made("x"))
    await store.create(pod("gone"), made("x"))
    await store.delete(pod("gone"), None, made("x"))
    await store.create(pod("last"), made("x"))
    await store.delete(pod("last"), None, made("x"))
    await store.compact()
    await store.close()
    # The state (12), and the two events of the history (15: last created, 16: last deleted).
    assert stored_revisions(tmp_path) == [record.revision, 15, 16]

    again = open_store(tmp_path, decode, retention=Retention(max_events=2))
    assert [record.key.name for record in again.list("pods").records] == ["kept"]
    with pytest.raises(Expired):
        again.watch("pods", 13)
    assert [event.type for event in again.watch("pods", 14).read()] == [EventType.ADDED, EventType.DELETED]
    await again.close()


async def test_the_counter_never_goes_back_even_when_its_last_change_was_forgotten(tmp_path: Path) -> None:
    store = open_store(tmp_path, decode, retention=Retention(max_events=0))
    await store.create(pod("a"), made("x"))
    await store.delete(pod("a"), None, made("x"))
    await store.close()
    assert stored_revisions(tmp_path) == []
    again = open_store(tmp_path, decode)
    assert again.revision == 3
    assert (await again.create(pod("b"), made("x"))).revision == 4
    await again.close()


async def test_a_smaller_retention_takes_effect_at_the_next_start(tmp_path: Path) -> None:
    store = open_store(tmp_path, decode)
    for name in "abcdef":
        await store.create(pod(name), made(name))
    await store.close()
    again = open_store(tmp_path, decode, retention=Retention(max_events=1))
    with pytest.raises(Expired):
        again.watch("pods", 5)
    await again.close()


async def test_the_map_grows_with_the_data(tmp_path: Path) -> None:
    store = open_store(tmp_path, decode, map_size=1 << 16)
    value = "x" * 3000
    await asyncio.gather(*(store.create(pod(str(n)), made(value)) for n in range(200)))
    await store.create(pod("big"), made("y" * 2_000_000))
    await store.close()
    again = open_store(tmp_path, decode, map_size=1 << 16)
    assert len(again.list("pods").records) == 201
    await again.close()


@pytest.mark.req("5055-113")
async def test_records_that_nothing_can_decode_stay_until_something_can(tmp_path: Path) -> None:
    rule = Key("devicetaintrules.resource.k8s.io", "", "rule")

    def cannot(resource: str, data: bytes) -> object:
        raise AssertionError(f"{resource} is switched off, {data!r} must not be decoded")

    store = open_store(tmp_path, decode)
    await store.create(rule, made("taint"))
    await store.close()
    without = open_store(tmp_path, cannot)
    await without.create(pod("a"), made("x"))
    await without.close()
    again = open_store(tmp_path, decode)
    assert [record.obj for record in again.list(rule.resource).records] == ["taint"]
    await again.close()


async def test_an_object_is_decoded_once_and_only_when_used(tmp_path: Path) -> None:
    calls: list[bytes] = []

    def counting(resource: str, data: bytes) -> object:
        calls.append(data)
        return (resource, data)

    store = open_store(tmp_path, counting)
    await store.create(pod("a"), made("x"))
    await store.close()
    again = open_store(tmp_path, counting)
    record = again.get(pod("a"))
    assert calls == []
    assert isinstance(record, Record)
    assert record.obj is record.obj
    assert calls == [b"x"]
    await again.close()


async def test_keys_and_data_of_any_kind_survive(tmp_path: Path) -> None:
    keys = [Key("r", "", "ü"), Key("r", "n" * 63, "x" * 253), Key("r" * 300, "", "a/b\0c")]
    store = open_store(tmp_path, lambda _resource, data: data)
    for key in keys:
        await store.create(key, lambda revision: (None, bytes(range(256)) * revision))
    await store.close()
    again = open_store(tmp_path, lambda _resource, data: data)
    for key in keys:
        record = again.get(key)
        assert record is not None
        assert record.obj == bytes(range(256)) * record.revision
    await again.close()


async def test_a_memory_backend_keeps_its_contents_for_the_next_store() -> None:
    backend = MemoryBackend()
    store = LocalStore(backend, decode, retention=Retention(max_events=1))
    await store.create(pod("a"), made("x"))
    await store.update(pod("a"), 2, made("y"))
    await store.close()
    again = LocalStore(backend, decode)
    assert [record.obj for record in again.list("pods").records] == ["y"]
    assert again.revision == 3


async def test_nothing_is_on_disk_that_was_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages have room to spare. What is in it was in memory before: perhaps a secret, or the key of one."""
    word = b"what-nobody-stored"
    commit = LmdbBackend.commit

    def commit_where_it_was(self: LmdbBackend, batch: Batch) -> None:
        in_memory = [word * (4096 // len(word)) for _ in range(100)]
        del in_memory
        commit(self, batch)

    monkeypatch.setattr(LmdbBackend, "commit", commit_where_it_was)
    store = open_store(tmp_path, decode)
    for number in range(20):
        await store.create(pod(f"pod-{number}"), made("x" * 40 * number))
    await store.close()
    assert word not in (tmp_path / "data.mdb").read_bytes()
