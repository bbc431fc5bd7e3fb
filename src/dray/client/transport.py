"""Requests to an API server over HTTP(S): connections that are kept, credentials, retries, failures as ApiError."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlencode

import aiohttp
from msgspec.structs import replace
from yarl import URL

from dray.api import codec
from dray.api.meta import Status
from dray.api.status import ApiError
from dray.client.connector import Connector
from dray.client.credentials import Credential, GivenToken
from dray.client.exec_credential import CredentialError, ExecCredential
from dray.client.kubeconfig import Connection, KubeconfigError
from dray.client.retries import pause_before_retry
from dray.client.trust import tell_certificate, trusting

JSON = "application/json"
REQUEST_SECONDS = 60.0
CONNECT_SECONDS = 10.0
SHOWN_BYTES = 500

Sleep = Callable[[float], Awaitable[None]]
Warn = Callable[[str], None]


def _silent(_text: str) -> None:
    """Nobody listens."""


class Transport:
    """One connection pool to one server, as one user. A proxy is used if the connection names one, whatever the
    environment says."""

    def __init__(
        self,
        connection: Connection,
        *,
        agent: str = "dray",
        sleep: Sleep = asyncio.sleep,
        warn: Warn = _silent,
        credential: Credential | None = None,
    ) -> None:
        """`warn` hears the texts of Warning headers; a `credential` is used instead of the connection's token.

        Raises KubeconfigError for certificates that cannot be used.
        """
        self._connection = connection
        self._agent = agent
        self._sleep = sleep
        self._warn = warn
        self._credential = credential or _credential(connection)
        self._tls = _tls_context(connection) if connection.server.startswith("https:") else None
        self._certificate: tuple[bytes, bytes] | None = None
        self._proxy = URL(connection.proxy) if connection.proxy else None
        self._session: aiohttp.ClientSession | None = None

    async def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        *,
        retry: bool = True,
        accept: str = JSON,
    ) -> bytes:
        """The body of a good answer. Raises ApiError for any other, OSError (TimeoutError) if there is none."""
        attempt = 0
        renewed = False
        while True:
            attempt += 1
            token = await self._credential.current()
            code, headers, data = await self._send(
                method, path, query or {}, body, content_type, token=token, accept=accept
            )
            if code < 400:
                return data
            if code == HTTPStatus.UNAUTHORIZED and not renewed and await self._credential.renew(token):
                renewed = True
                continue
            pause = pause_before_retry(attempt, code, headers, reads=method == "GET") if retry else None
            if pause is None:
                raise self._refused(failure_of(data, code))
            await self._sleep(pause)

    @contextlib.asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str], patience: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """The chunks of an answer that goes on; `patience` is how many quiet seconds mean that the server is gone."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=patience)
        token = await self._credential.current()
        try:
            async with self._open("GET", path, query, None, "", token=token, timeout=timeout) as response:
                if response.status >= 400:
                    if response.status == HTTPStatus.UNAUTHORIZED:
                        await self._credential.renew(token)
                    raise failure_of(await response.read(), response.status)
                yield response.content.iter_any()
        except aiohttp.ClientError as error:
            raise self._broken(error) from error

    async def close(self) -> None:
        """Ends all connections; none is left when this returns."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes | None,
        content_type: str,
        *,
        token: str,
        accept: str,
    ) -> tuple[int, Mapping[str, str], bytes]:
        timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS, sock_connect=CONNECT_SECONDS)
        try:
            async with self._open(
                method, path, query, body, content_type, token=token, timeout=timeout, accept=accept
            ) as response:
                for text in response.headers.getall("Warning", ()):
                    self._warn(_warning_text(text))
                return response.status, response.headers, await response.read()
        except aiohttp.ClientError as error:
            raise self._broken(error) from error

    def _open(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes | None,
        content_type: str,
        *,
        token: str,
        timeout: aiohttp.ClientTimeout,
        accept: str = JSON,
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=Connector(self._proxy if self._is_socks else None))
        headers = [("Accept", accept), ("User-Agent", self._agent), *self._connection.headers]
        if body is not None:
            headers.append(("Content-Type", content_type))
        if token:
            headers.append(("Authorization", f"Bearer {token}"))
        text = f"{self._connection.server}{path}"
        url = URL(f"{text}?{urlencode(query)}" if query else text, encoded=True)
        return self._session.request(
            method,
            url,
            data=body,
            headers=headers,
            timeout=timeout,
            allow_redirects=False,
            server_hostname=self._connection.server_name or None,
            ssl=self._current_tls() or False,
            proxy=None if self._is_socks else self._proxy,
        )

    @property
    def _is_socks(self) -> bool:
        return self._proxy is not None and self._proxy.scheme.startswith("socks5")

    def _current_tls(self) -> ssl.SSLContext | None:
        """With the certificate of the credential, if that has one; connections with another are not used any more."""
        certificate = self._credential.certificate if isinstance(self._credential, ExecCredential) else None
        if self._tls is not None and certificate is not None and certificate != self._certificate:
            try:
                self._tls = _tls_context(replace(self._connection, certificate=certificate[0], key=certificate[1]))
            except KubeconfigError as error:
                raise CredentialError(str(error)) from None
            self._certificate = certificate
        return self._tls

    def _broken(self, error: aiohttp.ClientError) -> OSError:
        return ConnectionError(f"{self._connection.server}: {_why(error)}{self._doubt(error)}")

    def _refused(self, error: ApiError) -> ApiError:
        certificate = self._connection.certificate
        if error.code != HTTPStatus.UNAUTHORIZED or certificate is None:
            return error
        return ApiError(error.code, error.reason, f"{error}{tell_certificate(certificate)}")

    def _doubt(self, error: aiohttp.ClientError) -> str:
        """What may have made the server close a connection: dray's refuses certificates before it can say why."""
        if not _is_closed(error):
            return ""
        if self._tls is None:
            return " (does it speak https?)"
        return tell_certificate(self._connection.certificate) if self._connection.certificate is not None else ""


