"""Three stores on one simulated etcd, and what their clients see: quick enough for many seeds.

Answers get lost, writes are made late, watches break and stall, leaders change. `DRAY_SEED=17 pytest
tests/faults/test_store_histories.py` is history 17 again.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest

import etcd_history
from dray.process import virtual_loop
from dray.server.etcd_instance import layout
from dray.store.etcd import EtcdStore, transactions
from dray.store.etcd.generated import etcd_pb2 as pb
from dray.store.etcd.loading import Loaded
from dray.store.etcd.rounds import Rounds
from dray.store.etcd.session import Session
from dray.store.etcd.transactions import Write
from etcd_history import History, Thing
from fault_simulation.etcd import Etcd
from fault_simulation.etcd_network import CALM, STORM, EtcdNetwork, SimulatedConnection, version_of
from fault_simulation.server_group import ADDRESS, VERSIONS

ATTEMPTS = 20


def numbered(obj: Any, revision: int) -> Thing:
    return Thing(obj.number, revision)


async def live(seed: int) -> None:
    """One history. Raises AssertionError for what cannot be."""
    loop = asyncio.get_running_loop()
    randomness = random.Random(seed)
    etcd = Etcd(loop.time, VERSIONS[seed % 2])
    network = EtcdNetwork(etcd, randomness, lambda _fault: None)
    stores = [
        EtcdStore(
            ADDRESS,
            layout(ADDRESS.prefix),
            etcd_history.decode,
            numbered,
            Loaded(etcd.revision, etcd.values(), version_of(etcd)),
            clock=loop.time,
            connect=lambda address: SimulatedConnection(address, network),
        )
        for _ in range(3)
    ]
    for store in stores:
        await store.start()

    async def trouble() -> None:
        for _ in range(6):
            network.faults = STORM if randomness.random() < 0.8 else CALM
            await asyncio.sleep(randomness.choice([0.1, 0.3]))
            if randomness.random() < 0.3:
                network.lose_leader(randomness.choice([0.05, 0.5, 4.0]))
        network.faults = CALM
        network.recover()
        await asyncio.sleep(4.0 if seed % 4 == 0 else 0.5)

    history = History(stores, seed)
    await history.run(trouble)
    for store in stores:
        await store.close()


def seeds(usual: Iterable[int]) -> Iterable[int]:
    """Those of every run, or the one that is asked for."""
    wanted = os.environ.get("DRAY_SEED")
    return usual if wanted is None else (int(wanted),)


@pytest.mark.parametrize("seed", seeds(range(5)))
def test_whatever_fails_clients_see_what_can_be(seed: int) -> None:
    virtual_loop.run(live(seed))


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds(range(600)))
def test_whatever_fails_in_many_histories(seed: int) -> None:
    virtual_loop.run(live(seed))


def forget_revisions(patch: pytest.MonkeyPatch) -> None:
    """Writes are made whatever has become of what they were judged by."""

    def unconditional(write: Write) -> pb.TxnRequest:
        made = judged(write)
        del made.compare[:]
        return made

    judged = transactions._of_one
    patch.setattr(transactions, "_of_one", unconditional)


def forget_fences(patch: pytest.MonkeyPatch) -> None:
    """A write whose answer was lost is taken as not made as soon as it is not seen."""

    async def no_fence(self: Session) -> int:
        return await self._connection.revision(self.key) if self.epoch else await self._write()

    patch.setattr(Session, "fence", no_fence)


def forget_to_catch_up(patch: pytest.MonkeyPatch) -> None:
    """What is seen here counts as what there is."""

    async def at_once(self: Rounds) -> int:
        return self._progress.revision

    patch.setattr(Rounds, "join", at_once)


@pytest.mark.parametrize("broken", [forget_revisions, forget_fences, forget_to_catch_up])
def test_what_is_missing_is_missed(
    broken: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    for seed in range(ATTEMPTS):
        try:
            virtual_loop.run(live(seed))
        except Exception:
            return
    pytest.fail(f"nobody noticed in {ATTEMPTS} histories")
