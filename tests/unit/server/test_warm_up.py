"""Kinds are learned beside the loop before they are first written."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dray.api import registry
from dray.api.registry import Kind
from dray.server import warm_up
from local_server import local_server

ROOT = Path(__file__).parents[3]
FIRST_WRITES = """
import asyncio, sys
import builders
from dray.api import schema
from dray.server.warm_up import PAUSE_SECONDS, warm_up
from local_server import local_server


async def main():
    async with local_server() as server:
        task = asyncio.ensure_future(warm_up(server.engine, server.clock, ()))
        await server.clock.advance(PAUSE_SECONDS)
        await task
        known, read = set(sys.modules), schema._load.cache_info().misses
        wanted = builders.request(selectors=builders.cel("true"))
        for made in (builders.pod(), builders.resource_slice("s", "gpu-0"), builders.claim("c", wanted)):
            await server.client().create(builders.typed(made))
        print(sorted(name for name in sys.modules.keys() - known if name.startswith("dray")))
        print(schema._load.cache_info().misses - read)


asyncio.run(main())
"""


async def test_every_kind_is_learned_and_none_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    learned: list[tuple[Kind, int]] = []
    monkeypatch.setattr(warm_up, "learn", lambda kind: learned.append((kind, threading.get_ident())))
    async with local_server() as server:
        server.keep(warm_up.warm_up(server.engine, server.clock, ()))
        await server.clock.advance(warm_up.PAUSE_SECONDS / 2)
        assert learned == []
        await server.clock.advance(warm_up.PAUSE_SECONDS)
        while len(learned) < len(list(registry.kinds())):
            await server.clock.advance(0)
    kinds = [kind for kind, _ in learned]
    assert kinds == list(dict.fromkeys((*warm_up.FIRST, *registry.kinds()))), "the most wanted first, each once"
    assert threading.get_ident() not in {thread for _, thread in learned}


def test_the_first_write_of_a_kind_imports_and_reads_nothing() -> None:
    paths = f"{ROOT / 'src'}:{ROOT / 'tests'}"
    done = subprocess.run(
        [sys.executable, "-c", FIRST_WRITES], capture_output=True, text=True, env={"PYTHONPATH": paths}, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == ["[]", "0"]
