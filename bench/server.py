"""The API server over TLS: durable pod creates, reads, lists, watch fan-out, memory and start.

The load comes from this process, the server is another one: `python -m bench server` prints the figures. The limits
that they should reach are in `LIMITS`.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import uvloop
from bench._process import Address, Dray

SECONDS = 4.0
LISTED = 5_000
STORED = 50_000
WATCHERS = 100
WATCHED_WRITES = 1_000
PODS = "/api/v1/namespaces/default/pods"
LAST_CHUNK = b"\r\n0\r\n\r\n"

LIMITS = {
    "creates_per_second_16": 2_500,
    "creates_per_second_64": 3_500,
    "gets_per_second_16": 6_000,
    "list_5000_pods_ms": 150,
    "watch_100_p99_ms": 100,
    "memory_bytes_per_pod": 6 * 1024,
    "start_with_50000_objects_seconds": 3,
}


def pod(name: str) -> bytes:
    """A small pod with a claim, as a load generator makes it."""
    resources = {"requests": {"cpu": "100m", "memory": "100Mi"}, "claims": [{"name": "gpu"}]}
    spec = {
        "containers": [{"name": "main", "image": "pause", "resources": resources}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
    }
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}).encode()


class Connection(asyncio.Protocol):
    """One keep-alive connection, with one request under way, cheap enough not to be the limit."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        at = self._buffer.find(b"Content-Length: ", 0, end)
        if at < 0:  # a long one comes in chunks, which are left as they are
            length = len(self._buffer) - end - 4 if self._buffer.endswith(LAST_CHUNK) else len(self._buffer)
        else:
            length = int(self._buffer[at + 16 : self._buffer.find(b"\r\n", at)])
        if len(self._buffer) < end + 4 + length:
            return
        code, body = int(self._buffer[9:12]), bytes(self._buffer[end + 4 : end + 4 + length])
        self._buffer.clear()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result((code, body))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError("the server closed the connection"))

    async def call(self, head: bytes, body: bytes = b"") -> tuple[int, bytes]:
        """Sends a request, returns the code and the body of the answer."""
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(head + body)
        return await self._answer

    def close(self) -> None:
        """Ends the connection."""
        assert self._transport is not None
        self._transport.close()


def tls() -> ssl.SSLContext:
    """The load does not ask who the server is."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def head(server: Dray | Address, method: str, path: str, length: int = 0) -> bytes:
    """The lines before the body."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{server.port}", f"Authorization: Bearer {server.token}"]
    if length:
        lines += ["Content-Type: application/json", f"Content-Length: {length}"]
    return ("\r\n".join([*lines, "Accept: application/json"]) + "\r\n\r\n").encode()


async def connect(server: Dray | Address, count: int) -> list[Connection]:
    """So many connections."""
    loop, context = asyncio.get_running_loop(), tls()
    made = [await loop.create_connection(Connection, "127.0.0.1", server.port, ssl=context) for _ in range(count)]
    return [connection for _, connection in made]


async def create_pods(server: Dray, connections: int, names: Iterator[str], seconds: float = 0.0) -> float:
    """Pods per second, created until the names or the seconds are used up."""
    clients = await connect(server, connections)
    rate = await create_over(server, clients, names, seconds)
    for connection in clients:
        connection.close()
    return rate


async def create_over(server: Dray, clients: list[Connection], names: Iterator[str], seconds: float = 0.0) -> float:
    """The same over connections that there are, and stay."""
    began = time.perf_counter()
    created = 0

    async def client(connection: Connection) -> None:
        nonlocal created
        for name in names:
            body = pod(name)
            code, answer = await connection.call(head(server, "POST", PODS, len(body)), body)
            if code != 201:
                raise RuntimeError(f"create of {name}: {code} {answer[:300]!r}")
            created += 1
            if seconds and time.perf_counter() - began > seconds:
                return

    await asyncio.gather(*map(client, clients))
    return created / (time.perf_counter() - began)


async def get_pod(server: Dray, connections: int, name: str) -> float:
    """Reads of one pod per second."""
    clients = await connect(server, connections)
    request = head(server, "GET", f"{PODS}/{name}")
    began = time.perf_counter()
    count = 0

    async def client(connection: Connection) -> None:
        nonlocal count
        while time.perf_counter() - began < SECONDS:
            code, _ = await connection.call(request)
            if code != 200:
                raise RuntimeError(f"get: {code}")
            count += 1

    await asyncio.gather(*map(client, clients))
    return count / (time.perf_counter() - began)


