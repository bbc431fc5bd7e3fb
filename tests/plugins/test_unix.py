"""Servers and channels on Unix sockets."""

from __future__ import annotations

import socket
from pathlib import Path

import grpc
import grpc.aio
import pytest

from dray.plugins import contracts, unix
from dray.plugins.generated import registration_pb2
from patience import PATIENCE


async def get_info(
    _request: registration_pb2.InfoRequest, _context: grpc.aio.ServicerContext
) -> registration_pb2.PluginInfo:
    return registration_pb2.PluginInfo(type=contracts.PLUGIN_TYPE, name="gpu.example.com")


HANDLERS = contracts.services(contracts.answer(contracts.GET_INFO, get_info))


async def ask(path: Path) -> str:
    """The name that a plugin answers with."""
    channel = unix.channel(path)
    try:
        info = await contracts.call(channel, contracts.GET_INFO, registration_pb2.InfoRequest(), timeout=PATIENCE)
        return info.name
    finally:
        await channel.close()


async def test_a_call_reaches_the_server_that_replaced_a_stale_socket(tmp_path: Path) -> None:
    path = tmp_path / "gpu-reg.sock"
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(path))
    server = await unix.listen(path, HANDLERS)
    try:
        assert await ask(path) == "gpu.example.com"
    finally:
        await server.stop(None)


@pytest.mark.parametrize(
    ("name", "why"),
    [("missing/x.sock", "does not exist"), ("x" * 120, "longer than 107 bytes"), ("file", "not a socket")],
)
async def test_a_socket_that_cannot_be(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(unix.SocketError, match=why):
        await unix.listen(tmp_path / name, HANDLERS)
    assert (tmp_path / "file").read_text() == "precious"


@pytest.mark.parametrize("name", ["a%2fb", "a b?c#d", "..%2f.."])
async def test_a_path_means_itself(tmp_path: Path, name: str) -> None:
    """Whoever checked a path has checked what is connected to."""
    directory = tmp_path / name
    directory.mkdir()
    server = await unix.listen(directory / "s", HANDLERS)
    assert (directory / "s").is_socket()
    assert await ask(directory / "s") == "gpu.example.com"
    await server.stop(None)


async def test_a_name_with_signs_leads_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    server = await unix.listen(tmp_path / "outside.sock", HANDLERS)
    channel = unix.channel(tmp_path / "inside" / "..%2foutside.sock")
    with pytest.raises(grpc.aio.AioRpcError):
        await contracts.call(channel, contracts.GET_INFO, registration_pb2.InfoRequest(), timeout=2.0)
    await channel.close()
    await server.stop(None)
