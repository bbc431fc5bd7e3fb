"""Three stores on one simulated etcd, and what their clients see: quick enough for many seeds.

Answers get lost, writes are made late, watches break and stall, leaders change.
"""

from __future__ import annotations

import asyncio
import random

import etcd_history
from dray.server.etcd_instance import layout
from dray.store.etcd import EtcdStore
from dray.store.etcd.loading import Loaded
from etcd_history import History
from fault_simulation.etcd import Etcd
from fault_simulation.etcd_network import CALM, STORM, EtcdNetwork, SimulatedConnection, version_of
from fault_simulation.server_group import ADDRESS, VERSIONS


def opened(etcd: Etcd, network: EtcdNetwork) -> EtcdStore:
    """A store of another server."""
    return EtcdStore(
        ADDRESS,
        layout(ADDRESS.prefix),
        etcd_history.decode,
        etcd_history.numbered,
        Loaded(etcd.revision, etcd.values(), version_of(etcd)),
        clock=asyncio.get_running_loop().time,
        connect=lambda address: SimulatedConnection(address, network),
    )


async def live(seed: int) -> int:
    """One history; how many writes were acknowledged in it. Raises AssertionError for what cannot be."""
    loop = asyncio.get_running_loop()
    randomness = random.Random(seed)
    etcd = Etcd(loop.time, VERSIONS[seed % 2])
    network = EtcdNetwork(etcd, randomness, lambda _fault: None)
    stores = [opened(etcd, network) for _ in range(3)]
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
    return history.writes
