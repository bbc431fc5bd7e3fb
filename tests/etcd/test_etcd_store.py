"""The store on etcd: what one process promises holds with several."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dray.store import (
    Basis,
    Conflict,
    Create,
    Event,
    EventType,
    Exists,
    Expired,
    Finish,
    Key,
    NotFound,
    Retention,
    StorageError,
    Uncertain,
    Update,
)
from dray.store.etcd import EtcdStore
from dray.store.etcd.calls import PUT
from dray.store.etcd.generated import etcd_pb2 as pb
from dray.store.etcd.revisions import etcd_revision
from etcd_world import Etcd, Proxy, etcd_store, new_prefix
from patience import PATIENCE

A, B, C = Key("pods", "default", "a"), Key("pods", "default", "b"), Key("pods", "default", "c")
MAP = Key("configmaps", "default", "a")


class Thing:
    """What these tests keep: the store knows nothing about objects but their revision."""

    def __init__(self, text: str, revision: int = 0) -> None:
        self.text = text
        self.revision = revision


def made(text: str) -> Finish:
    def finish(revision: int) -> tuple[Any, bytes]:
        return Thing(text, revision), json.dumps(
            {"metadata": {"resourceVersion": str(revision)}, "text": text}, separators=(",", ":")
        ).encode()

    return finish


def decode(_resource: str, data: bytes) -> Thing:
    value = json.loads(data)
    return Thing(value["text"], int(value["metadata"]["resourceVersion"]))


def numbered(thing: Thing, revision: int) -> Thing:
    return Thing(thing.text, revision)


def store_on(etcd: Etcd | Proxy, prefix: str, **more: Any) -> Any:
    urls = etcd.urls if isinstance(etcd, Etcd) else (etcd.url,)
    return etcd_store(urls, prefix, decode=decode, number=numbered, **more)


def told(events: list[Event]) -> list[tuple[str, str, int]]:
    return [(event.type.value, event.record.obj.text, event.revision) for event in events]


async def test_a_write_is_visible_to_its_writer_at_once_and_elsewhere_after_catching_up(etcd: Etcd) -> None:
    prefix = new_prefix()
    async with store_on(etcd, prefix) as one, store_on(etcd, prefix) as other:
        record = await one.create(A, made("x"))
        assert one.get(A) is record
        assert (record.obj.text, record.obj.revision) == ("x", record.revision)
        assert decode("", record.data).revision == record.revision
        await other.catch_up()
        seen = other.get(A)
        assert (seen.obj.text, seen.obj.revision, seen.revision) == ("x", record.revision, record.revision)


async def test_refusals_are_by_the_latest_state_wherever_it_was_written(etcd: Etcd) -> None:
    prefix = new_prefix()
    async with store_on(etcd, prefix) as one, store_on(etcd, prefix) as other:
        first = await one.create(A, made("x"))
        with pytest.raises(Exists):
            await other.create(A, made("y"))
        second = await other.update(A, first.revision, made("y"))
        with pytest.raises(Conflict):
            await one.update(A, first.revision, made("z"))
        await one.delete(A, second.revision, made("last"))
        with pytest.raises(NotFound):
            await other.update(A, second.revision, made("z"))
        again = await other.create(A, made("new"))
        assert again.create_revision == again.revision


async def test_of_two_servers_that_write_at_once_one_wins(etcd: Etcd) -> None:
    prefix = new_prefix()
    async with store_on(etcd, prefix) as one, store_on(etcd, prefix) as other:
        for number in range(20):
            key = Key("pods", "default", f"p{number}")
            outcomes = await asyncio.gather(
                one.create(key, made("one")), other.create(key, made("other")), return_exceptions=True
            )
            assert sorted(type(each).__name__ for each in outcomes) == ["Exists", "Record"]
        # No update is lost, however many count at once.
        await one.create(A, made("0"))

        async def count(store: EtcdStore) -> None:
            for _ in range(10):
                while True:
                    record = store.get(A)
                    if record is None:
                        await store.catch_up()
                        continue
                    try:
                        await store.update(A, record.revision, made(str(int(record.obj.text) + 1)))
                        break
                    except Conflict:
                        await store.catch_up()

        await asyncio.gather(count(one), count(other), count(one))
        await one.catch_up()
        assert one.get(A).obj.text == "30"


async def test_watches_tell_the_same_everywhere_in_order(etcd: Etcd) -> None:
    prefix = new_prefix()
    async with store_on(etcd, prefix) as one, store_on(etcd, prefix) as other:
        start = await other.catch_up()
        watches = [store.watch("pods", start) for store in (one, other)]
        created = await one.create(A, made("a"))
        changed = await other.update(A, created.revision, made("b"))
        gone = await one.delete(A, changed.revision, made("never told"))
        expected = [
            ("ADDED", "a", created.revision),
            ("MODIFIED", "b", changed.revision),
            ("DELETED", "b", gone.revision),
        ]
        for store, watch in zip((one, other), watches, strict=True):
            await store.catch_up()
            assert told(watch.read()) == expected
        listing = other.list("pods", revision=changed.revision)
        assert [record.obj.text for record in listing.records] == ["b"]


async def test_writes_of_a_turn_share_a_transaction_and_a_watch_goes_on_after_any_of_them(etcd: Etcd) -> None:
    prefix = new_prefix()
    async with store_on(etcd, prefix) as store:
        await store.create(C, made("old"))
        before = store.revision
        a, removed, b, other = await asyncio.gather(
            store.create(A, made("x")),
            store.delete(C, None, made("gone")),
            store.create(B, made("y")),
            store.create(MAP, made("z")),
        )
        assert len({etcd_revision(record.revision) for record in (a, removed, b, other)}) == 1
        assert before < a.revision < removed.revision < b.revision < other.revision <= store.revision
        expected = [("ADDED", "x", a.revision), ("DELETED", "old", removed.revision), ("ADDED", "y", b.revision)]
        for seen in range(3):
            with store.watch("pods", expected[seen][2]) as watch:
                assert told(watch.read()) == expected[seen + 1 :]
        async with store_on(etcd, prefix) as another:
            assert another.get(A).revision == a.revision
            assert another.get(B).revision == b.revision
            assert [record.key for record in another.list("pods").records] == [A, B]


async def test_what_is_too_large_for_one_transaction_goes_in_several(etcd: Etcd) -> None:
    async with store_on(etcd, new_prefix()) as store:
        text = "x" * 400_000
        keys = [Key("pods", "default", f"large-{number}") for number in range(5)]
        records = await asyncio.gather(*(store.create(key, made(text)) for key in keys))
        assert len({etcd_revision(record.revision) for record in records}) == 3
        with pytest.raises(StorageError, match="more than etcd takes"):
            await store.transact([Create(Key("pods", "default", f"many-{n}"), made("x")) for n in range(129)])


async def test_a_transaction_is_made_whole_or_not_at_all(etcd: Etcd) -> None:
    prefix = new_prefix()
    async with store_on(etcd, prefix) as one, store_on(etcd, prefix) as other:
        quota = await one.create(MAP, made("0"))
        await other.catch_up()
        outcomes = await asyncio.gather(
            one.transact([Create(A, made("a")), Update(MAP, quota.revision, made("1"))]),
            other.transact([Create(B, made("b")), Update(MAP, quota.revision, made("1"))]),
            return_exceptions=True,
        )
        assert sorted(type(each).__name__ for each in outcomes) == ["Conflict", "list"]
        await one.catch_up()
        assert (one.get(A) is None) != (one.get(B) is None)


async def test_writes_that_are_judged_by_the_same_facts_follow_each_other(etcd: Etcd) -> None:
    """Ten give themselves a place of five, on two servers: each looks before, and nobody takes one too many."""
    prefix = new_prefix()
    async with store_on(etcd, prefix) as one, store_on(etcd, prefix) as other:
        records = [await one.create(Key("pods", "default", f"p{number}"), made("")) for number in range(10)]
        await other.catch_up()

        def place(store: EtcdStore) -> Finish:
            def finish(revision: int) -> tuple[Any, bytes]:
                if sum(record.obj.text == "in" for record in store.list("pods").records) >= 5:
                    raise OverflowError
                return made("in")(revision)

            return finish

        stores = [one, other] * 5
        outcomes = await asyncio.gather(
            *(
                store.update(record.key, record.revision, place(store), Basis(guards=("five",)))
                for store, record in zip(stores, records, strict=True)
            ),
            return_exceptions=True,
        )
        assert sum(isinstance(each, OverflowError) for each in outcomes) == 5
        await one.catch_up()
        assert sum(record.obj.text == "in" for record in one.list("pods").records) == 5


async def test_what_was_written_is_known_although_the_answer_was_lost(etcd: Etcd) -> None:
    prefix = new_prefix()
    async with Proxy(etcd.urls[0]) as way, store_on(way, prefix) as store, store_on(etcd, prefix) as witness:
        before = await store.create(A, made("0"))
        way.is_mute = True
        writers = asyncio.gather(store.create(B, made("b")), store.update(A, before.revision, made("1")))
        while (await witness.catch_up()) and witness.get(B) is None:
            await asyncio.sleep(0.01)
        way.is_mute = False
        way.cut()
        created, updated = await writers
        assert created.revision == witness.get(B).revision
        await witness.catch_up()
        assert updated.revision == witness.get(A).revision
        assert store.get(B).obj.text == "b"


async def test_what_was_not_written_is_tried_again_and_made_once(etcd: Etcd) -> None:
    prefix = new_prefix()
    async with Proxy(etcd.urls[0]) as way, store_on(way, prefix) as store, store_on(etcd, prefix) as witness:
        start = await witness.catch_up()
        for number in range(6):
            writers = [
                asyncio.ensure_future(store.create(Key(kind, "default", f"n{number}"), made("x")))
                for kind in ("pods", "secrets", "services")
            ]
            await asyncio.sleep(0.001 * number)
            way.cut()
            for record in await asyncio.gather(*writers):
                await witness.catch_up()
                assert witness.get(record.key).revision == record.revision
        events = told(witness.watch("pods", start).read())
        assert [kind for kind, *_ in events] == ["ADDED"] * 6


async def test_a_server_that_starts_knows_the_past_that_etcd_has(etcd: Etcd) -> None:
    prefix = new_prefix()
    now = 0.0
    async with store_on(etcd, prefix, retention=Retention(max_age=100.0)) as store:
        store._clock = lambda: now
        first = await store.create(A, made("1"))
        seen = store.revision
        await store.compact()
        second = await store.update(A, first.revision, made("2"))
        now = 101.0
        await store.compact()  # etcd forgets what was before the first look
        async with store_on(etcd, prefix) as later:
            assert told(later.watch("pods", seen).read()) == [("MODIFIED", "2", second.revision)]
            with pytest.raises(Expired):
                later.watch("pods", seen - 1)


async def test_whoever_missed_what_was_compacted_begins_anew(etcd: Etcd) -> None:
    prefix = new_prefix()
    async with Proxy(etcd.urls[0]) as way, store_on(way, prefix) as store, store_on(etcd, prefix) as other:
        record = await store.create(A, made("1"))
        watcher = store.watch("pods", record.revision)
        way.is_closed = True
        way.cut()
        await other.catch_up()
        newest = await other.update(A, record.revision, made("2"))
        newest = await other.update(A, newest.revision, made("3"))
        from dray.store.etcd.calls import COMPACT

        await other._connection.ask(COMPACT, pb.CompactionRequest(revision=etcd_revision(newest.revision)))
        way.is_closed = False
        while store.get(A).obj.text != "3":
            await asyncio.sleep(0.01)
        with pytest.raises(Exception, match="fell behind"):
            watcher.read()
        assert store.horizon("pods") >= newest.revision
        again = await store.update(A, newest.revision, made("4"))
        assert again.obj.text == "4"


async def test_keys_of_others_do_not_keep_readers_waiting(etcd: Etcd) -> None:
    async with store_on(etcd, new_prefix()) as store:
        for _ in range(3):
            answer = await store._connection.ask(PUT, pb.PutRequest(key=b"/elsewhere", value=b"x"))
            assert await store.catch_up() >= answer.header.revision


async def test_a_delete_by_another_server_is_an_event_with_what_was_there(etcd: Etcd) -> None:
    prefix = new_prefix()
    async with store_on(etcd, prefix) as one, store_on(etcd, prefix) as other:
        record = await one.create(A, made("x"))
        await other.delete(A, None, made("x"))
        await one.catch_up()
        [event] = one.watch("pods", record.revision).read()
        assert event.type is EventType.DELETED
        assert event.record.obj.revision == event.revision


async def test_a_write_whose_writer_and_answer_are_gone_is_in_nobodys_way(
    etcd: Etcd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that hangs up ends its request: others that write the object must not wait for it for ever."""

    async def lost(*_: Any) -> Any:
        await asyncio.sleep(0.05)
        raise Uncertain("nobody knows")

    async with store_on(etcd, new_prefix()) as store:
        record = await store.create(A, made("1"))
        for change in (store.update(A, record.revision, made("2")), store.delete(A, record.revision, made("3"))):
            with monkeypatch.context() as patch:
                patch.setattr(store._connection, "send", lost)
                writing = asyncio.ensure_future(change)
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                assert store.pending(A) is not None
                writing.cancel()
                await asyncio.gather(writing, return_exceptions=True)
                async with asyncio.timeout(PATIENCE):
                    while store.pending(A) is not None:
                        await asyncio.sleep(0.01)
        await store.update(A, record.revision, made("4"))
