"""The way through a SOCKS5 proxy (RFC 1928), with a user name and password if it wants them (RFC 1929)."""

from __future__ import annotations

import asyncio
import socket
from typing import Final

from yarl import URL

DEFAULT_PORT: Final = 1080

_NO_LOGIN, _LOGIN = 0, 2
_ANSWERS: Final = {
    1: "general failure",
    2: "not allowed by its rules",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "time to live expired",
    7: "command not supported",
    8: "address type not supported",
}


async def connect_through(sock: socket.socket, proxy: URL, host: str, port: int) -> None:
    """Makes a socket that is connected to the proxy one to `host`, whose name that resolves. Raises OSError."""
    loop = asyncio.get_running_loop()
    login = bool(proxy.user)
    await loop.sock_sendall(sock, bytes([5, 1, _LOGIN if login else _NO_LOGIN]))
    _, method = await _receive(sock, 2)
    if method == _LOGIN and login:
        user, password = (proxy.user or "").encode(), (proxy.password or "").encode()
        await loop.sock_sendall(sock, bytes([1, len(user)]) + user + bytes([len(password)]) + password)
        if (await _receive(sock, 2))[1] != 0:
            raise ConnectionError("it refuses the user name or password")
    elif method != _NO_LOGIN:
        raise ConnectionError("it wants another login than the kubeconfig has")
    name = host.encode("idna")
    await loop.sock_sendall(sock, bytes([5, 1, 0, 3, len(name)]) + name + port.to_bytes(2, "big"))
    _, answer, _, kind = await _receive(sock, 4)
    if answer:
        raise ConnectionError(f"it cannot reach {host}: {_ANSWERS.get(answer, f'error {answer}')}")
    length = {1: 4, 4: 16}.get(kind) or (await _receive(sock, 1))[0]
    await _receive(sock, length + 2)  # where the proxy listens itself: of no use


async def _receive(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = await asyncio.get_running_loop().sock_recv(sock, count - len(data))
        if not more:
            raise ConnectionError("it ended the connection in the middle of its answer")
        data += more
    return data
