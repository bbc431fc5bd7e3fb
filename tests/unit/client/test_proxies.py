"""Through proxies: an HTTP one with CONNECT, and a SOCKS5 one with and without a password."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from dray.api.kinds import NAMESPACES
from dray.client.http import HttpClient
from dray.client.kubeconfig import Connection, load_kubeconfig
from dray.server.instance import Instance, ServerSettings

Hello = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[tuple[str, int] | None]]


async def connect_hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, int] | None:
    """What a client of an HTTP proxy asks for."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    method, target, _ = head.split(" ", 2)
    if method != "CONNECT":
        writer.write(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
        return None
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    host, _, port = target.rpartition(":")
    return host, int(port)


async def socks_hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, int] | None:
    """What a client of a SOCKS5 proxy asks for; one that offers a password must have the right one."""
    _, count = await reader.readexactly(2)
    (method,) = await reader.readexactly(count)
    writer.write(bytes([5, method]))
    if method == 2:
        _, length = await reader.readexactly(2)
        user = await reader.readexactly(length)
        password = await reader.readexactly((await reader.readexactly(1))[0])
        writer.write(bytes([1, 0 if (user, password) == (b"jane", b"secret") else 1]))
    _, _, _, kind = await reader.readexactly(4)
    assert kind == 3, "names are for the proxy to resolve"
    host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
    port = int.from_bytes(await reader.readexactly(2), "big")
    known = host in ("127.0.0.1", "inside.example")
    writer.write(bytes([5, 0 if known else 4, 0, 1]) + bytes(6))
    return ("127.0.0.1", port) if known else None


@contextlib.asynccontextmanager
async def proxy(hello: Hello, asked: list[tuple[str, int]]) -> AsyncIterator[int]:
    """A proxy on a free port; `asked` gets where it was asked to go."""
    tasks: set[asyncio.Task[None]] = set()
    writers: list[asyncio.StreamWriter] = []

    async def pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                sink.write(data)
        sink.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        writers.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            target = await hello(reader, writer)
            if target is not None:
                asked.append(target)
                there, back = await asyncio.open_connection(*target)
                writers.append(back)
                await asyncio.gather(pass_on(reader, back), pass_on(there, writer))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in writers:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)


@contextlib.asynccontextmanager
async def serving(tmp_path: Path) -> AsyncIterator[Connection]:
    instance = Instance(ServerSettings(directory=tmp_path / "state", port=0))
    try:
        await instance.start()
        yield load_kubeconfig([instance.kubeconfig])
    finally:
        await instance.stop(0.1)


@pytest.mark.parametrize(
    ("hello", "scheme", "login"),
    [(connect_hello, "http", ""), (socks_hello, "socks5", ""), (socks_hello, "socks5h", "jane:secret@")],
)
async def test_requests_go_through_the_proxy(tmp_path: Path, hello: Hello, scheme: str, login: str) -> None:
    asked: list[tuple[str, int]] = []
    async with (
        serving(tmp_path) as connection,
        proxy(hello, asked) as port,
        HttpClient(replace(connection, proxy=f"{scheme}://{login}127.0.0.1:{port}")) as client,
    ):
        assert (await client.list(NAMESPACES)).items
    assert connection.server.endswith(f":{asked[0][1]}")


async def test_a_name_that_only_the_proxy_knows(tmp_path: Path) -> None:
    async with serving(tmp_path) as connection, proxy(socks_hello, []) as at:
        port = connection.server.rpartition(":")[2]
        hidden = replace(connection, server=f"https://inside.example:{port}", server_name="127.0.0.1")
        async with HttpClient(replace(hidden, proxy=f"socks5://127.0.0.1:{at}")) as client:
            assert (await client.list(NAMESPACES)).items


@pytest.mark.parametrize(
    ("target", "login", "message"),
    [("nowhere.example", "", "host unreachable"), ("127.0.0.1", "jane:wrong@", "refuses the user name or password")],
)
async def test_what_a_proxy_refuses_is_said(target: str, login: str, message: str) -> None:
    async with proxy(socks_hello, []) as port:
        wrong = Connection(server=f"https://{target}", proxy=f"socks5://{login}127.0.0.1:{port}")
        async with HttpClient(wrong) as client:
            with pytest.raises(OSError, match=message):
                await client.list(NAMESPACES)


@pytest.mark.parametrize("scheme", ["http", "socks5"])
async def test_a_proxy_that_is_not_there(scheme: str) -> None:
    async with HttpClient(Connection(server="https://127.0.0.1:2", proxy=f"{scheme}://127.0.0.1:1")) as client:
        with pytest.raises(OSError, match=r"the proxy 127\.0\.0\.1:1"):
            await client.list(NAMESPACES)
