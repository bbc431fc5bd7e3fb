"""Orders of events on a simulated etcd that seeds seldom come across, each made on purpose."""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import etcd_history
from dray.process import virtual_loop
from dray.store import Basis, Delete, Key, Operation, StorageError, Uncertain, Update
from dray.store.etcd import EtcdStore
from dray.store.etcd.calls import RANGE, TXN
from dray.store.etcd.generated import etcd_pb2 as pb
from dray.store.etcd.rounds import REACH_SECONDS, Rounds
from dray.store.watch import Progress
from fault_simulation.etcd import Etcd
from fault_simulation.etcd_network import EtcdNetwork
from fault_simulation.server_group import VERSIONS
from fault_simulation.store_histories import opened

ONE, OTHER = Key("pods", "default", "one"), Key("pods", "default", "other")


class World:
    """One etcd, and two stores on it."""

    def __init__(self, network: EtcdNetwork, stores: tuple[EtcdStore, EtcdStore]) -> None:
        self.network = network
        self.etcd = network.etcd
        self.stores = stores


def on_two_stores(story: Callable[[World], Awaitable[None]]) -> None:
    async def live() -> None:
        etcd = Etcd(asyncio.get_running_loop().time, VERSIONS[0])
        network = EtcdNetwork(etcd, random.Random(1), lambda _fault: None)
        stores = opened(etcd, network), opened(etcd, network)
        for store in stores:
            await store.start()
        await story(World(network, stores))
        for store in stores:
            await store.close()

    virtual_loop.run(live())


def lose_next_write(store: EtcdStore, patch: pytest.MonkeyPatch, meanwhile: Callable[[], Awaitable[Any]]) -> None:
    """The next write of a store does not reach etcd, and nobody knows that; somebody else does something then."""
    connection, call = store._connection, store._connection.call

    async def lose(method: Any, request: Any, *given: Any) -> Any:
        if method is not TXN:
            return await call(method, request, *given)
        patch.setattr(connection, "call", call)
        await meanwhile()
        raise Uncertain("the answer was lost")

    patch.setattr(connection, "call", lose)


def test_a_write_that_removes_and_changes_is_not_made_because_somebody_else_has_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(world: World) -> None:
        one, other = world.stores
        removed = await one.create(ONE, etcd_history.made(1))
        changed = await one.create(OTHER, etcd_history.made(1))
        await other.catch_up()
        lose_next_write(one, monkeypatch, lambda: other.delete(ONE, None, etcd_history.made(1)))
        together: list[Operation] = [
            Delete(ONE, removed.revision, etcd_history.made(1)),
            Update(OTHER, changed.revision, etcd_history.made(2)),
        ]
        with pytest.raises(Exception, match="one"):  # it is not there any more
            await one.transact(together)
        await other.catch_up()
        assert [store.get(OTHER).obj.number for store in world.stores] == [1, 1]  # type: ignore[union-attr]

    on_two_stores(story)


def test_a_removal_that_somebody_else_was_faster_with_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(world: World) -> None:
        one, other = world.stores
        removed = await one.create(ONE, etcd_history.made(1))
        await other.catch_up()
        lose_next_write(one, monkeypatch, lambda: other.delete(ONE, None, etcd_history.made(1)))
        await one.delete(ONE, removed.revision, etcd_history.made(1))
        assert one.get(ONE) is None

    on_two_stores(story)


def test_whose_turn_it_is_to_compact_is_not_kept_beyond_its_life() -> None:
    """While a server has no lease, because it gets another one, a key of its would stay for ever."""

    async def story(world: World) -> None:
        one, other = world.stores
        await one.compact()
        await asyncio.sleep(one._retention.max_age + 1)
        lease, one._session.lease = one._session.lease, 0
        await one.compact()
        one._session.lease = lease
        await one.close()
        before = world.etcd.compacted
        await other.create(ONE, etcd_history.made(1))
        await other.compact()
        await asyncio.sleep(other._retention.max_age + 1)
        await other.compact()
        assert world.etcd.compacted > before

    on_two_stores(story)


def test_an_etcd_that_was_restored_from_a_backup_is_not_taken_for_the_one_it_was() -> None:
    async def story(world: World) -> None:
        one, other = world.stores
        await one.create(ONE, etcd_history.made(1))
        backup = copy.deepcopy((world.etcd._keys, world.etcd._held, world.etcd.revision))
        for number in range(5):
            await one.create(Key("pods", "default", f"lost-{number}"), etcd_history.made(1))
        await other.catch_up()
        world.network.lose_leader(0.0)  # as its members are stopped, all streams end
        world.etcd._keys, world.etcd._held, world.etcd.revision = backup
        for call in (one.catch_up, lambda: other.create(Key("pods", "default", "third"), etcd_history.made(1))):
            with pytest.raises(StorageError, match="Start this server again"):
                await call()
        for _ in range(10):  # as others go on to write, it comes to where it was
            world.etcd.do(TXN, pb.TxnRequest(success=[pb.RequestOp(request_put=pb.PutRequest(key=b"/else"))]))
        assert world.etcd.do(RANGE, pb.RangeRequest(key=b"/else")).header.revision > backup[2] + 5
        await asyncio.sleep(30)
        for store in world.stores:
            assert "restored from a backup" in str(store.problem)
            with pytest.raises(StorageError, match="Start this server again"):
                await store.catch_up()

    on_two_stores(story)


def test_who_waits_for_a_long_past_to_be_replayed_waits_as_long_as_it_goes_on() -> None:
    async def live() -> None:
        progress = Progress(0)
        rounds = Rounds(_nobody, _nobody, progress)
        waiting = asyncio.ensure_future(rounds.reach(100))
        for revision in range(1, 101):
            await asyncio.sleep(REACH_SECONDS / 10)
            progress.revision = revision
            rounds.advanced(revision)
        await waiting
        with pytest.raises(StorageError, match="tells no more than 100"):
            await rounds.reach(101)

    virtual_loop.run(live())


async def _nobody() -> Any:
    """Nothing is to be done."""


def test_writes_that_look_at_the_same_object_share_transactions_that_etcd_takes() -> None:
    async def story(world: World) -> None:
        one, _ = world.stores
        await one.create(ONE, etcd_history.made(1))
        absent = [Key("pods", "default", f"absent-{number}") for number in range(40)]
        bases = [Basis(keys=(ONE, *(absent if number == 50 else ()))) for number in range(120)]
        before = one.stats().commits
        await asyncio.gather(
            *(
                one.create(Key("pods", "default", f"made-{number}"), etcd_history.made(number), basis)
                for number, basis in enumerate(bases)
            )
        )
        assert one.stats().commits - before <= 4

    on_two_stores(story)
