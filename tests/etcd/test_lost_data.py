"""etcd is restored from a backup, or has lost what it had, behind servers that run: they notice, and say so."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dray.api.generated.core import ConfigMap
from dray.api.meta import ObjectMeta
from dray.server.objects import finish
from dray.store import Key, Unreachable
from dray.store.etcd import EtcdAddress, EtcdStore
from etcd_world import Etcd, Proxy, etcd_store, new_prefix, running_etcd
from patience import PATIENCE, eventually
from server_process import server_on_thread

MAPS = "/api/v1/namespaces/default/configmaps"
CONTROL = Path(sys.executable).with_name("etcdctl")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "etcd"
    made.mkdir()
    return made


@pytest.fixture
def cluster(directory: Path) -> Iterator[Etcd]:
    with running_etcd(directory) as started:
        yield started


def save(cluster: Etcd, file: Path) -> None:
    control("--endpoints", cluster.urls[0], "snapshot", "save", file)


def control(*command: object) -> None:
    subprocess.run([CONTROL, *map(str, command)], capture_output=True, check=True)


def restore(cluster: Etcd, directory: Path, file: Path) -> None:
    """As an operator does it: with the names and addresses that there were."""
    [member] = cluster.members
    member.kill()
    shutil.rmtree(directory / "m0")
    command = member.command
    options = [
        text
        for name in ("--name", "--data-dir", "--initial-cluster", "--initial-advertise-peer-urls")
        for text in (name, command[command.index(name) + 1])
    ]
    control("snapshot", "restore", file, *options)
    member.start()
    member.wait()


def a_map(name: str, **data: str) -> Any:
    metadata = ObjectMeta(name=name, namespace="default")
    return finish(ConfigMap(kind="ConfigMap", api_version="v1", metadata=metadata, data=data))


def key(name: str) -> Key:
    return Key("configmaps", "default", name)


def test_a_server_whose_etcd_was_restored_says_so_and_shows_nothing(
    cluster: Etcd, directory: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    address = EtcdAddress(urls=cluster.urls)
    with server_on_thread(tmp_path / "state", etcd=address) as (api, _):
        assert api.request("POST", MAPS, {"metadata": {"name": "kept"}}).code == 201
        save(cluster, tmp_path / "snapshot")
        for number in range(20):
            assert api.request("POST", MAPS, {"metadata": {"name": f"lost-{number}"}}).code == 201
        restore(cluster, directory, tmp_path / "snapshot")
        eventually(lambda: b"Start this server again" in api.request("GET", "/readyz?verbose").body)
        assert api.request("GET", "/readyz").code == 500
        assert api.request("GET", MAPS).code == 503
        assert api.request("POST", MAPS, {"metadata": {"name": "new"}}).code == 503
    told = [record for record in caplog.records if record.name == "dray.store.etcd.connection"]
    assert [record.levelno for record in told] == [logging.ERROR]
    assert "it was restored from a backup" in told[0].getMessage()
    with server_on_thread(tmp_path / "state", etcd=address) as (api, _):
        assert [each["metadata"]["name"] for each in api.request("GET", MAPS).json["items"]] == ["kept"]


@contextlib.asynccontextmanager
async def served(cluster: Etcd, prefix: str) -> Any:
    """A way to etcd, and a store that goes by it."""
    async with Proxy(cluster.urls[0]) as way, etcd_store((way.url,), prefix) as store:
        yield way, store


async def until_it_says(store: EtcdStore, text: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while store.problem is None or text not in str(store.problem):
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("last", ["made", "removed"])
@pytest.mark.parametrize("writes", [1, 40])
async def test_who_was_away_while_a_backup_was_restored_and_written_to_notices(
    cluster: Etcd, directory: Path, tmp_path: Path, last: str, writes: int
) -> None:
    """Revisions are as high as they were, or higher: only what they are of has changed."""
    prefix = new_prefix()
    async with served(cluster, prefix) as (way, store):
        kept = await store.create(key("kept"), a_map("kept"))
        await asyncio.to_thread(save, cluster, tmp_path / "snapshot")
        if last == "made":
            await store.create(key("lost"), a_map("lost"))
        else:
            await store.delete(key("kept"), kept.revision, a_map("kept"))
        before = await store.catch_up()
        way.is_closed = True
        way.cut()
        await asyncio.to_thread(restore, cluster, directory, tmp_path / "snapshot")
        async with etcd_store(cluster.urls, prefix) as other:
            for number in range(writes):
                await other.create(key(f"new-{number}"), a_map(f"new-{number}"))
            assert await other.catch_up() >= before
            way.is_closed = False
            await until_it_says(store, "has another past")
            with pytest.raises(Unreachable, match="Start this server again"):
                await store.catch_up()
            assert other.problem is None


async def test_a_way_that_was_closed_is_no_loss(cluster: Etcd) -> None:
    prefix = new_prefix()
    async with served(cluster, prefix) as (way, store), etcd_store(cluster.urls, prefix) as other:
        made = await store.create(key("a"), a_map("a"))
        for change in ("removed", "made", "nothing"):
            way.is_closed = True
            way.cut()
            if change == "removed":
                await other.delete(key("a"), made.revision, a_map("a"))
            if change == "made":
                await other.create(key("b"), a_map("b"))
            way.is_closed = False
            async with asyncio.timeout(PATIENCE):
                while True:
                    with contextlib.suppress(Unreachable):
                        await store.catch_up()
                        break
            assert (store.get(key("a")), store.get(key("b")) is None) == (None, change == "removed")


async def test_what_was_heard_of_last_may_be_compacted(cluster: Etcd) -> None:
    """The watch cannot begin there any more: everything is read anew, and the server goes on."""
    prefix = new_prefix()
    async with served(cluster, prefix) as (way, store), etcd_store(cluster.urls, prefix) as other:
        await store.create(key("a"), a_map("a"))
        await other.catch_up()
        way.is_closed = True
        way.cut()
        for number in range(5):
            await other.create(key(f"b-{number}"), a_map(f"b-{number}"))
        revision = await other.catch_up() // 128
        await asyncio.to_thread(control, "--endpoints", cluster.urls[0], "compact", revision)
        way.is_closed = False
        async with asyncio.timeout(PATIENCE):
            while True:
                with contextlib.suppress(Unreachable):
                    await store.catch_up()
                    break
        assert store.get(key("b-4")) is not None
