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
from etcd_world import Etcd, Member, Proxy, etcd_store, new_prefix, running_etcd
from ports import free_port


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


def often(usual: int, soak: int) -> pytest.MarkDecorator:
    """Some seeds in every run, and more in `make soak`."""
    more = [pytest.param(seed, marks=[pytest.mark.soak, pytest.mark.timeout(3600)]) for seed in range(usual, soak)]
    return pytest.mark.parametrize("seed", [*range(usual), *more])


@often(2, 80)
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


@often(1, 60)
async def test_the_way_of_one_server_to_etcd_is_closed(etcd: Etcd, seed: int) -> None:
    async with Proxy(etcd.urls[0]) as way, stores((way.url,), etcd.urls, etcd.urls) as opened:
        history = History(opened, seed)

        async def trouble() -> None:
            for _ in range(2):
                await asyncio.sleep(0.1)
                way.is_closed = True
                way.cut()
                await asyncio.sleep((0.05, 0.4, 1.5)[seed % 3])
                way.is_closed = False
                await asyncio.sleep(0.3)

        await history.run(trouble)


@often(1, 40)
async def test_each_member_is_lost_in_turn(tmp_path: Path, seed: int) -> None:
    """Three members, three servers, each at another member: one member is killed, one stopped, and so on."""
    rounds = 1 if seed == 0 else 3
    with running_etcd(tmp_path, 3) as cluster:
        urls = cluster.urls
        async with stores(urls, urls[1:] + urls[:1], urls[2:] + urls[:2]) as opened:
            history = History(opened, seed)

            async def trouble() -> None:
                for number in range(3 * rounds):
                    member = cluster.members[number % 3]
                    await asyncio.sleep(0.3)
                    if (number + seed) % 2 == 0:
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


@often(1, 20)
async def test_a_member_is_slow(tmp_path: Path, seed: int) -> None:
    """One member after the other, the leader among them, does in a second what takes others a fifth of one: it is
    stopped for short times, as by a disk that does not keep up."""
    with running_etcd(tmp_path, 3) as cluster:
        urls = cluster.urls
        async with stores(urls, urls[1:] + urls[:1], urls[2:] + urls[:2]) as opened:
            history = History(opened, seed)

            async def trouble() -> None:
                for number in range(3):
                    member = cluster.members[(number + seed) % 3]
                    for _ in range(10):
                        member.signal(signal.SIGSTOP)
                        await asyncio.sleep(0.08)
                        member.signal(signal.SIGCONT)
                        await asyncio.sleep(0.02)
                await asyncio.sleep(0.5)

            await history.run(trouble)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(20))
async def test_members_do_not_hear_each_other(tmp_path: Path, seed: int) -> None:
    """One member after the other, the leader among them, hears nothing of the others for a while."""
    async with contextlib.AsyncExitStack() as stack:
        ports = [(free_port(), free_port()) for _ in range(3)]
        ways = [await stack.enter_async_context(Proxy(f"http://127.0.0.1:{peer}")) for _, peer in ports]
        names = {f"m{number}": way.url for number, way in enumerate(ways)}
        members = [Member(tmp_path, name, *at, cluster=names) for name, at in zip(names, ports, strict=True)]
        for member in members:
            member.start()
            stack.callback(member.kill)
        for member in members:
            await asyncio.to_thread(member.wait)
        urls = tuple(member.url for member in members)
        opened = await stack.enter_async_context(stores(urls, urls[1:] + urls[:1], urls[2:] + urls[:2]))
        history = History(opened, seed)

        async def trouble() -> None:
            for number in range(3):
                way = ways[(number + seed) % 3]
                await asyncio.sleep(0.3)
                way.is_closed = True
                way.cut()
                await asyncio.sleep(1.5)
                way.is_closed = False
            await asyncio.sleep(1.0)

        await history.run(trouble)
