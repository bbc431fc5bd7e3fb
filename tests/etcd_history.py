"""What clients saw while things broke, and whether that can be.

Nothing that was acknowledged is lost, no update either, and every watch told everything once, in order.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import random
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from dray.store import Conflict, Exists, Finish, Key, NotFound, StorageError, StoreError, Uncertain
from dray.store.etcd import EtcdStore
from patience import eventually_async

T = TypeVar("T")

RESOURCES = ("pods", "configmaps", "secrets")
LEAST = 20
"""A history of fewer creates proves nothing."""


class Thing:
    """What is kept: a number."""

    def __init__(self, number: int, revision: int = 0) -> None:
        self.number = number
        self.revision = revision


def made(number: int) -> Finish:
    """A number, as the store completes it."""

    def finish(revision: int) -> tuple[Any, bytes]:
        data = {"metadata": {"resourceVersion": str(revision)}, "number": number}
        return Thing(number, revision), json.dumps(data, separators=(",", ":")).encode()

    return finish


def decode(_resource: str, data: bytes) -> Thing:
    """A number, as the store kept it."""
    value = json.loads(data)
    return Thing(value["number"], int(value["metadata"]["resourceVersion"]))


def numbered(obj: Any, revision: int) -> Thing:
    """A number, at another revision."""
    return Thing(obj.number, revision)


async def _answered(call: Callable[[], Awaitable[T]]) -> T:
    """What a call comes to when etcd has a leader: on a busy machine, members may be long in choosing one."""
    while True:
        try:
            return await call()
        except StorageError:
            await asyncio.sleep(0.1)


class History:
    """Writers and watchers on several stores."""

    def __init__(self, stores: list[EtcdStore], seed: int) -> None:
        self._stores = stores
        self._random = random.Random(seed)
        self.created: dict[Key, int] = {}
        self.counted: dict[Key, int] = {}
        self.uncertain: dict[Key, int] = {}
        self.refused = 0
        self.told: list[list[tuple[str, Key, int]]] = [[] for _ in stores]
        self._start = max(store.revision for store in stores)
        self._is_over = False

    @property
    def writes(self) -> int:
        """How many were acknowledged."""
        return len(self.created) + sum(self.counted.values())

    async def run(self, trouble: Callable[[], Any]) -> None:
        """Loads the stores while `trouble` happens, and until there is something to judge; then lets all rest."""
        loop = asyncio.get_running_loop()
        counters = [Key(resource, "default", f"counter-{number}") for resource in RESOURCES for number in range(2)]
        for key in counters:
            with contextlib.suppress(Exists):  # it was made, and nobody heard of it
                await _answered(functools.partial(self._stores[0].create, key, made(0)))
            self.counted[key] = self.uncertain[key] = 0
        for store in self._stores:
            await _answered(store.catch_up)
        watching = [loop.create_task(self._watch(number)) for number in range(len(self._stores))]
        writing = [
            loop.create_task(writer)
            for number, store in enumerate(self._stores)
            for writer in (self._create(store, number), self._count(store, counters), self._count(store, counters))
        ]
        await trouble()
        while len(self.created) < LEAST and not any(task.done() for task in writing):
            await asyncio.sleep(0.05)  # the machine is busy
        self._is_over = True
        await asyncio.gather(*writing)
        for _ in range(2):  # what the last of them has seen the first has seen, too
            for store in self._stores:
                await _answered(store.catch_up)
        await eventually_async(self._have_all_told, "watches differ, or do not tell everything")
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
        self.judge()

    async def _create(self, store: EtcdStore, server: int) -> None:
        number = 0
        while not self._is_over:
            number += 1
            key = Key(self._random.choice(RESOURCES), "default", f"made-{server}-{number}")
            try:
                self.created[key] = (await store.create(key, made(number))).revision
                await self._look(key)
            except StorageError:
                self.refused += 1
            await asyncio.sleep(0.002)

    async def _look(self, key: Key) -> None:
        """What was acknowledged is seen by whoever looks afterwards, at whichever server. Raises StorageError."""
        store = self._random.choice(self._stores)
        await store.catch_up()
        assert store.get(key) is not None, f"{key} was acknowledged, and another server does not show it"

    async def _count(self, store: EtcdStore, counters: list[Key]) -> None:
        while not self._is_over:
            key = self._random.choice(counters)
            record = store.get(key)
            assert record is not None
            try:
                await store.update(key, record.revision, made(record.obj.number + 1))
                self.counted[key] += 1
            except (Conflict, NotFound, Exists):
                pass
            except Uncertain:
                self.uncertain[key] += 1
            except StorageError:
                self.refused += 1
            await asyncio.sleep(0.001)

    async def _watch(self, number: int) -> None:
        store = self._stores[number]
        watches = [store.watch(resource, self._start) for resource in RESOURCES]

        async def follow(watch: Any) -> None:
            while True:
                try:
                    events = await watch.next()
                except StoreError as error:
                    raise AssertionError(f"a watch ended: {error}") from error
                self.told[number] += [(event.type.value, event.record.key, event.revision) for event in events]

        await asyncio.gather(*(follow(watch) for watch in watches))

    def _have_all_told(self) -> bool:
        keys = [{key for _, key, _ in told} for told in self.told]
        return len(set(map(len, self.told))) == 1 and all(self.created.keys() <= known for known in keys)

    def judge(self) -> None:
        """Raises AssertionError for what cannot be."""
        for store in self._stores:
            for key, revision in self.created.items():
                record = store.get(key)
                assert record is not None, f"{key} was acknowledged at {revision} and is gone"
                assert record.revision == revision
            for key, count in self.counted.items():
                counter = store.get(key)
                assert counter is not None
                assert count <= counter.obj.number <= count + self.uncertain[key], f"{key}: an update was lost"
        for resource in RESOURCES:
            seen = [[each for each in told if each[1].resource == resource] for told in self.told]
            for told in seen:
                revisions = [revision for *_, revision in told]
                assert revisions == sorted(set(revisions)), "a watch told something twice, or not in order"
            assert all(told == seen[0] for told in seen), "watches of two servers differ"
            keys = {key for _, key, _ in seen[0]}
            assert {key for key in self.created if key.resource == resource} <= keys
