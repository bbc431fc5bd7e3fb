"""A connection to a kubelet: TLS with the server's own client certificate, one request, one answer."""

from __future__ import annotations

import asyncio
import hashlib
import os
import ssl
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Final
from weakref import WeakValueDictionary

import httptools
import msgspec

from dray.process.http import Duplex, SocketDuplex
from dray.server import errors
from dray.server.kubelets.questions import Kubelet

CONNECT_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 30.0
AT_ONCE: Final = 4
LONGEST_HEAD: Final = 64 * 1024
LONGEST_REFUSAL: Final = 64 * 1024


class KubeletTrust(msgspec.Struct, frozen=True):
    """How the server shows itself to kubelets (files, PEM), and who signs their certificates, if that is known."""

    certificate: str
    key: str
    authority: str = ""


class Conversation:
    """A kubelet that has answered: with what, and what it says from then on."""

    def __init__(self, head: _Head, duplex: Duplex, rest: bytes) -> None:
        self.code = head.code
        self.headers = head.headers
        self._duplex = duplex
        self._rest = rest
        self._parser = head.parser
        self._head = head

    def header(self, name: str) -> str:
        """A header's value, empty if absent; `name` in lower case."""
        return next((value for key, value in self.headers if key.lower() == name), "")

    async def body(self) -> AsyncIterator[bytes]:
        """What the answer holds, in pieces as they come. Raises OSError."""
        head = self._head
        while True:
            for piece in head.take():
                yield piece
            if head.is_over:
                return
            data = await self._duplex.read()
            if not data:
                return
            try:
                head.parser.feed_data(data)
            except httptools.HttpParserError:
                raise ConnectionAbortedError(103, "the kubelet's answer cannot be read") from None

    async def refusal(self) -> bytes:
        """The body of an answer that is no conversation, cut off where it gets too long."""
        whole = b""
        async for piece in self.body():
            whole += piece
            if len(whole) > LONGEST_REFUSAL:
                break
        return whole[:LONGEST_REFUSAL]

    def duplex(self) -> Duplex:
        """What is left of the connection after an answer 101."""
        return _Remaining(self._duplex, self._rest)

    def close(self) -> None:
        """Ends the connection."""
        self._duplex.close()


async def ask(
    kubelet: Kubelet, trust: KubeletTrust, method: str, uri: str, headers: tuple[tuple[str, str], ...]
) -> Conversation:
    """Sends a request to a kubelet and reads the head of its answer. Raises ApiError if that is not to be had."""
    duplex = await _connect(kubelet, trust)
    try:
        lines = [f"{method} {uri} HTTP/1.1", f"Host: {kubelet.node}", "User-Agent: dray", "Accept: */*"]
        lines += [f"{name}: {value}" for name, value in headers]
        if method == "POST":
            lines.append("Content-Length: 0")
        async with asyncio.timeout(ANSWER_SECONDS):
            await duplex.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace"))
            return await _read_head(duplex)
    except (OSError, TimeoutError, httptools.HttpParserError) as error:
        duplex.close()
        raise _unreachable(kubelet, error) from None
    except BaseException:
        duplex.close()
        raise


class _Connecting:
    """Lets a few connections to a node be made at a time: handshakes take time, and many may be wanted at once.

    Those to other nodes go on, for a node that does not answer holds up its own alone.
    """

    def __init__(self) -> None:
        self._of: WeakValueDictionary[tuple[int, str], asyncio.Semaphore] = WeakValueDictionary()

    def of(self, node: str) -> asyncio.Semaphore:
        key = (id(asyncio.get_running_loop()), node)
        found = self._of.get(key)
        if found is None:
            found = self._of[key] = asyncio.Semaphore(AT_ONCE)
        return found


_connecting: Final = _Connecting()


async def _connect(kubelet: Kubelet, trust: KubeletTrust) -> Duplex:
    """Tries the addresses of a node in order. Raises ApiError."""
    problem: Exception = OSError("it has no address")
    for host in kubelet.hosts:
        context = _context(trust, pinned=bool(kubelet.fingerprint))
        try:
            async with _connecting.of(kubelet.node), asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(
                    host, kubelet.port, ssl=context, server_hostname=host if context.check_hostname else ""
                )
        except (OSError, TimeoutError) as error:
            problem = error
            continue
        if kubelet.fingerprint:
            shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            if f"sha256:{hashlib.sha256(shown or b'').hexdigest()}" != kubelet.fingerprint:
                writer.close()
                raise _unreachable(kubelet, OSError("its certificate is not the one that the Node object names"))
        return SocketDuplex(reader, writer)
    raise _unreachable(kubelet, problem)


def _context(trust: KubeletTrust, *, pinned: bool) -> ssl.SSLContext:
    """What is made of the files as they are now: reading them takes milliseconds, and there may be many connections."""
    files = (trust.certificate, trust.key, trust.authority)
    return _context_of(trust, pinned, tuple(os.stat(file).st_mtime_ns for file in files if file))


@lru_cache(maxsize=8)
def _context_of(trust: KubeletTrust, pinned: bool, _written: tuple[int, ...]) -> ssl.SSLContext:
    """A node that names its certificate is known by that; others by their authority, if there is one to ask."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if pinned or not trust.authority:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        context.load_verify_locations(trust.authority)
    context.load_cert_chain(trust.certificate, trust.key)
    return context


def _unreachable(kubelet: Kubelet, error: Exception) -> errors.ApiError:
    why = str(error) or type(error).__name__
    where = ", ".join(f"{host}:{kubelet.port}" for host in kubelet.hosts)
    return errors.internal(f"cannot reach the kubelet of node {kubelet.node} ({where}): {why}")


class _Head:
    """What the parser tells of an answer."""

    def __init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.headers: list[tuple[str, str]] = []
        self.code = 0
        self.is_complete = False
        self.is_over = False
        self._pieces: list[bytes] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        self.code = self.parser.get_status_code()
        self.is_complete = True

    def on_body(self, data: bytes) -> None:
        self._pieces.append(data)

    def on_message_complete(self) -> None:
        self.is_over = True

    def take(self) -> list[bytes]:
        taken, self._pieces = self._pieces, []
        return taken


async def _read_head(duplex: Duplex) -> Conversation:
    """Raises OSError or HttpParserError."""
    head, size = _Head(), 0
    while not head.is_complete:
        data = await duplex.read()
        size += len(data)
        if not data or size > LONGEST_HEAD:
            raise ConnectionAbortedError(103, "it ended the connection without an answer")
        try:
            head.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            return Conversation(head, duplex, data[upgrade.args[0] :])
    return Conversation(head, duplex, b"")


class _Remaining:
    """A connection of which something was read already."""

    def __init__(self, duplex: Duplex, rest: bytes) -> None:
        self._duplex = duplex
        self._rest = rest

    async def read(self) -> bytes:
        if self._rest:
            rest, self._rest = self._rest, b""
            return rest
        return await self._duplex.read()

    async def write(self, data: bytes) -> None:
        await self._duplex.write(data)

    async def write_end(self) -> None:
        await self._duplex.write_end()

    def close(self) -> None:
        self._duplex.close()
