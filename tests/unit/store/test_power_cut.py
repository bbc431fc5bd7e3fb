"""A power cut between two syncs: the disk has any of the sectors that were written since the last one, in any order.

LMDB writes the pages of a transaction, syncs them, and then the page (0 or 1) that makes them count, synced as well.
So after a cut the file is what the last acknowledged write left, with any part of what the next one has written: all
such files must open, at the last acknowledged revision, with everything whole.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from dray.store import Key, LmdbBackend, Retention, Store, open_store
from dray.store.lmdb_file import NAME

SECTOR = 512
META_BYTES = 2 * 4096
RETENTION = Retention(max_events=40)
KEYS = [Key("pods", "default", f"p-{number}") for number in range(12)]

State = dict[Key, bytes]


def decode(_resource: str, data: bytes) -> bytes:
    return data


def open_here(directory: Path) -> Store:
    return open_store(directory, decode, retention=RETENTION, map_size=1 << 20)


async def write_one(store: Store, dice: random.Random) -> None:
    """One acknowledged write; what is written crosses pages now and then."""
    key = dice.choice(KEYS)
    content = bytes(dice.randrange(256) for _ in range(20)) * dice.choice([1, 10, 300, 1000])
    current = store.get(key)
    if current is None:
        await store.create(key, lambda _: (content, content))
    elif dice.random() < 0.3:
        await store.delete(key, current.revision, lambda _: (content, content))
    else:
        await store.update(key, current.revision, lambda _: (content, content))


def state_of(store: Store) -> State:
    return {record.key: record.data for record in store.list("pods").records}


def files_after_a_cut(before: bytes, after: bytes, dice: random.Random, count: int) -> Iterator[bytes]:
    """What the disk may have if the power fails before the page that makes the next write count is on it."""
    old = before.ljust(len(after), b"\0")
    places = range(META_BYTES, len(after), SECTOR)
    written = [place for place in places if old[place : place + SECTOR] != after[place : place + SECTOR]]
    for share in (1.0, *(dice.random() for _ in range(count))):
        image = bytearray(old)
        for place in written:
            if dice.random() < share:
                image[place : place + SECTOR] = after[place : place + SECTOR]
        yield bytes(image)
    yield before  # not even the new length of the file


async def survive(directory: Path, writes: int, images: int, seed: int) -> int:
    """Cuts the power after each of so many writes, in several ways; how many files were opened."""
    dice = random.Random(seed)
    living, cut = directory / "living", directory / "cut"
    opened = 0
    store = open_here(living)
    for _ in range(writes):
        before, expected, revision = (living / NAME).read_bytes(), state_of(store), store.revision
        await write_one(store, dice)
        after = (living / NAME).read_bytes()
        for image in files_after_a_cut(before, after, dice, images):
            await check(cut, image, expected, revision)
            opened += 1
        await check(cut, after, state_of(store), store.revision)
    await store.close()
    return opened


async def check(directory: Path, image: bytes, expected: State, revision: int) -> None:
    """A file opens at a revision with these records, and takes a write."""
    directory.mkdir(exist_ok=True)
    for each in directory.iterdir():
        each.unlink()
    (directory / NAME).write_bytes(image)
    store = open_here(directory)
    try:
        assert (store.revision, state_of(store)) == (revision, expected)
        made = await store.create(Key("pods", "default", "after"), lambda _: (b"", b""))
        assert made.revision > revision
    finally:
        await store.close()


def test_nothing_is_acknowledged_before_it_is_synced(tmp_path: Path) -> None:
    """What the other tests stand on: neither pages nor the one that makes them count are left to the system's cache."""
    backend = LmdbBackend(tmp_path)
    flags = backend._env.flags()
    backend.close()
    assert flags["sync"]
    assert flags["metasync"]
    assert not flags["writemap"]


async def test_what_was_acknowledged_survives_a_power_cut(tmp_path: Path) -> None:
    assert await survive(tmp_path, writes=8, images=2, seed=1) > 20


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
async def test_what_was_acknowledged_survives_many_power_cuts(tmp_path: Path, seed: int) -> None:
    assert await survive(tmp_path, writes=100, images=10, seed=seed + 2) > 1000
