"""One question to a webhook: a POST over TLS, answered within a number of seconds, bytes and pieces."""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import ssl
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from dray.api.recent import Newest
from dray.client.trust import trusting
from dray.process.own_loop import OwnLoop
from dray.server.webhooks.targets import Target

if TYPE_CHECKING:
    import aiohttp

__all__ = ["MOST_BYTES", "WebhookClient", "WebhookFailed"]

MOST_BYTES: Final = 8 * 1024 * 1024
"""Of an answer: a patch of the largest object that is taken, in base64."""
MOST_PIECES: Final = 20_000
"""Chunks of an answer: each takes some time, however small it is."""
MOST_TRUSTED: Final = 64
"""How many CA bundles are remembered."""
HEADERS: Final = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "User-Agent": "dray-admission",
}


class WebhookFailed(Exception):
    """A webhook could not be asked, or did not answer; the message says why."""


class WebhookClient:
    """Asks webhooks, on an event loop of its own. Connections are kept between questions, and there is no limit to
    those in use: who hangs must not take up what somebody else waits for.

    What speaks HTTP is loaded with the first question: it takes a while, and hardly any server needs it."""

    def __init__(self) -> None:
        self._loop = OwnLoop("webhooks")
        self._http: Any = None
        self._session: aiohttp.ClientSession | None = None
        self._trust: Newest[str, ssl.SSLContext] = Newest(MOST_TRUSTED)

    async def post(self, target: Target, ca_bundle: str, body: bytes, seconds: float) -> bytes:
        """The answer of a webhook, which is trusted if the bundle (base64 of PEM) says so. Raises WebhookFailed."""
        return await self._loop.run(self._asked(target, ca_bundle, body, seconds))

    async def _asked(self, target: Target, ca_bundle: str, body: bytes, seconds: float) -> bytes:
        if self._http is None:
            self._http = await asyncio.to_thread(import_module, "aiohttp")
        trust = await self._trusted(ca_bundle)
        try:
            async with asyncio.timeout(seconds):
                return await self._post(target, trust, body)
        except TimeoutError:
            raise WebhookFailed(f'Post "{target.url}": no answer within {seconds:g} seconds') from None
        except (self._http.ClientError, OSError, ValueError) as error:
            raise WebhookFailed(f'Post "{target.url}": {_reason(error)}') from None

    async def _post(self, target: Target, trust: ssl.SSLContext, body: bytes) -> bytes:
        session = self._session
        if session is None:
            http = self._http
            session = self._session = http.ClientSession(
                connector=http.TCPConnector(limit=0),
                cookie_jar=http.DummyCookieJar(),
                timeout=http.ClientTimeout(total=None),
                auto_decompress=False,  # what is bounded is what arrives
            )
        assert session is not None
        async with session.post(
            target.url,
            data=body,
            headers=HEADERS | ({"Host": target.server_name} if target.server_name else {}),
            ssl=trust,
            server_hostname=target.server_name or None,
            allow_redirects=False,  # a redirect would show the object to somebody who was not configured
        ) as response:
            if response.status != 200:
                raise WebhookFailed(f'Post "{target.url}": the webhook answered {response.status}, not 200')
            return await _read_all(response.content)

    async def _trusted(self, bundle: str) -> ssl.SSLContext:
        known = self._trust.get(bundle)
        if known is None:
            # Reading the system's authorities takes a while.
            known = self._trust.keep(bundle, await asyncio.to_thread(_context, bundle))
        return known

    async def close(self) -> None:
        """Closes connections."""
        session, self._session = self._session, None
        if session is not None:
            await self._loop.run(session.close())
        await self._loop.close()


def _reason(error: BaseException) -> str:
    """What went wrong, without what is known already or means nothing to people."""
    cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {cause.verify_message}"
    if isinstance(cause, ConnectionError) and cause.errno:
        return os.strerror(cause.errno)
    return str(cause) or type(cause).__name__


def _context(bundle: str) -> ssl.SSLContext:
    try:
        return trusting(base64.b64decode(bundle).decode("ascii") if bundle else None)
    except (binascii.Error, ValueError, ssl.SSLError) as error:
        raise WebhookFailed(f"the CA bundle cannot be used: {error}") from None


async def _read_all(content: aiohttp.StreamReader) -> bytes:
    """An answer to its end, piece by piece. Raises WebhookFailed if it is too long, or the pieces are too many."""
    answer = bytearray()
    pieces = 0
    async for piece, _ in content.iter_chunks():
        answer += piece
        pieces += 1
        if len(answer) > MOST_BYTES:
            raise WebhookFailed(f"the answer is larger than {MOST_BYTES} bytes")
        if pieces > MOST_PIECES:
            raise WebhookFailed(f"the answer comes in more than {MOST_PIECES} pieces")
    return bytes(answer)
