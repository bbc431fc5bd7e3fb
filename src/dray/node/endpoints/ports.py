"""Connections to the ports of a pod: of this machine, or of the pod's own network."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import socket
from typing import Final

from dray.node.runtime.console import Console, NotThere
from dray.process.http import Duplex, SocketDuplex
from dray.process.own_thread import on_own_thread

SECONDS: Final = 10.0
HELD_AT_MOST: Final = 16 * 1024
"""Bytes that are read ahead of a client that does not read: a client may have many connections."""
NEW_NETWORK: Final = 0x40000000
HOSTS: Final = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))


async def connect(console: Console, uid: str, port: int) -> Duplex:
    """A connection to a port at which a container of the pod listens. Raises OSError.

    Only sockets are made in threads: a container that listens and accepts nobody would keep one for as long as somebody
    tries, and there are few.
    """
    try:
        network = await asyncio.to_thread(console.network, uid)
    except NotThere as error:
        raise ConnectionRefusedError(errno.ECONNREFUSED, str(error)) from None
    try:
        problem: OSError | None = None
        for family, host in HOSTS:
            made = await on_own_thread(_socket_in, network, family)
            try:
                async with asyncio.timeout(SECONDS):
                    await asyncio.get_running_loop().sock_connect(made, (host, port))
            except BaseException as error:
                made.close()
                if not isinstance(error, OSError):  # TimeoutError is one
                    raise
                problem = problem or error
            else:
                return SocketDuplex(*await asyncio.open_connection(sock=made, limit=HELD_AT_MOST))
        assert problem is not None
        raise problem
    finally:
        if network is not None:
            os.close(network)


def _socket_in(network: int | None, family: int) -> socket.socket:
    """A socket of a network namespace, wherever it is used. The thread is in there from now on, and of no other use."""
    if network is not None and _libc.setns(network, NEW_NETWORK):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setblocking(False)
    return made


_libc: Final = ctypes.CDLL(None, use_errno=True)
