"""A write storm killed with SIGKILL at random moments loses nothing that was acknowledged.

Run as a program, this file is the victim: it writes through the store and reports every acknowledgement on a pipe.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dray.store import Event, EventType, Finish, Key, Record, Retention, Store, open_store

WRITERS = 24
KEYS_PER_WRITER = 4
RETENTION = Retention(max_events=300)


def value(key: Key, revision: int) -> bytes:
    """What a whole write of `key` at `revision` must look like; sizes vary over LMDB's page size."""
    return f"{key.name}@{revision} ".encode() * (1 + revision % 400)


def finish(key: Key) -> Finish:
    return lambda revision: (None, value(key, revision))


def decode(_resource: str, data: bytes) -> bytes:
    return data


def open_here(directory: str | Path) -> Store:
    return open_store(directory, decode, retention=RETENTION, map_size=1 << 18)


# ---- the victim -----------------------------------------------------------------------------------------------


async def write_one(store: Store, key: Key, dice: random.Random) -> Record:
    current = store.get(key)
    if current is None:
        return await store.create(key, finish(key))
    if dice.random() < 0.3:
        return await store.delete(key, current.revision, finish(key))
    return await store.update(key, current.revision, finish(key))


async def storm(store: Store, number: int, seed: int) -> None:
    dice = random.Random(seed * WRITERS + number)
    while True:
        key = Key("pods", "default", f"{number}-{dice.randrange(KEYS_PER_WRITER)}")
        record = await write_one(store, key, dice)
        state = "-" if store.get(key) is None else "+"
        os.write(1, f"{state} {key.name} {record.revision}\n".encode())


async def be_the_victim(directory: str, seed: int) -> None:
    store = open_here(directory)
    os.write(1, f"ready {store.revision} 0\n".encode())
    await asyncio.gather(*(storm(store, number, seed) for number in range(WRITERS)))


# ---- the judge ------------------------------------------------------------------------------------------------


def run_and_kill(directory: Path, seed: int, delay: float) -> list[tuple[str, str, int]]:
    """Let the victim write for `delay` seconds; its acknowledgements, in order."""
    command = [sys.executable, __file__, str(directory), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline().startswith(b"ready")
        threading.Timer(delay, victim.kill).start()
        *lines, _torn = victim.stdout.read().decode().split("\n")
    assert victim.returncode == -signal.SIGKILL
    return [(state, name, int(revision)) for state, name, revision in map(str.split, lines)]


def check_acknowledged(store: Store, acks: list[tuple[str, str, int]]) -> None:
    """Every key is as last acknowledged, or as a later write that died unacknowledged but whole left it."""
    history = store.watch("pods", store.horizon("pods")).read()
    deleted = {event.record.key: event.revision for event in history if event.type is EventType.DELETED}
    for state, name, revision in {ack[1]: ack for ack in acks}.values():
        key = Key("pods", "default", name)
        record = store.get(key)
        if record is not None:
            assert record.revision >= revision + (state == "-"), f"{key} went back"
        else:
            assert state == "-" or deleted[key] > revision, f"{key} was lost"


def check_whole(records: list[Record]) -> None:
    for record in records:
        assert record.data == value(record.key, record.revision)


def check_watch_resumes(store: Store, revision: int) -> None:
    """The list at a revision and the events since then lead to the list of now."""
    state = {record.key: record for record in store.list("pods", revision=revision).records}
    for event in store.watch("pods", revision).read():
        assert event.revision > revision
        revision = event.revision
        apply(state, event)
    present = store.list("pods").records
    check_whole(present)
    assert [state[key] for key in sorted(state)] == present


def apply(state: dict[Key, Record], event: Event) -> None:
    """What an informer does with an event; it must fit what the informer has."""
    key = event.record.key
    assert state.get(key) is event.previous
    check_whole([event.record])
    if event.type is EventType.DELETED:
        del state[key]
    else:
        state[key] = event.record


async def crash(directory: Path, times: int, seed: int) -> int:
    """Kill that many victims on one directory, checking after each; returns how many writes were acknowledged."""
    dice = random.Random(seed)
    reached, total = 1, 0
    for _ in range(times):
        acks = run_and_kill(directory, dice.randrange(1 << 30), dice.uniform(0.0, 0.2))
        store = open_here(directory)
        assert store.revision >= max([reached, *(revision for _, _, revision in acks)])
        check_acknowledged(store, acks)
        check_watch_resumes(store, max(store.horizon("pods"), min(reached, store.revision)))
        check_watch_resumes(store, dice.randint(store.horizon("pods"), store.revision))
        reached, total = store.revision, total + len(acks)
        await store.close()
    return total


@pytest.mark.req("4381-38")
async def test_a_killed_store_keeps_every_acknowledged_write(tmp_path: Path) -> None:
    assert await crash(tmp_path, times=10, seed=1) > 100


@pytest.mark.soak
@pytest.mark.req("4381-38")
async def test_two_hundred_kills_lose_nothing(tmp_path: Path) -> None:
    assert await crash(tmp_path, times=200, seed=2) > 10_000


if __name__ == "__main__":
    asyncio.run(be_the_victim(sys.argv[1], int(sys.argv[2])))
