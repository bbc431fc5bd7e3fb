"""The store against a model of plain dicts: writes, lists at a revision, pages, watches, failures, restarts."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from dray.store import (
    Closed,
    Conflict,
    Create,
    Delete,
    Exists,
    Expired,
    Finish,
    FutureRevision,
    Key,
    LocalStore,
    MemoryBackend,
    NotFound,
    Operation,
    Retention,
    Slow,
    StorageError,
    Update,
    Watcher,
)
from dray.store.backend import Batch

T = TypeVar("T")
State = dict[Key, tuple[int, bytes]]

KEYS = st.builds(Key, st.sampled_from(["pods", "nodes"]), st.sampled_from(["", "a", "a-b"]), st.sampled_from("xyz"))
RESOURCES = st.sampled_from(["pods", "nodes"])
NAMESPACES = st.sampled_from([None, "", "a", "a-b"])
CHANGES = st.lists(st.tuples(st.sampled_from("cud"), KEYS, st.booleans()), min_size=1, max_size=4)


class Disk(MemoryBackend):
    """Refuses the next commit when told to."""

    broken = False

    def commit(self, batch: Batch) -> None:
        if self.broken:
            raise StorageError("broken")
        super().commit(batch)


class Follower:
    """A watcher and what it must have seen by now."""

    def __init__(self, watcher: Watcher, resource: str, namespace: str | None, revision: int) -> None:
        self.watcher = watcher
        self.resource = resource
        self.namespace = namespace
        self.revision = revision
        self.seen: list[tuple[str, Key, int]] = []


def made(revision: int) -> tuple[None, bytes]:
    return None, str(revision).encode()


class StoreMachine(RuleBasedStateMachine):
    """`states` holds the whole contents at every revision; `changes` every event in order."""

    followers = Bundle("followers")

    @initialize(max_events=st.sampled_from([3, 10, 1000]))
    def start(self, max_events: int) -> None:
        self.loop = asyncio.new_event_loop()
        self.disk = Disk()
        self.retention = Retention(max_events=max_events)
        self.states: dict[int, State] = {1: {}}
        self.changes: list[tuple[str, Key, int]] = []
        self.open()

    def open(self) -> None:
        self.store = LocalStore(self.disk, lambda _resource, data: data, retention=self.retention)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self.loop.close()

    # ---- writes ----

    @rule(change=CHANGES)
    def transact(self, change: list[tuple[str, Key, bool]]) -> None:
        """Operations with right or wrong expectations; the model says which error must come, if any."""
        unique = {key: (kind, key, right) for kind, key, right in change}.values()
        state = self.states[self.store.revision]
        operations = [self.operation(kind, key, right, state) for kind, key, right in unique]
        wrong = next((error for error in map(self.expected_error, operations) if error), None)
        if wrong is not None:
            with pytest.raises(wrong):
                self.run(self.store.transact(operations))
            return
        first = self.store.revision + 1
        records = self.run(self.store.transact(operations))
        assert [record.revision - records[0].revision for record in records] == list(range(len(records)))
        assert records[0].revision >= first
        for operation, record in zip(operations, records, strict=True):
            self.note(operation, record.revision)

    def operation(self, kind: str, key: Key, right: bool, state: State) -> Operation:
        finish: Finish = made
        expected = state[key][0] if key in state else 1
        if kind == "c":
            return Create(key, finish)
        if kind == "u":
            return Update(key, expected if right else expected + 1, finish)
        return Delete(key, expected if right else None, finish)

    def expected_error(self, operation: Operation) -> type[Exception] | None:
        stored = self.states[self.store.revision].get(operation.key)
        if isinstance(operation, Create):
            return Exists if stored else None
        if stored is None:
            return NotFound
        return Conflict if operation.expected_revision not in (None, stored[0]) else None

    def note(self, operation: Operation, revision: int) -> None:
        state = dict(self.states[max(self.states)])
        if isinstance(operation, Delete):
            del state[operation.key]
        else:
            state[operation.key] = (revision, str(revision).encode())
        name = {Create: "ADDED", Update: "MODIFIED", Delete: "DELETED"}[type(operation)]
        self.changes.append((name, operation.key, revision))
        self.states[revision] = state

    @rule(key=KEYS)
    def race(self, key: Key) -> None:
        """Several writers with the same expectation: one wins."""
        state = self.states[self.store.revision]
        operation = self.operation("u" if key in state else "c", key, True, state)

        async def attempt() -> list[object]:
            attempts = (self.store.transact([operation]) for _ in range(3))
            return list(await asyncio.gather(*attempts, return_exceptions=True))

        outcomes = self.run(attempt())
        assert sum(isinstance(outcome, Exists | Conflict) for outcome in outcomes) == 2
        self.note(operation, self.store.revision)

    @rule(key=KEYS)
    def fail(self, key: Key) -> None:
        """A write that the disk refuses changes nothing."""
        state = self.states[self.store.revision]
        self.disk.broken = True
        with pytest.raises(StorageError):
            self.run(self.store.transact([self.operation("u" if key in state else "c", key, True, state)]))
        self.disk.broken = False

    @rule()
    def restart(self) -> None:
        revision = self.store.revision
        self.run(self.store.close())
        self.open()
        assert self.store.revision == revision

    @rule()
    def compact(self) -> None:
        self.run(self.store.compact())

    # ---- reads ----

    @rule(resource=RESOURCES, namespace=NAMESPACES, back=st.integers(-1, 12), limit=st.sampled_from([None, 1, 2, 5]))
    def list_in_pages(self, resource: str, namespace: str | None, back: int, limit: int | None) -> None:
        revision = self.store.revision - back
        expected = self.contents(max(revision, 1), resource, namespace)
        try:
            page = self.store.list(resource, namespace, revision=revision, limit=limit)
        except FutureRevision:
            assert back == -1
            return
        except Expired:
            assert revision < self.store.horizon(resource)
            return
        found = page.records
        while limit is not None and page.remaining:
            last = page.records[-1].key
            page = self.store.list(
                resource, namespace, revision=revision, after=(last.namespace, last.name), limit=limit
            )
            assert len(found) + len(page.records) + page.remaining == len(expected)
            found += page.records
        assert [(record.key, record.revision, record.data) for record in found] == expected

    def contents(self, revision: int, resource: str, namespace: str | None) -> list[tuple[Key, int, bytes]]:
        known = sorted(self.states)
        state = self.states[known[max(bisect_right(known, revision) - 1, 0)]]
        return [
            (key, *state[key])
            for key in sorted(state)
            if key.resource == resource and namespace in (None, key.namespace)
        ]

    @rule(target=followers, resource=RESOURCES, namespace=NAMESPACES, back=st.integers(-2, 12))
    def watch(self, resource: str, namespace: str | None, back: int) -> Follower | None:
        revision = max(self.store.revision - back, 0)
        try:
            watcher = self.store.watch(resource, revision, namespace)
        except Expired:
            assert revision < self.store.horizon(resource)
            return None
        return Follower(watcher, resource, namespace, revision)

    @rule(follower=followers, limit=st.sampled_from([None, 1, 3]))
    def read(self, follower: Follower | None, limit: int | None) -> None:
        if follower is None:
            return
        try:
            events = follower.watcher.read(limit)
        except (Slow, Closed):
            return
        follower.seen += [(event.type.value, event.record.key, event.revision) for event in events]
        assert follower.seen == [
            change
            for change in self.changes
            if change[1].resource == follower.resource
            and follower.namespace in (None, change[1].namespace)
            and follower.revision < change[2] <= follower.watcher.revision
        ]

    @rule(follower=consumes(followers))
    def unwatch(self, follower: Follower | None) -> None:
        if follower is not None:
            follower.watcher.close()

    @invariant()
    def the_present_is_that_of_the_model(self) -> None:
        state = self.states[max(self.states)]
        assert self.store.revision == max(self.states)
        for resource in ("pods", "nodes"):
            for record in self.store.list(resource).records:
                assert self.store.get(record.key) is record
        assert sum(self.store.stats().objects.values()) == len(state)


StoreMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=40)
TestStore = StoreMachine.TestCase
