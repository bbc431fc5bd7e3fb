"""Three stores on one simulated etcd, and what their clients see: quick enough for many seeds.

Answers get lost, writes are made late, watches break and stall, leaders change. `DRAY_SEED=17 pytest
tests/faults/test_store_histories.py` is history 17 again; `python -m soak.days --kind stores` goes through many.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable

import pytest

import etcd_history
from dray.process import virtual_loop
from dray.store import Key, StorageError
from dray.store.etcd import EtcdStore
from dray.store.etcd.alone import Alone
from dray.store.etcd.calls import LEASE_REVOKE, RANGE
from dray.store.etcd.generated import etcd_pb2 as pb
from dray.store.etcd.rounds import Rounds
from dray.store.etcd.session import Session
from fault_simulation.etcd import Etcd
from fault_simulation.etcd_network import CALM, EtcdFaults, EtcdNetwork
from fault_simulation.guards import forget_revisions
from fault_simulation.seeds import seeds
from fault_simulation.server_group import VERSIONS
from fault_simulation.store_histories import live, opened

ATTEMPTS = 20
WATCHES_LAG = EtcdFaults(refuse=0, lose=0, silence=0, late=0, slow=0, drop=0, stall=0.3)


async def come_and_go(seed: int) -> None:
    """A server that is alone most of the time shows what others acknowledge as soon as they are there.

    Raises AssertionError for what cannot be.
    """
    loop = asyncio.get_running_loop()
    randomness = random.Random(seed)
    etcd = Etcd(loop.time, VERSIONS[seed % 2])
    network = EtcdNetwork(etcd, randomness, lambda _fault: None)
    one = opened(etcd, network)
    await one.start()
    unasked = 0

    async def read() -> None:
        nonlocal unasked
        unasked += one._alone.is_certain(one.revision)
        with contextlib.suppress(StorageError):
            await one.catch_up()

    async def keep_reading() -> None:
        while True:
            await read()
            await asyncio.sleep(0.05)

    reading = loop.create_task(keep_reading())
    for visit in range(6):
        await asyncio.sleep(randomness.choice([0.1, 6.0]))
        network.faults = WATCHES_LAG
        other = opened(etcd, network)
        try:
            await other.start()
            if visit % 3 == 2:  # its lease runs out, and it comes back
                etcd.do(LEASE_REVOKE, pb.LeaseRevokeRequest(ID=other._session.lease))
                await asyncio.sleep(randomness.choice([0.1, 6.0]))
            for number in range(5):
                key = Key("pods", "default", f"made-{visit}-{number}")
                await other.create(key, etcd_history.made(number))
                await one.catch_up()
                assert one.get(key) is not None, f"{key} was acknowledged, and the other server does not show it"
        except StorageError:
            pass  # etcd could not be reached
        network.faults = CALM
        await other.close()
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    assert unasked > 20, "it never believed to be alone"
    await one.close()


async def read_for(seconds: float) -> tuple[int, int]:
    """How many of the reads of a server that is alone had to wait, after the first, and how often etcd was asked."""
    loop = asyncio.get_running_loop()
    etcd = Etcd(loop.time, VERSIONS[0])
    one = opened(etcd, EtcdNetwork(etcd, random.Random(1), lambda _fault: None))
    await one.start()
    await one.catch_up()
    before, waits, end = one.stats().shared, 0, loop.time() + seconds
    while loop.time() < end:
        waits += not one.is_current
        await asyncio.sleep(0.01)
    after = one.stats().shared
    assert before is not None
    assert after is not None
    await one.close()
    return waits, after.catch_ups - before.catch_ups


def test_who_reads_from_a_server_that_is_alone_waits_for_nobody() -> None:
    waits, questions = virtual_loop.run(read_for(3.0))
    assert waits == 0
    assert questions <= 13


@pytest.mark.parametrize("seed", range(6))
def test_a_server_that_is_alone_notices_others_in_time(seed: int) -> None:
    virtual_loop.run(come_and_go(seed))


def forget_to_wait(patch: pytest.MonkeyPatch) -> None:
    """Who comes begins at once."""

    async def at_once(_self: Alone) -> None:
        return

    patch.setattr(Alone, "join", at_once)


def forget_who_came_back(patch: pytest.MonkeyPatch) -> None:
    """A server whose presence has run out goes on at once."""

    async def at_once(self: EtcdStore, _revision: int) -> None:
        if not self._session.epoch:
            await arrived(self, _revision)

    arrived = EtcdStore._arrived
    patch.setattr(EtcdStore, "_arrived", at_once)


@pytest.mark.parametrize("broken", [forget_to_wait, forget_who_came_back])
def test_who_believes_to_be_alone_for_too_long_is_noticed(
    broken: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    for seed in range(ATTEMPTS):
        try:
            virtual_loop.run(come_and_go(seed))
        except AssertionError:
            return
    pytest.fail(f"nobody noticed in {ATTEMPTS} histories")


@pytest.mark.parametrize("seed", seeds(range(5)))
def test_whatever_fails_clients_see_what_can_be(seed: int) -> None:
    virtual_loop.run(live(seed))


def forget_fences(patch: pytest.MonkeyPatch) -> None:
    """A write whose answer was lost is taken as not made as soon as it is not seen."""

    async def no_fence(self: Session) -> int:
        if not self.epoch:
            return await self._write()
        answer = await self._connection.ask(RANGE, pb.RangeRequest(key=self.key))
        revision: int = answer.header.revision
        return revision

    patch.setattr(Session, "fence", no_fence)


def forget_to_catch_up(patch: pytest.MonkeyPatch) -> None:
    """What is seen here counts as what there is."""

    async def at_once(self: Rounds) -> int:
        return self._progress.revision

    patch.setattr(Rounds, "join", at_once)


@pytest.mark.parametrize(("broken", "first"), [(forget_revisions, 0), (forget_fences, 30), (forget_to_catch_up, 0)])
def test_what_is_missing_is_missed(
    broken: Callable[[pytest.MonkeyPatch], None], first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    for seed in range(first, first + ATTEMPTS):
        try:
            virtual_loop.run(live(seed))
        except Exception:
            return
    pytest.fail(f"nobody noticed in {ATTEMPTS} histories")
