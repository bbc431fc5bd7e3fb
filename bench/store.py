"""The store: durable writes, watch fan-out, memory, start, lists. `python -m bench.store` prints the numbers."""

from __future__ import annotations

import asyncio
import gc
import json
import tempfile
import time
import tracemalloc
from pathlib import Path

import uvloop

from dray.store import Finish, Key, LocalStore, MemoryBackend, Store, Watcher, open_store

SECONDS = 2.0
OBJECTS = 50_000
BURSTS, BURST = 20, 1000
VALUE = b"x" * 1024


def decode(_resource: str, data: bytes) -> bytes:
    return data


def finish(_revision: int) -> tuple[None, bytes]:
    return None, VALUE


def run() -> dict[str, float]:
    """All measurements; the names carry the units."""
    # The server raises the thresholds in the same way: records are not garbage.
    thresholds = gc.get_threshold()
    gc.set_threshold(50_000, 20, 100)
    try:
        results: dict[str, float] = {}
        for writers in (1, 16, 64, 256):
            results[f"durable_writes_per_second_{writers}"] = uvloop.run(measure_writes(writers))
        results["fan_out_ns_per_event_and_watcher"] = uvloop.run(measure_fan_out())
        results["memory_bytes_per_record_beyond_data"] = uvloop.run(measure_memory())
        return results | uvloop.run(measure_start_and_lists())
    finally:
        gc.set_threshold(*thresholds)


async def measure_writes(writers: int) -> float:
    """Creates per second of that many concurrent writers, each waiting for its acknowledgement."""
    with tempfile.TemporaryDirectory() as directory:
        store = open_store(directory, decode)
        end = time.perf_counter() + SECONDS

        async def write(number: int) -> int:
            count = 0
            while time.perf_counter() < end:
                await store.create(Key("pods", "default", f"{number}-{count}"), finish)
                count += 1
            return count

        started = time.perf_counter()
        counts = await asyncio.gather(*(write(number) for number in range(writers)))
        rate = sum(counts) / (time.perf_counter() - started)
        await store.close()
    return round(rate)


async def measure_fan_out(watchers: int = 100, rounds: int = 5) -> float:
    """What handing one event to one watcher costs, its wake-up included, when events come in bursts.

    The difference between the same writes with and without watchers; the best rounds, as the rest is noise.
    """
    await time_bursts(watchers)
    alone = min([await time_bursts(0) for _ in range(rounds)])
    watched = min([await time_bursts(watchers) for _ in range(rounds)])
    return round((watched - alone) / (watchers * BURSTS * BURST) * 1e9, 1)


async def time_bursts(watchers: int) -> float:
    """Seconds until bursts of writes have reached every one of so many watchers."""
    store = LocalStore(MemoryBackend(), decode)

    async def follow(watcher: Watcher) -> None:
        count = 0
        while count < BURSTS * BURST:
            count += len(await watcher.next())

    followers = [asyncio.ensure_future(follow(store.watch("pods", 1))) for _ in range(watchers)]
    await asyncio.sleep(0)
    gc.collect()
    started = time.perf_counter()
    for number in range(BURSTS):
        keys = (Key("pods", "default", f"{number}-{n}") for n in range(BURST))
        await asyncio.gather(*(store.create(key, finish) for key in keys))
    await asyncio.gather(*followers)
    return time.perf_counter() - started


async def measure_memory(records: int = 20_000) -> float:
    """Memory per created record, history included, beyond the bytes of its data."""

    def own_data(revision: int) -> tuple[None, bytes]:
        return None, revision.to_bytes(8, "big") * 128

    store = LocalStore(MemoryBackend(), decode)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        await create_all(store, records, own_data)
        used = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    return round(used / records - len(VALUE))


async def measure_start_and_lists() -> dict[str, float]:
    """Opening a store with many objects, after a clean end and after a crash, and listing them."""
    with tempfile.TemporaryDirectory() as directory:
        store = open_store(directory, decode)
        await create_all(store, OBJECTS, finish)
        await store.close()
        started = time.perf_counter()
        store = open_store(directory, decode)
        clean = time.perf_counter() - started
        listed = time.perf_counter()
        listing = store.list("pods")
        listed = time.perf_counter() - listed
        assert len(listing.records) == OBJECTS
        paged = time.perf_counter()
        page = store.list("pods", limit=500)
        while page.remaining:
            last = page.records[-1].key
            page = store.list("pods", revision=page.revision, after=(last.namespace, last.name), limit=500)
        paged = time.perf_counter() - paged
        await store.close()
        (Path(directory) / "sealed").unlink()
        started = time.perf_counter()
        store = open_store(directory, decode)
        crashed = time.perf_counter() - started
        await store.close()
    return {
        "start_50000_objects_seconds": round(clean, 3),
        "start_50000_objects_after_crash_seconds": round(crashed, 3),
        "list_50000_objects_ms": round(listed * 1e3, 2),
        "list_50000_objects_in_pages_of_500_ms": round(paged * 1e3, 2),
    }


async def create_all(store: Store, count: int, finish: Finish) -> None:
    for start in range(0, count, 1000):
        keys = (Key("pods", f"namespace-{n % 100}", f"pod-{n}") for n in range(start, min(start + 1000, count)))
        await asyncio.gather(*(store.create(key, finish) for key in keys))


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
