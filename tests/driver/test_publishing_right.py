"""Two instances of a driver never publish against each other, however they are called and however they end."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dray.api.resource import ResourceSlice
from dray.client import Client
from dray.driver.pools import Pool
from dray.driver.publisher import Publisher
from dray.driver.publishing_right import FILE, PublishingRight
from dray.reconcile import RealClock
from driver_world import empty_world
from patience import eventually_async


@settings(max_examples=100, deadline=None)
@given(steps=st.lists(st.tuples(st.sampled_from(("start", "end", "ask", "remove")), st.integers(0, 2)), max_size=12))
def test_at_most_one_publishes_and_it_is_the_one_that_started_last_of_those_alive(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    directory = tmp_path_factory.mktemp("plugin")
    alive: list[PublishingRight] = []
    for step, number in steps:
        if step == "start":
            alive.append(PublishingRight(directory))
            alive[-1].take()
        elif step == "end" and number < len(alive):
            alive.pop(number).give_up()
        elif step == "remove":
            (directory / FILE).unlink(missing_ok=True)
        holding = [right for right in alive if right.is_held()]
        assert len(holding) == (1 if alive else 0)
        if step == "start":
            assert holding == [alive[-1]]
    for right in alive:
        right.give_up()


def test_a_process_that_is_killed_leaves_it_to_the_older_one(tmp_path: Path) -> None:
    older = PublishingRight(tmp_path)
    older.take()
    code = (
        "import sys, time; from pathlib import Path; from dray.driver.publishing_right import PublishingRight;"
        "right = PublishingRight(Path(sys.argv[1])); right.take(); print('taken', flush=True); time.sleep(600)"
    )
    newer = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, env=os.environ)
    assert newer.stdout is not None
    assert newer.stdout.readline() == b"taken\n"
    assert not older.is_held()
    newer.kill()
    newer.wait()
    newer.stdout.close()
    assert older.is_held()
    older.give_up()
    assert not older.is_held()


async def test_a_newer_instance_that_comes_between_two_writes_stops_the_rest() -> None:
    """The older one is in the middle of making a pool of two slices."""
    async with empty_world() as world:
        may_write = True

        class Between:
            """Another instance starts after the first write."""

            def __getattr__(self, name: str) -> Any:
                return getattr(world.client, name)

            async def create(self, obj: ResourceSlice) -> Any:
                nonlocal may_write
                may_write = False
                return await world.client.create(obj)

        client: Client = Between()  # type: ignore[assignment]  # whatever is not here is the client's
        publisher = Publisher(client, RealClock(), "fans.example.com", world.settings.node, dropped=lambda _: None)
        publisher.may_write = lambda: may_write
        publisher.publish({name: Pool(name=name) for name in ("a", "b")})
        running = asyncio.create_task(publisher.run())
        await eventually_async(lambda: publisher.writes)
        publisher.publish({"c": Pool(name="c")})
        await asyncio.sleep(0.05)
        assert publisher.writes == 1
        assert len(await world.slices()) == 1
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
