"""Thousands of watches that nobody sends anything to cost little, and all hear of the one change that comes."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from patience import PATIENCE
from server_process import ServerProcess

MAPS = "/api/v1/namespaces/kube-public/secrets"
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


async def watch_idly(process: ServerProcess, number: int) -> None:
    before = memory(process.pid)
    watches = [await watch(process) for _ in range(number)]
    assert (memory(process.pid) - before) / number < MOST_BYTES_EACH
    await create(process, "seen-by-all")
    async with asyncio.timeout(PATIENCE):
        for reader, _ in watches:
            assert b"seen-by-all" in await reader.readuntil(b"}\n")
    for _, writer in watches:
        writer.close()


@pytest.mark.parametrize("number", [1_000, pytest.param(5_000, marks=pytest.mark.soak)])
async def test_idle_watches(tmp_path: Path, number: int) -> None:
    with ServerProcess(tmp_path / "state", "--insecure-http") as process:
        await watch_idly(process, number)
        assert process.terminate() == 0
