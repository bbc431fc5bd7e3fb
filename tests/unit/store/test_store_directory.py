"""The state directory: private, held by one process, and damage is named instead of crashing."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import stat
import subprocess
import sys
from pathlib import Path

import lmdb
import pytest

from dray.store import Corrupt, Key, Locked, StoreError, Unusable, open_store
from dray.store.lock import DirectoryLock
from store_objects import made


def decode(_resource: str, data: bytes) -> bytes:
    return data


async def fill(directory: Path, count: int = 50) -> Path:
    """A closed store with some records; returns its database file."""
    store = open_store(directory, decode)
    await asyncio.gather(*(store.create(Key("pods", "default", str(n)), made(f"{n} " * 500)) for n in range(count)))
    await store.close()
    return directory / "data.mdb"


async def test_directory_and_files_are_private(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        await fill(tmp_path / "state")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state").iterdir()} == {0o600}


async def test_a_second_opener_is_told_who_has_the_directory(tmp_path: Path) -> None:
    holder = (
        "import sys, time\n"
        "from dray.store.lock import DirectoryLock\n"
        f"lock = DirectoryLock({str(tmp_path)!r})\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, "-c", holder], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        with pytest.raises(Locked, match=rf"another dray \(pid {child.pid}\) is using it"):
            open_store(tmp_path, decode)
        child.kill()
    await open_store(tmp_path, decode).close()


def test_the_same_process_cannot_open_a_directory_twice(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    with pytest.raises(Locked):
        open_store(tmp_path, decode)
    lock.release()
    DirectoryLock(tmp_path).release()


def test_a_path_that_is_no_directory_is_unusable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(Unusable, match="not a directory"):
        open_store(tmp_path / "file", decode)


def test_a_read_only_directory_is_unusable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, *_: object) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(Unusable, match=f"cannot use state directory {tmp_path}: read-only file system"):
        open_store(tmp_path, decode)


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize("damage", ["empty", "truncated", "garbage", "other"])
async def test_a_damaged_file_is_named_and_left_alone(tmp_path: Path, damage: str, sealed: bool) -> None:
    file = await fill(tmp_path)
    whole = file.read_bytes()
    if damage == "other":
        file.unlink()
        lmdb.open(str(file), subdir=False, lock=False).close()
    else:
        file.write_bytes({"empty": b"", "truncated": whole[:20_000], "garbage": b"no database" * 5000}[damage])
    if not sealed:
        (tmp_path / "sealed").unlink()
    broken = file.read_bytes()
    with pytest.raises(Corrupt, match=r"data\.mdb is damaged: .* Move the file away and restore a backup"):
        open_store(tmp_path, decode)
    assert file.read_bytes() == broken
    file.write_bytes(whole)
    await open_store(tmp_path, decode).close()


async def test_a_flipped_bit_in_a_record_is_found(tmp_path: Path) -> None:
    file = await fill(tmp_path)
    # LMDB copies pages when it writes: pages that are no longer in use may hold the record, too.
    file.write_bytes(file.read_bytes().replace(b"7 7 7 7 7 7", b"6 7 7 7 7 7"))
    with pytest.raises(Corrupt, match="wrong checksum"):
        open_store(tmp_path, decode)


async def test_a_missing_record_is_found(tmp_path: Path) -> None:
    store = open_store(tmp_path, decode)
    await store.create(Key("pods", "", "a"), made("1"))
    await store.update(Key("pods", "", "a"), 2, made("2"))
    await store.close()
    with lmdb.open(str(tmp_path), max_dbs=2) as env:
        log = env.open_db(b"log")
        with env.begin(log, write=True) as txn:
            txn.delete((2).to_bytes(8, "big"))
    with pytest.raises(Corrupt, match="revision 2 of pods a is missing"):
        open_store(tmp_path, decode)


async def test_random_damage_never_kills_the_process(tmp_path: Path) -> None:
    """Whatever is overwritten, opening either works or names the damage."""
    file = await fill(tmp_path, 20)
    whole = file.read_bytes()
    dice = random.Random(7)
    named = 0
    for _ in range(25):
        content = bytearray(whole)
        for _ in range(dice.choice([1, 20, 400])):
            content[dice.randrange(len(content))] = dice.randrange(256)
        file.write_bytes(content)
        try:
            await open_store(tmp_path, decode).close()
        except StoreError:
            named += 1
    assert named > 10


async def test_a_database_of_a_later_format_is_refused(tmp_path: Path) -> None:
    await fill(tmp_path)
    with lmdb.open(str(tmp_path), max_dbs=2) as env:
        meta = env.open_db(b"meta")
        with env.begin(meta, write=True) as txn:
            txn.put(b"format", (9).to_bytes(8, "big"))
    with pytest.raises(Corrupt, match="its format is 9, this dray reads format 1"):
        open_store(tmp_path, decode)