def _is_closed(error: aiohttp.ClientError) -> bool:
    """Whether the other side has closed a connection without a word."""
    if isinstance(error, aiohttp.ClientOSError) and error.errno in (errno.ECONNRESET, errno.EPIPE):
        return True
    return isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientConnectionResetError)


def _why(error: aiohttp.ClientError) -> str:
    """What went wrong, without what only the library that says it can use."""
    if isinstance(error, aiohttp.ClientConnectorError) and (number := error.os_error.errno):
        cause = error.os_error
        is_of_the_system = not isinstance(cause, ssl.SSLError | socket.gaierror)
        told = (os.strerror(number) if is_of_the_system else cause.strerror or str(cause)).lower()
        is_of_proxy = isinstance(error, aiohttp.ClientProxyConnectionError)
        return f"the proxy {error.host}:{error.port}: {told}" if is_of_proxy else told
    return "it closed the connection" if _is_closed(error) else str(error) or type(error).__name__


def _credential(connection: Connection) -> Credential:
    return GivenToken(connection) if connection.program is None else ExecCredential(connection)


def _tls_context(connection: Connection) -> ssl.SSLContext:
    try:
        authority = connection.authority.decode("ascii") if connection.authority is not None else None
        context = trusting(authority)
        if connection.certificate is not None and connection.key is not None:
            with _as_file(connection.certificate + b"\n" + connection.key) as path:
                context.load_cert_chain(path)
    except (ssl.SSLError, ValueError) as error:
        raise KubeconfigError(f"{connection.server}: the certificates cannot be used: {error}") from None
    if not connection.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


@contextlib.contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """A file that only this user can read, for OpenSSL, which takes client keys from nowhere else."""
    handle, name = tempfile.mkstemp(prefix="dray-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        yield name
    finally:
        Path(name).unlink()


def failure_of(data: bytes, code: int = 0) -> ApiError:
    """What a failure says of itself, be it a Status or a page of some proxy; `code` is that of the answer."""
    with contextlib.suppress(codec.DecodeError):
        status = codec.read_json(data, Status, find_duplicates=False).obj
        if status is not None and status.kind == "Status" and (code or status.code):
            return ApiError.of(replace(status, code=code or status.code))
    text = data[:SHOWN_BYTES].decode(errors="replace").strip()
    phrase = HTTPStatus(code).phrase if code in _CODES else "Unknown"
    return ApiError(code, phrase.replace(" ", ""), text or phrase)


_CODES = frozenset(int(status) for status in HTTPStatus)


def _warning_text(header: str) -> str:
    """The text of a header such as `299 - "this is deprecated"`."""
    _, _, quoted = header.partition('"')
    text, _, _ = quoted.rpartition('"')
    return (text or header).replace('\\"', '"').replace("\\\\", "\\")
