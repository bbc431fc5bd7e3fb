"""Members of etcd are killed and stopped, connections cut, while servers write and watch: nothing is lost."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import etcd_history
from dray.store.etcd import EtcdStore
from etcd_history import History
from etcd_world import Etcd, Proxy, etcd_store, new_prefix, running_etcd


@pytest.fixture(autouse=True)
def _things(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("etcd_world.numbered", lambda thing, revision: etcd_history.Thing(thing.number, revision))


@contextlib.asynccontextmanager
async def stores(*ways: tuple[str, ...]) -> AsyncIterator[list[EtcdStore]]:
    prefix = new_prefix()
    async with contextlib.AsyncExitStack() as stack:
        opened = [
            await stack.enter_async_context(etcd_store(urls, prefix, decode=etcd_history.decode)) for urls in ways
        ]
        yield opened


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_answers_that_get_lost(etcd: Etcd, seed: int) -> None:
    async with (
        Proxy(etcd.urls[0]) as way,
        Proxy(etcd.urls[0]) as other,
        stores((way.url,), (other.url,), etcd.urls) as opened,
    ):
        history = History(opened, seed)

        async def trouble() -> None:
            for number in range(4):
                broken = (way, other)[number % 2]
                await asyncio.sleep(0.15)
                broken.is_mute = True
                await asyncio.sleep(0.02)
                broken.is_mute = False
                broken.cut()
            await asyncio.sleep(0.15)

        await history.run(trouble)
        assert len(history.created) > 20


async def test_each_member_is_lost_in_turn(tmp_path: Path) -> None:
    await lose_members(tmp_path, rounds=1, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(20))
async def test_each_member_is_lost_in_turn_often(tmp_path: Path, seed: int) -> None:
    await lose_members(tmp_path, rounds=5, seed=seed)


async def lose_members(directory: Path, *, rounds: int, seed: int) -> None:
    """Three members, three servers, each at another member: one member is killed, one stopped, and so on."""
    with running_etcd(directory, 3) as cluster:
        urls = cluster.urls
        async with stores(urls, urls[1:] + urls[:1], urls[2:] + urls[:2]) as opened:
            history = History(opened, seed)

            async def trouble() -> None:
                for number in range(3 * rounds):
                    member = cluster.members[number % 3]
                    await asyncio.sleep(0.3)
                    if (number + seed) % 2:
                        member.kill()
                        await asyncio.sleep(0.8)
                        member.start()
                        await asyncio.to_thread(member.wait)
                    else:
                        member.signal(signal.SIGSTOP)
                        await asyncio.sleep(1.5)
                        member.signal(signal.SIGCONT)
                await asyncio.sleep(0.5)

            await history.run(trouble)
            assert len(history.created) > 20
