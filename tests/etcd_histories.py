"""Members of etcd are killed and stopped, connections cut, while three stores write and watch: one history per seed.

Each says how many writes were acknowledged, and raises AssertionError for what cannot be.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import etcd_history
from dray.store.etcd import EtcdStore
from etcd_history import History
from etcd_world import Member, Proxy, etcd_store, new_prefix, running_etcd
from ports import free_port


@contextlib.asynccontextmanager
async def stores(*ways: tuple[str, ...]) -> AsyncIterator[list[EtcdStore]]:
    """A store for each way to etcd, all on the same prefix."""
    prefix = new_prefix()
    async with contextlib.AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                etcd_store(urls, prefix, decode=etcd_history.decode, number=etcd_history.numbered)
            )
            for urls in ways
        ]


async def _lived(history: History, trouble: Callable[[], Any]) -> int:
    await history.run(trouble)
    return history.writes


async def lost_answers(urls: tuple[str, ...], seed: int) -> int:
    """What etcd says does not arrive, and connections end."""
    async with Proxy(urls[0]) as way, Proxy(urls[0]) as other, stores((way.url,), (other.url,), urls) as opened:

        async def trouble() -> None:
            for number in range(4):
                broken = (way, other)[number % 2]
                await asyncio.sleep(0.15)
                broken.is_mute = True
                await asyncio.sleep(0.02)
                broken.is_mute = False
                broken.cut()
            await asyncio.sleep(0.15)

        return await _lived(History(opened, seed), trouble)


async def closed_way(urls: tuple[str, ...], seed: int) -> int:
    """One server cannot reach etcd for a while."""
    async with Proxy(urls[0]) as way, stores((way.url,), urls, urls) as opened:

        async def trouble() -> None:
            for _ in range(2):
                await asyncio.sleep(0.1)
                way.is_closed = True
                way.cut()
                await asyncio.sleep((0.05, 0.4, 1.5)[seed % 3])
                way.is_closed = False
                await asyncio.sleep(0.3)

        return await _lived(History(opened, seed), trouble)


async def lost_members(directory: Path, seed: int) -> int:
    """Three members, three servers, each at another member: one member is killed, one stopped, and so on."""
    rounds = 1 if seed == 0 else 3
    with running_etcd(directory, 3) as cluster:
        urls = cluster.urls

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

        async with stores(urls, urls[1:] + urls[:1], urls[2:] + urls[:2]) as opened:
            return await _lived(History(opened, seed), trouble)


async def slow_member(directory: Path, seed: int) -> int:
    """One member after the other, the leader among them, does in a second what takes others a fifth of one: it is
    stopped for short times, as by a disk that does not keep up."""
    with running_etcd(directory, 3) as cluster:
        urls = cluster.urls

        async def trouble() -> None:
            for number in range(3):
                member = cluster.members[(number + seed) % 3]
                for _ in range(10):
                    member.signal(signal.SIGSTOP)
                    await asyncio.sleep(0.08)
                    member.signal(signal.SIGCONT)
                    await asyncio.sleep(0.02)
            await asyncio.sleep(0.5)

        async with stores(urls, urls[1:] + urls[:1], urls[2:] + urls[:2]) as opened:
            return await _lived(History(opened, seed), trouble)


async def deaf_members(directory: Path, seed: int) -> int:
    """One member after the other, the leader among them, hears nothing of the others for a while."""
    async with contextlib.AsyncExitStack() as stack:
        ports = [(free_port(), free_port()) for _ in range(3)]
        ways = [await stack.enter_async_context(Proxy(f"http://127.0.0.1:{peer}")) for _, peer in ports]
        names = {f"m{number}": way.url for number, way in enumerate(ways)}
        members = [Member(directory, name, *at, cluster=names) for name, at in zip(names, ports, strict=True)]
        for member in members:
            member.start()
            stack.callback(member.kill)
        for member in members:
            await asyncio.to_thread(member.wait)
        urls = tuple(member.url for member in members)

        async def trouble() -> None:
            for number in range(3):
                way = ways[(number + seed) % 3]
                await asyncio.sleep(0.3)
                way.is_closed = True
                way.cut()
                await asyncio.sleep(1.5)
                way.is_closed = False
            await asyncio.sleep(1.0)

        opened = await stack.enter_async_context(stores(urls, urls[1:] + urls[:1], urls[2:] + urls[:2]))
        return await _lived(History(opened, seed), trouble)


async def live(directory: Path, seed: int) -> int:
    """One of many histories, with etcd started for it: of six, two lose answers, and one each is of the other kinds."""
    kind = seed % 6
    if kind < 3:
        with running_etcd(directory) as etcd:
            return await (closed_way if kind == 2 else lost_answers)(etcd.urls, seed)
    return await (lost_members, slow_member, deaf_members)[kind - 3](directory, seed)
