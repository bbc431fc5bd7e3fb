"""Three servers and three members of etcd, as processes, behind a balancer: each is lost in turn, under load.

Clients try again as client-go does. Nothing that was acknowledged is lost, and nobody who tries again sees an error.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import http.client
import json
import signal
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from etcd_world import Etcd, new_prefix, running_etcd
from live_server import LiveServer
from patience import PATIENCE, eventually
from server_process import ServerProcess

MAPS = "/api/v1/namespaces/default/configmaps"
TRIES = 60
AGAIN = (429, 500, 502, 503, 504)


class Balancer:
    """Passes connections on to the servers in turn, to those that take them. On a thread of its own."""

    def __init__(self) -> None:
        self.targets: list[int] = []
        self.port = 0
        self._turn = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @contextlib.contextmanager
    def running(self) -> Iterator[Balancer]:
        self._thread.start()
        listening = asyncio.start_server(self._serve, "127.0.0.1", 0)
        server = asyncio.run_coroutine_threadsafe(listening, self._loop).result()
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            asyncio.run_coroutine_threadsafe(self._end(server), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def leads_to(self, port: int) -> bool:
        """Whether a server gets clients."""
        return port in self.targets

    async def _end(self, server: asyncio.Server) -> None:
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(len(self.targets)):
            self._turn += 1
            try:
                far = await asyncio.open_connection("127.0.0.1", self.targets[self._turn % len(self.targets)])
                break
            except OSError:
                continue
        else:
            writer.close()
            return
        await asyncio.gather(_pump(reader, far[1]), _pump(far[0], writer))


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    target.close()


class Client(threading.Thread):
    """Makes one object after the other and counts in another one, each as often as it takes."""

    def __init__(self, url: str, directory: Path, name: str) -> None:
        super().__init__(daemon=True)
        self._client = LiveServer(url, directory)
        self._name = name
        self.made: list[str] = []
        self.counted = 0
        self.is_over = False
        self.problem: BaseException | None = None

    def run(self) -> None:
        """Until it is over."""
        try:
            number = 0
            while not self.is_over:
                number += 1
                name = f"{self._name}-{number}"
                code = self._insist("POST", MAPS, {"metadata": {"name": name}})
                assert code in (201, 409), code  # made, by this try or by one whose answer got lost
                self.made.append(name)
                self._count()
        except BaseException as error:
            self.problem = error
        finally:
            self._client.close()

    def has_made(self, count: int) -> bool:
        """Whether it has made so many, or has given up."""
        return len(self.made) > count or self.problem is not None

    def _count(self) -> None:
        """Adds one, by a patch that fails if somebody was faster; whether a lost one was made, the number says."""
        before = self.counted
        patch = [
            {"op": "test", "path": "/data/n", "value": str(before)},
            {"op": "replace", "path": "/data/n", "value": str(before + 1)},
        ]
        code = self._insist("PATCH", f"{MAPS}/counter-{self._name}", patch, "application/json-patch+json")
        assert code in (200, 422), code
        self.counted += 1

    def _insist(self, method: str, path: str, body: object, kind: str = "application/json") -> int:
        for _ in range(TRIES):
            try:
                answer = self._client.request(method, path, body, kind)
                if answer.code not in AGAIN:
                    return answer.code
            except OSError:
                self._client.close()
            time.sleep(0.25)
        raise AssertionError(f"{method} {path} failed {TRIES} times")


class Impatient(Client):
    """As client-go: an answer that says when to come again is tried again, and so is whatever a GET comes to. A write
    that is cut off is an error, which its caller sees."""

    def _insist(self, method: str, path: str, body: object, kind: str = "application/json") -> int:
        client = self._client
        headers = {"Authorization": f"Bearer {client.token}", "Content-Type": kind}
        for _ in range(TRIES):
            connection = client._kept or client.connect()
            connection.request(method, path, json.dumps(body), headers)
            answer = connection.getresponse()
            answer.read()
            client._kept = None if answer.will_close else connection
            if answer.status not in (429, 503) or not answer.headers["Retry-After"]:
                return answer.status
            time.sleep(float(answer.headers["Retry-After"]))
        raise AssertionError(f"{method} {path} failed {TRIES} times")


class Looking(threading.Thread):
    """What a balancer does beside its work: servers that say that they are not ready get no new clients."""

    def __init__(self, balancer: Balancer, servers: list[ServerProcess]) -> None:
        super().__init__(daemon=True)
        self._balancer = balancer
        self.servers = servers
        self.is_over = False

    def run(self) -> None:
        """Until it is over."""
        while not self.is_over:
            ready = [server.port for server in list(self.servers) if _is_ready(server)]
            self._balancer.targets = ready or self._balancer.targets
            time.sleep(0.1)


def _is_ready(server: ServerProcess) -> bool:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=PATIENCE)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


@pytest.mark.timeout(600)
def test_a_rolling_restart_is_seen_by_nobody(etcd: Etcd, tmp_path: Path) -> None:
    with Balancer().running() as balancer, contextlib.ExitStack() as stack:
        options = ("--store", f"etcd={etcd.urls[0]}", "--etcd-prefix", new_prefix(), "--shutdown-delay-seconds", "2")
        servers = [stack.enter_context(ServerProcess(tmp_path / f"s{number}", *options)) for number in range(2)]
        looking = Looking(balancer, servers)
        balancer.targets = [server.port for server in servers]
        looking.start()
        body = {"metadata": {"name": "counter-c"}, "data": {"n": "0"}}
        assert servers[0].client.request("POST", MAPS, body).code == 201
        client = Impatient(f"https://127.0.0.1:{balancer.port}", tmp_path / "s0", "c")
        client.start()
        for number in range(2):
            eventually(functools.partial(client.has_made, len(client.made) + 5))
            assert servers[number].terminate() == 0
            servers[number] = stack.enter_context(ServerProcess(tmp_path / f"s{number}", *options))
            eventually(functools.partial(balancer.leads_to, servers[number].port))
        client.is_over = looking.is_over = True
        client.join(PATIENCE)
        looking.join(PATIENCE)
        assert client.problem is None, client.problem
        found = {each["metadata"]["name"] for each in servers[0].client.request("GET", MAPS).json["items"]}
        assert set(client.made) <= found


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(20))
def test_everything_is_lost_in_turn_and_nothing_is_lost(tmp_path: Path, seed: int) -> None:
    directory = tmp_path / "etcd"
    directory.mkdir()
    with running_etcd(directory, 3) as cluster, Balancer().running() as balancer, contextlib.ExitStack() as stack:
        options = ("--store", f"etcd={','.join(cluster.urls)}", "--etcd-prefix", new_prefix())
        servers = [stack.enter_context(ServerProcess(tmp_path / f"s{number}", *options)) for number in range(3)]
        balancer.targets = [server.port for server in servers]
        url = f"https://127.0.0.1:{balancer.port}"
        first = servers[0].client
        clients = [Client(url, tmp_path / "s0", f"c{number}") for number in range(3)]
        for number, client in enumerate(clients):
            body = {"metadata": {"name": f"counter-c{number}"}, "data": {"n": "0"}}
            assert first.request("POST", MAPS, body).code == 201
            client.start()
        for number in range(3):
            time.sleep(0.5)
            old = servers[number]
            if (number + seed) % 3 == 0:
                old.kill()
            elif (number + seed) % 3 == 1:
                assert old.terminate() == 0
            else:
                old.signal(signal.SIGSTOP)
                time.sleep(1.0)
                old.signal(signal.SIGCONT)
                old.kill()
            member = cluster.members[(number + seed) % 3]
            member.kill()
            servers[number] = stack.enter_context(ServerProcess(tmp_path / f"s{number}", *options))
            balancer.targets[number] = servers[number].port
            member.start()
            member.wait()
        time.sleep(0.5)
        for client in clients:
            client.is_over = True
        for client in clients:
            client.join(PATIENCE)
            assert client.problem is None, client.problem
            assert len(client.made) > 5
        for server in servers:
            found = {each["metadata"]["name"]: each for each in server.client.request("GET", MAPS).json["items"]}
            for client in clients:
                assert set(client.made) <= found.keys()
                assert int(found[f"counter-{client._name}"]["data"]["n"]) == client.counted
