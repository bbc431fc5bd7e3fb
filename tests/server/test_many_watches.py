"""A thousand watches that nobody sends anything to cost little, and all hear of the one change that comes."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from server_process import ServerProcess

MAPS = "/api/v1/namespaces/default/configmaps"
WATCHES = 1_000
MOST_BYTES_EACH = 64 * 1024


def memory(pid: int) -> int:
    """The bytes that a process holds for itself."""
    found = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


async def watch(process: ServerProcess) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", process.port)
    token = process.client.token
    writer.write(f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    return reader, writer


async def create(process: ServerProcess, name: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", process.port)
    body = f'{{"metadata":{{"name":"{name}"}}}}'
    head = f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {process.client.token}\r\nConnection: close\r\n"
    writer.write(f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    assert (await reader.read()).startswith(b"HTTP/1.1 201")
    writer.close()


async def scenario(process: ServerProcess) -> None:
    before = memory(process.pid)
    watches = [await watch(process) for _ in range(WATCHES)]
    assert (memory(process.pid) - before) / WATCHES < MOST_BYTES_EACH
    await create(process, "seen-by-all")
    async with asyncio.timeout(20):
        for reader, _ in watches:
            assert b"seen-by-all" in await reader.readuntil(b"}\n")
    for _, writer in watches:
        writer.close()


def test_a_thousand_idle_watches(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "state", "--insecure-http") as process:
        asyncio.run(scenario(process))
        assert process.terminate()[1] < 5
