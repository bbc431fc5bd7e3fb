"""A scheduler that stands by takes over when the lease of the one that was killed has run out, and lists nothing."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from dray.client import Client
from dray.reconcile import Informers
from dray.reconcile.leader import SHORT_RENEW_SECONDS, SHORT_SECONDS, LeaderElector
from dray.scheduler.scheduler import Scheduler
from local_server import LocalServer, local_server
from scheduler_world import World

LEASE = "kube-scheduler"
RETRY = SHORT_SECONDS * 2 / 15


class Process:
    """A scheduler as `dray scheduler` runs it, which can be killed."""

    def __init__(self, server: LocalServer, name: str) -> None:
        self._client = server.component("kube-scheduler")
        self._is_dead = False
        self.lists = 0
        client, clock = cast(Client, self), server.clock
        informers = Informers(client, clock)
        self.scheduler = Scheduler(client, clock, informers=informers)
        elector = LeaderElector(
            client,
            LEASE,
            name,
            clock,
            lease_seconds=SHORT_SECONDS,
            renew=SHORT_RENEW_SECONDS,
            retry=RETRY,
        )
        work = (informers.run(), elector.run(self.scheduler.run))
        self._tasks = [asyncio.ensure_future(each) for each in work]

    def __getattr__(self, name: str) -> Any:
        self.lists += name == "list"
        return self._silent if self._is_dead and name != "watch" else getattr(self._client, name)

    async def _silent(self, *_arguments: Any, **_named: Any) -> None:
        await asyncio.Event().wait()

    async def end(self, *, kill: bool = False) -> None:
        self._is_dead = kill
        for task in self._tasks:
            task.cancel()
        if not kill:
            await asyncio.gather(*self._tasks, return_exceptions=True)


@pytest.mark.parametrize("after", [0.0, 0.1, 0.2])
async def test_the_next_pod_has_its_node_when_the_lease_has_run_out(after: float) -> None:
    async with local_server() as server:
        world = World(server)
        await world.add_node("node")
        first = Process(server, "first")
        await world.settle(1)
        second = Process(server, "second")
        await world.settle(5 + after)
        listed = second.lists
        assert (first.scheduler.has_begun, second.scheduler.has_begun) == (True, False)
        await first.end(kill=True)
        await world.add_pod("next")
        await world.settle(SHORT_SECONDS - RETRY - 0.02)
        assert not (await world.pod("next")).spec.node_name
        await world.settle(RETRY + 0.05)
        assert (await world.pod("next")).spec.node_name == "node"
        assert second.lists == listed
        await second.end()
