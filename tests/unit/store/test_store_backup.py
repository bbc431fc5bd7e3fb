"""Backups: taken while writes go on, by the store or from outside, and restored into an empty directory."""

from __future__ import annotations

import asyncio
import stat
import sys
from pathlib import Path

import pytest

from dray.store import (
    BackupError,
    Corrupt,
    Expired,
    Key,
    LocalStore,
    Locked,
    MemoryBackend,
    Store,
    backup,
    open_store,
    restore,
)
from dray.store.backup import REVISION_LEAP
from store_objects import made


def decode(_resource: str, data: bytes) -> str:
    return data.decode()


async def write(store: Store, start: int, stop: int) -> None:
    for number in range(start, stop):
        await store.create(Key("pods", "default", f"{number:04}"), made(str(number)))


async def restored_names(file: Path, directory: Path) -> list[str]:
    restore(file, directory)
    store = open_store(directory, decode)
    names = [record.key.name for record in store.list("pods").records]
    await store.close()
    return names


async def test_a_backup_taken_during_writes_is_a_consistent_prefix(tmp_path: Path) -> None:
    store = open_store(tmp_path / "state", decode)
    await write(store, 0, 200)
    writing = asyncio.ensure_future(write(store, 200, 400))
    await store.backup(tmp_path / "backup")
    await writing
    await store.close()
    names = await restored_names(tmp_path / "backup", tmp_path / "new")
    assert len(names) >= 200
    assert names == [f"{number:04}" for number in range(len(names))]
    assert stat.S_IMODE((tmp_path / "backup").stat().st_mode) == 0o600


async def test_a_directory_is_backed_up_from_outside_when_it_is_idle(tmp_path: Path) -> None:
    store = open_store(tmp_path / "state", decode)
    await write(store, 0, 10)
    await store.close()
    backup(tmp_path / "state", tmp_path / "backup")
    assert len(await restored_names(tmp_path / "backup", tmp_path / "new")) == 10


async def test_a_directory_is_backed_up_from_outside_while_a_server_writes(tmp_path: Path) -> None:
    store = open_store(tmp_path / "state", decode)
    await write(store, 0, 100)
    writing = asyncio.ensure_future(write(store, 100, 400))
    code = f"from dray.store import backup; backup({str(tmp_path / 'state')!r}, {str(tmp_path / 'backup')!r})"
    other = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
    assert await other.wait() == 0
    await writing
    await store.close()
    names = await restored_names(tmp_path / "backup", tmp_path / "new")
    assert len(names) >= 100
    assert names == [f"{number:04}" for number in range(len(names))]


async def test_a_restored_store_is_ahead_of_everything_clients_may_have_seen(tmp_path: Path) -> None:
    store = open_store(tmp_path / "state", decode)
    await write(store, 0, 10)
    await store.delete(Key("pods", "default", "0003"), None, made("gone"))
    await store.backup(tmp_path / "backup")
    await write(store, 10, 20)
    latest = store.revision
    await store.close()
    restore(tmp_path / "backup", tmp_path / "new")
    again = open_store(tmp_path / "new", decode)
    assert again.revision == 12 + REVISION_LEAP
    assert len(again.list("pods").records) == 9
    with pytest.raises(Expired):
        again.watch("pods", latest)
    assert (await again.create(Key("pods", "default", "x"), made("x"))).revision == again.revision
    await again.close()
    once_more = open_store(tmp_path / "new", decode)
    assert len(once_more.list("pods").records) == 10
    await once_more.close()


async def test_refusals_name_the_file_and_leave_nothing_behind(tmp_path: Path) -> None:
    store = open_store(tmp_path / "state", decode)
    await write(store, 0, 100)
    await store.backup(tmp_path / "backup")
    with pytest.raises(BackupError, match="it exists"):
        await store.backup(tmp_path / "backup")
    with pytest.raises(BackupError, match="No such file"):
        await store.backup(tmp_path / "nowhere" / "backup")
    with pytest.raises(Locked):
        restore(tmp_path / "backup", tmp_path / "state")
    await store.close()
    with pytest.raises(BackupError, match="already holds a database"):
        restore(tmp_path / "backup", tmp_path / "state")
    with pytest.raises(BackupError, match="no such file"):
        restore(tmp_path / "missing", tmp_path / "new")
    with pytest.raises(BackupError, match="no database in it"):
        backup(tmp_path / "new", tmp_path / "backup2")
    content = bytearray((tmp_path / "backup").read_bytes())
    content[content.index(b"pods") + 1] ^= 1
    (tmp_path / "backup").write_bytes(content)
    with pytest.raises(Corrupt, match="wrong checksum"):
        restore(tmp_path / "backup", tmp_path / "new")
    assert not (tmp_path / "new" / "data.mdb").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup", "new", "state"]


async def test_holes_of_a_backup_take_no_room_when_it_is_restored(tmp_path: Path) -> None:
    """A file of kilobytes may say that it is longer than the disk."""
    file, directory = tmp_path / "backup", tmp_path / "new"
    store = open_store(tmp_path / "state", decode)
    await write(store, 0, 10)
    await store.backup(file)
    await store.close()
    with file.open("r+b") as longer:
        longer.truncate(256 << 20)
    assert len(await restored_names(file, directory)) == 10
    assert (directory / "data.mdb").stat().st_blocks * 512 < 32 << 20


async def test_a_store_in_memory_says_that_it_has_no_backup(tmp_path: Path) -> None:
    store = LocalStore(MemoryBackend(), decode)
    with pytest.raises(BackupError, match="in memory"):
        await store.backup(tmp_path / "backup")
