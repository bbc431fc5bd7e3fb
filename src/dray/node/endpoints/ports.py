"""Connections to the ports of a pod: of this machine, or of the pod's own network."""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
import threading
from typing import Final

from dray.node.runtime.console import Console
from dray.process.http import Duplex, SocketDuplex

SECONDS: Final = 10.0
NEW_NETWORK: Final = 0x40000000
HOSTS: Final = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))


async def connect(console: Console, uid: str, port: int) -> Duplex:
    """A connection to a port at which a container of the pod listens. Raises OSError."""
    network = await asyncio.to_thread(console.network, uid)
    try:
        connected = await asyncio.to_thread(_connect_in, network, port)
    finally:
        if network is not None:
            os.close(network)
    connected.setblocking(False)
    return SocketDuplex(*await asyncio.open_connection(sock=connected))


def _connect_in(network: int | None, port: int) -> socket.socket:
    """A connected socket of a network namespace: a thread can be in another one than the process."""
    if network is None:
        return _connect(port)
    found: list[socket.socket] = []
    problem: list[OSError] = []

    def work() -> None:
        try:
            if _libc.setns(network, NEW_NETWORK):
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code))
            found.append(_connect(port))
        except OSError as error:
            problem.append(error)

    thread = threading.Thread(target=work, name="port")  # which ends there, and is not used for anything else
    thread.start()
    thread.join()
    if problem:
        raise problem[0]
    return found[0]


def _connect(port: int) -> socket.socket:
    problem: OSError | None = None
    for family, host in HOSTS:
        made = socket.socket(family, socket.SOCK_STREAM)
        try:
            made.settimeout(SECONDS)
            made.connect((host, port))
        except OSError as error:
            made.close()
            problem = problem or error
        else:
            return made
    assert problem is not None
    raise problem


_libc: Final = ctypes.CDLL(None, use_errno=True)
