"""Events are removed an hour after they were last written, whatever their writers say of the time."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import replace

from dray.api.generated.core import Event
from dray.api.kinds import EVENTS
from dray.reconcile import VirtualClock
from dray.server.upkeep.event_expiry import AT_ONCE, KEPT_SECONDS, SWEEP_SECONDS, keep_recent, remove_old
from local_server import LocalServer, local_server, typed
from loop_turns import LoopTurns


def event(name: str, **more: Any) -> Any:
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    meta = {"name": name, "namespace": "default"}
    return typed({"apiVersion": "v1", "kind": "Event", "metadata": meta, "involvedObject": about, **more})


def names(server: LocalServer) -> set[str]:
    return {record.key.name for record in server.store.list(EVENTS.resource).records}


async def test_an_event_is_gone_an_hour_after_it_was_last_written() -> None:
    async with local_server(VirtualClock(start=1_780_000_000.0), with_roles=False) as server:
        clock, client = server.clock, server.client()
        await client.create(event("once"))
        await client.create(event("of-the-future", lastTimestamp="2999-01-01T00:00:00Z"))
        again: Event = await client.create(event("again"))
        task = asyncio.create_task(keep_recent(server.engine, clock))
        await clock.advance(KEPT_SECONDS - 1)
        assert names(server) == {"once", "of-the-future", "again"}
        await client.update(replace(again, count=2, last_timestamp=server.engine.clock()))
        await clock.advance(SWEEP_SECONDS + 1)
        assert names(server) == {"again"}
        await clock.advance(KEPT_SECONDS + SWEEP_SECONDS)
        assert names(server) == set()
        task.cancel()


async def test_many_are_removed_in_parts_and_what_somebody_else_removes_meanwhile_is_no_mistake() -> None:
    async with local_server(VirtualClock(start=1_780_000_000.0), with_roles=False) as server:
        client = server.client()
        for number in range(AT_ONCE + 50):
            await client.create(event(f"event-{number:03}"))
        later = server.clock.now() + KEPT_SECONDS + 1
        await asyncio.gather(remove_old(server.engine, later), remove_old(server.engine, later))
        assert names(server) == set()


async def test_a_clock_that_was_set_back_removes_nothing() -> None:
    async with local_server(VirtualClock(start=1_780_000_000.0), with_roles=False) as server:
        await server.client().create(event("kept"))
        await remove_old(server.engine, server.clock.now() - 2 * KEPT_SECONDS)
        assert names(server) == {"kept"}


async def test_large_events_keep_nobody_waiting_however_many_there_are() -> None:
    async with local_server(VirtualClock(start=1_780_000_000.0), with_roles=False) as server:
        entry = {"operation": "Update", "apiVersion": "v1", "time": "2026-05-28T20:26:39Z", "fieldsV1": {}}
        writers = [{**entry, "manager": f"m{number}"} for number in range(5000)]
        for number in range(30):
            meta = {"name": f"event-{number}", "namespace": "default", "managedFields": writers}
            await server.client().create(event("", metadata=meta))
        turns = LoopTurns(asyncio.get_running_loop())
        await remove_old(server.engine, server.clock.now() + 1)
        assert len(names(server)) == 30
        await remove_old(server.engine, server.clock.now() + KEPT_SECONDS + 1)
        await asyncio.sleep(0)
        assert names(server) == set()
        assert turns.longest < 0.02