async def list_pods(server: Dray, rounds: int = 9) -> float:
    """Milliseconds for the list of all pods, the median."""
    [connection] = await connect(server, 1)
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        code, body = await connection.call(head(server, "GET", PODS))
        times.append(time.perf_counter() - began)
        if code != 200 or body.count(b'"uid"') < LISTED:
            raise RuntimeError(f"list: {code}, {len(body)} bytes")
    return sorted(times)[len(times) // 2] * 1000


async def watch_lines(server: Dray | Address, path: str, revision: str) -> AsyncIterator[list[bytes]]:
    """The pieces of a watch as they arrive, each as its whole lines."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=tls(), limit=1 << 24)
    writer.write(head(server, "GET", f"{path}?watch=true&resourceVersion={revision}"))
    await reader.readuntil(b"\r\n\r\n")
    rest = b""
    while size := int(await reader.readline(), 16):
        rest += (await reader.readexactly(size + 2))[:-2]
        *lines, rest = rest.split(b"\n")
        yield lines
    writer.close()


def value_in(line: bytes, key: bytes) -> bytes:
    """The first string with a key in a line of JSON."""
    at = line.index(key) + len(key)
    return line[at : line.index(b'"', at)]


async def fan_out(server: Dray) -> tuple[float, float]:
    """100 watchers of 1,000 writes in one second: how late events arrive (p99, ms), and the writes per second."""
    names = [f"watched-{number:05}" for number in range(WATCHED_WRITES)]
    sent: dict[bytes, float] = {}
    late: list[float] = []
    [lister] = await connect(server, 1)
    _, listing = await lister.call(head(server, "GET", f"{PODS}?limit=1"))
    revision = json.loads(listing)["metadata"]["resourceVersion"]
    watching = 0

    async def watch() -> None:
        nonlocal watching
        watching += 1
        seen: list[bytes] = []
        revisions: list[int] = []
        async for lines in watch_lines(server, PODS, revision):
            now = time.perf_counter()
            for line in lines:
                name = value_in(line, b'"name":"')
                seen.append(name)
                revisions.append(int(value_in(line, b'"resourceVersion":"')))
                late.append(now - sent[name])
            if len(seen) >= WATCHED_WRITES:
                break
        if sorted(seen) != sorted(name.encode() for name in names) or revisions != sorted(revisions):
            raise RuntimeError("a watcher missed events, or saw them twice or out of order")

    watchers = [asyncio.ensure_future(watch()) for _ in range(WATCHERS)]
    while watching < WATCHERS:
        await asyncio.sleep(0.05)
    await asyncio.sleep(1.0)
    writers = await connect(server, 16)
    began = time.perf_counter()

    async def write(connection: Connection, number: int) -> None:
        """Paced: pod n is due n milliseconds after the start."""
        for index in range(number, WATCHED_WRITES, len(writers)):
            await asyncio.sleep(max(0.0, began + index / WATCHED_WRITES - time.perf_counter()))
            body = pod(names[index])
            sent[names[index].encode()] = time.perf_counter()
            await connection.call(head(server, "POST", PODS, len(body)), body)

    await asyncio.gather(*(write(connection, number) for number, connection in enumerate(writers)))
    rate = WATCHED_WRITES / (time.perf_counter() - began)
    await asyncio.gather(*watchers)
    late.sort()
    return late[int(len(late) * 0.99)] * 1000, rate


def numbered(prefix: str, count: int = sys.maxsize) -> Iterator[str]:
    """Names without end, or so many."""
    return (f"{prefix}-{number:06}" for number in range(count))


def run() -> dict[str, Any]:
    """All measurements; the names carry the units."""
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as directory, Dray(["server"], Path(directory)) as server:
        uvloop.run(create_pods(server, 16, numbered("list", LISTED)))
        results["list_5000_pods_ms"] = uvloop.run(list_pods(server))
        results["gets_per_second_16"] = uvloop.run(get_pod(server, 16, "list-000000"))
        p99, rate = uvloop.run(fan_out(server))
        results["watch_100_p99_ms"], results["watched_writes_per_second"] = p99, rate
        for connections in (16, 64):
            names = numbered(f"load{connections}")
            rate = uvloop.run(create_pods(server, connections, names, SECONDS))
            results[f"creates_per_second_{connections}"] = rate
    with tempfile.TemporaryDirectory() as directory:
        results |= measure_state(Path(directory))
    return {name: round(value, 2) for name, value in results.items()}


def measure_state(directory: Path) -> dict[str, float]:
    """What so many stored pods cost: memory in the process that took them, and time to start with them."""
    with Dray(["server"], directory) as server:
        uvloop.run(create_pods(server, 16, numbered("first", 200)))
        before = server.memory()
        uvloop.run(create_pods(server, 64, numbered("pod", STORED)))
        per_pod = (server.memory() - before) / STORED
    with Dray(["server"], directory) as server:
        return {"memory_bytes_per_pod": per_pod, "start_with_50000_objects_seconds": server.seconds}


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
