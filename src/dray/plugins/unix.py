"""gRPC over Unix sockets: channels for the node, servers for drivers."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from urllib.parse import quote

import grpc
import grpc.aio

LONGEST_PATH: Final = 107
"""Bytes of a socket's path; the kernel keeps 108 with the zero at the end."""

_CHANNEL_OPTIONS: Final = (
    ("grpc.default_authority", "localhost"),
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2000),
    # Channels to one path share a connection unless told not to; a new instance of a driver must be dialled anew.
    ("grpc.use_local_subchannel_pool", 1),
)
_SERVER_OPTIONS: Final = (("grpc.so_reuseport", 0),)


class SocketError(Exception):
    """A socket cannot be used as asked. The message names it, and says why."""


def channel(path: str | os.PathLike[str]) -> grpc.aio.Channel:
    """A channel to a socket; it connects at the first call. Close it."""
    return grpc.aio.insecure_channel(_address(path), options=_CHANNEL_OPTIONS)


async def listen(path: Path, handlers: Iterable[grpc.GenericRpcHandler]) -> grpc.aio.Server:
    """A started server on a socket. What a crashed process left there is replaced. Raises SocketError."""
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise SocketError(f"{path} is longer than {LONGEST_PATH} bytes, which no Unix socket can be")
    server = grpc.aio.server(options=_SERVER_OPTIONS)
    server.add_generic_rpc_handlers(tuple(handlers))
    try:
        remove_stale(path)
        server.add_insecure_port(_address(path))
    except (OSError, RuntimeError) as error:
        await server.stop(None)
        reason = error.strerror if isinstance(error, OSError) else _why_not(path)
        raise SocketError(f"cannot listen on {path}: {reason}") from None
    await server.start()
    return server


def _address(path: str | os.PathLike[str]) -> str:
    """The socket at a path and no other: gRPC reads an address as a URI, in which `%2f` is a slash."""
    return f"unix:{quote(os.fspath(path))}"


def remove_stale(path: Path) -> None:
    """Removes a socket file that nobody needs any more. Raises FileExistsError if something else is there."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise FileExistsError(17, "there is a file in its place that is not a socket", str(path))
        path.unlink()


def _why_not(path: Path) -> str:
    """gRPC says only that it failed; the usual reasons are easy to see."""
    if not path.parent.is_dir():
        return f"the directory {path.parent} does not exist"
    if not os.access(path.parent, os.W_OK):
        return f"the directory {path.parent} may not be written to"
    return "the address cannot be used"
