"""A policy behind HTTPS: one POST for each question, JSON both ways. The messages are described in docs/eviction.md."""

from __future__ import annotations

import ssl
from typing import Any, Final, Literal

import aiohttp
import msgspec

from dray.api import codec
from dray.api.generated.core import Pod
from dray.api.times import Time, moment_at
from dray.client.trust import trusting
from dray.eviction.policy import Decision, EvictionCause, Force, Never, Now, PolicyState, Wait
from dray.eviction.settings import SettingsError, Webhook
from dray.files import home
from dray.process.own_loop import OwnLoop

VERSION: Final = "dray.dev/v1"
MAX_ANSWER: Final = 1 << 20
HEADERS: Final = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "Accept-Encoding": "identity",
}
MAX_WAIT: Final = 7 * 24 * 3600.0


class WebhookError(Exception):
    """The webhook did not answer, or not in a way that can be understood."""


class _Answer(msgspec.Struct, kw_only=True, rename="camel"):
    """What a webhook says."""

    decision: Literal["now", "wait", "never", "force"]
    wait_seconds: float | None = None
    reason: str = ""
    respect_budgets: bool = False


class WebhookDecider:
    """Asks over the network, on an event loop of its own: an answer in a million crumbs is work for nobody else.

    Connections are kept between questions.
    """

    counts_siblings = True
    may_block = True

    def __init__(self, webhook: Webhook) -> None:
        """Reads the CA bundle. Raises SettingsError if it cannot be used, or the URL is none of HTTPS."""
        self.name = webhook.name
        self.follows_up = webhook.follows_up
        self._url = webhook.url
        self._ssl = _trust(webhook)
        self._loop = OwnLoop("eviction webhook")
        self._session: aiohttp.ClientSession | None = None

    async def decide(self, pod: Pod, cause: EvictionCause, state: PolicyState, now: float) -> Decision:
        """What the webhook says. Raises WebhookError."""
        body = msgspec.json.encode(question(pod, cause, state, now))
        return read_answer(await self._loop.run(self._asked(body)), now)

    async def _asked(self, body: bytes) -> bytes:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=self._ssl, limit=64),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,  # what is bounded is what arrives
            )
        try:
            # A redirect would send the pod to somebody who was not configured.
            async with self._session.post(self._url, data=body, headers=HEADERS, allow_redirects=False) as response:
                if response.status != 200:
                    raise WebhookError(f"{self._url} answered {response.status}, not 200")
                return await _read_all(response.content)
        except (aiohttp.ClientError, OSError) as error:
            raise WebhookError(f"{self._url}: {error or type(error).__name__}") from error

    async def close(self) -> None:
        """Closes connections."""
        session, self._session = self._session, None
        if session is not None:
            await self._loop.run(session.close())
        await self._loop.close()


async def _read_all(content: aiohttp.StreamReader) -> bytes:
    """An answer to its end, in however many pieces it comes. Raises WebhookError if there is no end in sight."""
    answer = bytearray()
    async for piece in content.iter_any():
        answer += piece
        if len(answer) > MAX_ANSWER:
            raise WebhookError(f"the answer is larger than {MAX_ANSWER} bytes")
    return bytes(answer)


def question(pod: Pod, cause: EvictionCause, state: PolicyState, now: float) -> dict[str, Any]:
    """What a webhook is asked, as plain values."""
    siblings = None if state.siblings is None else msgspec.to_builtins(state.siblings)
    return {
        "apiVersion": VERSION,
        "kind": "EvictionReview",
        "request": {
            "now": _moment(now),
            "cause": {**msgspec.to_builtins(cause), "due": _moment(cause.due)},
            "state": {
                "asked": state.asked,
                "since": _moment(state.since),
                "refused": state.refused,
                "siblings": siblings,
            },
            "pod": {"apiVersion": "v1", "kind": "Pod", **codec.to_builtins(pod)},
        },
    }


def read_answer(text: bytes, now: float) -> Decision:
    """What an answer means: `{"response": {"decision": …}}`. Raises WebhookError."""
    try:
        answer = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        found = msgspec.json.decode(answer["response"], type=_Answer)
    except KeyError:
        raise WebhookError("the answer has no field response") from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise WebhookError(f"the answer cannot be understood: {error}") from None
    match found.decision:
        case "now":
            return Now(found.reason, respect_budgets=found.respect_budgets)
        case "never":
            return Never(found.reason)
        case "force":
            return Force(found.reason)
    if found.wait_seconds is None or not 0 <= found.wait_seconds <= MAX_WAIT:
        raise WebhookError(f"response.waitSeconds must be a number of seconds from 0 to {MAX_WAIT:.0f}")
    return Wait(now + found.wait_seconds, found.reason)


def _moment(seconds: float) -> str:
    return str(Time.of(moment_at(seconds)))


def _certificates(file: str) -> str:
    """Comments between certificates may have any letters."""
    return home.expand(file).read_text("ascii", "ignore")


def _trust(webhook: Webhook) -> ssl.SSLContext:
    if not webhook.url.startswith("https://"):
        raise SettingsError(f"eviction policy {webhook.name}: url must start with https://, not {webhook.url!r}")
    try:
        return trusting(_certificates(webhook.ca_file) if webhook.ca_file else None)
    except (OSError, ValueError, ssl.SSLError) as error:
        raise SettingsError(f"eviction policy {webhook.name}: caFile {webhook.ca_file}: {error}") from error
