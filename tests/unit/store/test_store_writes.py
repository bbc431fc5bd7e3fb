"""Creates, updates, deletes and transactions: revisions, conflicts, and who is told what."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from dray.store import (
    Closed,
    Conflict,
    Create,
    Delete,
    Exists,
    Finish,
    Key,
    LocalStore,
    MemoryBackend,
    NotFound,
    Operation,
    Record,
    Store,
    Update,
)
from dray.store.pipeline import EARLY, GATHERING_TURNS

POD = Key("pods", "default", "a")
OTHER = Key("pods", "default", "b")


def made(text: str) -> Finish:
    """An object and bytes that show which revision they were made for."""
    return lambda revision: (f"{text}@{revision}", f"{text}@{revision}".encode())


async def test_an_empty_store_is_at_revision_one_and_the_first_write_gets_two(store: Store) -> None:
    assert store.revision == 1
    record = await store.create(POD, made("x"))
    assert (record.revision, record.create_revision, store.revision) == (2, 2, 2)


async def test_object_and_bytes_are_made_once_for_their_revision(store: Store) -> None:
    calls: list[int] = []

    def finish(revision: int) -> tuple[str, bytes]:
        calls.append(revision)
        return f"object {revision}", b"bytes"

    record = await store.create(POD, finish)
    assert calls == [record.revision]
    assert record.obj == "object 2"
    assert store.get(POD) is record


async def test_update_keeps_the_create_revision_and_delete_returns_the_final_state(store: Store) -> None:
    created = await store.create(POD, made("x"))
    updated = await store.update(POD, created.revision, made("y"))
    assert (updated.revision, updated.create_revision) == (3, 2)
    deleted = await store.delete(POD, updated.revision, made("z"))
    assert (deleted.revision, deleted.data) == (4, b"z@4")
    assert store.get(POD) is None
    assert store.revision == 4


async def test_a_key_can_be_created_again_after_its_deletion(store: Store) -> None:
    await store.create(POD, made("x"))
    await store.delete(POD, None, made("x"))
    again = await store.create(POD, made("y"))
    assert again.create_revision == 4


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        (Create(POD, made("n")), Exists),
        (Update(POD, 1, made("n")), Conflict),
        (Update(POD, 99, made("n")), Conflict),
        (Delete(POD, 1, made("n")), Conflict),
        (Update(OTHER, 2, made("n")), NotFound),
        (Delete(OTHER, None, made("n")), NotFound),
    ],
)
async def test_refusals_change_nothing(store: Store, operation: Operation, error: type[Exception]) -> None:
    record = await store.create(POD, made("x"))
    with pytest.raises(error) as refused:
        await store.transact([operation])
    assert getattr(refused.value, "current", record) is record
    assert store.revision == 2
    assert store.get(POD) is record


async def test_of_many_concurrent_writers_of_one_key_exactly_one_wins(store: Store) -> None:
    first = await store.create(POD, made("x"))
    attempts = [store.update(POD, first.revision, made(str(n))) for n in range(20)]
    outcomes = await asyncio.gather(*attempts, return_exceptions=True)
    winners = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    losers = [outcome for outcome in outcomes if isinstance(outcome, Conflict)]
    assert (len(winners), len(losers)) == (1, 19)
    assert all(loser.current is winners[0] for loser in losers)


async def test_a_create_that_meets_one_in_flight_is_refused_with_the_stored_record(store: Store) -> None:
    first, second = await asyncio.gather(
        store.create(POD, made("x")), store.create(POD, made("y")), return_exceptions=True
    )
    assert isinstance(second, Exists)
    assert second.current is first


async def test_writes_before_the_turn_of_the_loop_ends_are_invisible_and_share_a_commit(store: Store) -> None:
    tasks = [asyncio.ensure_future(store.create(Key("pods", "", str(n)), made("x"))) for n in range(EARLY - 1)]
    await asyncio.sleep(0)
    assert store.list("pods").records == []
    records = await asyncio.gather(*tasks)
    assert [record.revision for record in records] == list(range(2, EARLY + 1))
    assert store.stats().commits == 1


async def test_many_writes_in_one_turn_are_in_order_and_share_few_commits(store: Store) -> None:
    tasks = [asyncio.ensure_future(store.create(Key("pods", "", str(n)), made("x"))) for n in range(10 * EARLY)]
    records = await asyncio.gather(*tasks)
    assert [record.revision for record in records] == list(range(2, 10 * EARLY + 2))
    assert store.stats().commits <= 2


async def test_writes_that_come_turn_after_turn_share_a_commit() -> None:
    """On a disk: one alone goes at once, several wait while more come, but not for ever."""
    backend = MemoryBackend()
    backend.blocking = True
    store = LocalStore(backend, decode=lambda resource, data: (resource, data))

    async def turns(*counts: int) -> int:
        tasks: list[asyncio.Future[Record]] = []
        before = store.stats().commits
        for count in counts:
            tasks += [
                asyncio.ensure_future(store.create(Key("pods", "", uuid4().hex), made("x"))) for _ in range(count)
            ]
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)
        return store.stats().commits - before

    assert await turns(1) == 1
    assert await turns(2, 2, 2) == 1
    assert await turns(*[2] * (GATHERING_TURNS + 1), 0, 2) == 2
    await store.close()


async def test_a_failing_finish_uses_up_no_revision(store: Store) -> None:
    def broken(_revision: int) -> tuple[object, bytes]:
        raise ValueError("cannot encode")

    with pytest.raises(ValueError, match="cannot encode"):
        await store.create(POD, broken)
    assert (await store.create(POD, made("x"))).revision == 2


@pytest.mark.parametrize("name", ["x" * 5000, "\ud800"])
async def test_a_key_that_cannot_be_stored_fails_only_its_writer(store: Store, name: str) -> None:
    bad, good = await asyncio.gather(
        store.create(Key("pods", "", name), made("x")), store.create(POD, made("x")), return_exceptions=True
    )
    assert isinstance(bad, ValueError)
    assert store.get(POD) is good


async def test_a_cancelled_writer_leaves_a_whole_write_and_does_not_disturb_those_behind_it(store: Store) -> None:
    writer = asyncio.ensure_future(store.create(POD, made("x")))
    follower = asyncio.ensure_future(store.create(POD, made("y")))
    await asyncio.sleep(0)
    writer.cancel()
    with pytest.raises(Exists):
        await follower
    record = store.get(POD)
    assert record is not None
    assert record.data == b"x@2"


async def test_a_transaction_has_contiguous_revisions(store: Store) -> None:
    await store.create(POD, made("x"))
    operations: list[Operation] = [Update(POD, 2, made("y")), Create(OTHER, made("z"))]
    records = await store.transact(operations)
    assert [record.revision for record in records] == [3, 4]


async def test_a_transaction_with_one_refusal_does_nothing(store: Store) -> None:
    await store.create(POD, made("x"))
    with pytest.raises(Conflict):
        await store.transact([Create(OTHER, made("z")), Update(POD, 1, made("y"))])
    assert store.get(OTHER) is None
    assert store.revision == 2


async def test_a_transaction_names_each_key_once(store: Store) -> None:
    with pytest.raises(ValueError, match="twice"):
        await store.transact([Create(POD, made("x")), Create(POD, made("y"))])
    assert await store.transact([]) == []


async def test_close_finishes_writes_under_way_and_refuses_new_ones() -> None:
    store = LocalStore(MemoryBackend(), decode=lambda _resource, data: data)
    writer = asyncio.ensure_future(store.create(POD, made("x")))
    await asyncio.sleep(0)
    await store.close()
    assert (await writer).revision == 2
    with pytest.raises(Closed):
        await store.create(OTHER, made("x"))
    await store.close()
