"""Webhooks that decide about evictions, over real TLS: answers in pieces, too long, of the wrong kind, or none."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest

from controller_world import World
from dray.api.generated.core import Pod
from dray.api.meta import ObjectMeta
from dray.controllers.eviction import webhook as eviction_webhook
from dray.controllers.eviction.webhook import MAX_ANSWER, WebhookDecider, WebhookError
from dray.controllers.settings import ControllerSettings
from dray.eviction.policy import Decision, EvictionCause, Never, PolicyState
from dray.eviction.settings import EvictionSettings, FailurePolicy, PolicyChoice, Webhook
from eviction_objects import leaving, rule, use_devices
from eviction_policy_world import DEVICE, eviction_policy_world, until
from patience import PATIENCE
from webhook_certificates import write_certificate

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]

VETO = json.dumps({"response": {"decision": "never", "reason": "the quorum is at stake"}}).encode()


@contextlib.asynccontextmanager
async def webhook(directory: Path, answer: Answer) -> AsyncIterator[Webhook]:
    """A server that reads one question on each connection, and then does as the test says."""
    cert, key = write_certificate(directory)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            await reader.readexactly(int(head.split("content-length: ")[1].split("\r\n")[0]))
            await answer(writer)
        writer.close()

    server = await asyncio.start_server(serve, "localhost", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    try:
        yield Webhook(name="quorum", url=f"https://localhost:{port}/decide", ca_file=str(cert))
    finally:
        server.close()


def head(status: str = "200 OK", **fields: str | int) -> bytes:
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode()


async def send(writer: asyncio.StreamWriter, *pieces: bytes) -> None:
    """Each piece arrives by itself."""
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.02)


async def in_two_pieces(writer: asyncio.StreamWriter) -> None:
    await send(writer, head(Content_Length=len(VETO)) + VETO[:20], VETO[20:])


async def letter_by_letter(writer: asyncio.StreamWriter) -> None:
    await send(writer, head(Content_Length=len(VETO)))
    for letter in VETO:
        writer.write(bytes([letter]))
        await writer.drain()
        await asyncio.sleep(0)


async def in_chunks(writer: asyncio.StreamWriter) -> None:
    chunks = [b"%x\r\n%s\r\n" % (len(part), part) for part in (VETO[:7], VETO[7:30], VETO[30:], b"")]
    await send(writer, head(Transfer_Encoding="chunked"), *chunks)


async def until_the_end(writer: asyncio.StreamWriter) -> None:
    await send(writer, head(), VETO[:10], VETO[10:])


async def ask(hook: Webhook) -> Decision:
    decider = WebhookDecider(hook)
    pod = Pod(metadata=ObjectMeta(name="p", namespace="default", uid="u"))
    try:
        async with asyncio.timeout(PATIENCE):
            return await decider.decide(pod, EvictionCause(kind="node", due=0.0), PolicyState(), 1000.0)
    finally:
        await decider.close()


@pytest.mark.parametrize("answer", [in_two_pieces, letter_by_letter, in_chunks, until_the_end])
async def test_an_answer_is_read_to_its_end_in_however_many_pieces_it_comes(tmp_path: Path, answer: Answer) -> None:
    async with webhook(tmp_path, answer) as hook:
        assert await ask(hook) == Never("the quorum is at stake")


def whole(body: bytes, status: str = "200 OK", **fields: str | int) -> Answer:
    async def answer(writer: asyncio.StreamWriter) -> None:
        await send(writer, head(status, Content_Length=len(body), **fields) + body)

    return answer


async def without_end(writer: asyncio.StreamWriter) -> None:
    writer.write(head())
    while not writer.is_closing():
        writer.write(b" " * 65536)
        await writer.drain()
        await asyncio.sleep(0)  # draining need not wait: the one who asks has its turn, and hangs up


async def cut_off(writer: asyncio.StreamWriter) -> None:
    await send(writer, head(Content_Length=len(VETO)) + VETO[:20])


async def cut_off_chunk(writer: asyncio.StreamWriter) -> None:
    await send(writer, head(Transfer_Encoding="chunked"), b"%x\r\n%s" % (len(VETO), VETO[:20]))


async def silent(_writer: asyncio.StreamWriter) -> None:
    return


async def no_http(writer: asyncio.StreamWriter) -> None:
    await send(writer, b"220 mail.example.com ESMTP\r\n")


WRONG: dict[str, tuple[Answer, str]] = {
    "too long": (whole(b" " * MAX_ANSWER + VETO), "larger than"),
    "without end": (without_end, "larger than"),
    "cut off": (cut_off, "localhost"),
    "a chunk cut off": (cut_off_chunk, "localhost"),
    "hung up": (silent, "localhost"),
    "no HTTP": (no_http, "localhost"),
    "an error": (whole(VETO, "500 Internal Server Error"), "answered 500"),
    "a redirect": (whole(VETO, "307 Temporary Redirect", Location="https://localhost:1/"), "answered 307"),
    "another success": (whole(VETO, "202 Accepted"), "answered 202"),
    "a page": (whole(b"<html>Sign in</html>", Content_Type="text/html"), "cannot be understood"),
    "half of it": (whole(VETO[:30]), "cannot be understood"),
    "nothing": (whole(b""), "cannot be understood"),
    "no letters": (whole(b"\xff\xfe\x00"), "cannot be understood"),
    "nested": (whole(b'{"response":' + b"[" * 100_000 + b"]" * 100_000 + b"}"), "cannot be understood"),
    "broken letters": (whole(b'{"response":{"decision":"\xff"}}'), "cannot be understood"),
    "packed": (whole(gzip.compress(VETO), Content_Encoding="gzip"), "cannot be understood"),
}


@pytest.mark.parametrize("case", WRONG)
async def test_an_answer_that_is_none_is_an_error_that_says_so(tmp_path: Path, case: str) -> None:
    answer, message = WRONG[case]
    async with webhook(tmp_path, answer) as hook:
        with pytest.raises(WebhookError, match=message):
            await ask(hook)


async def test_nobody_there_is_an_error(tmp_path: Path) -> None:
    async with webhook(tmp_path, silent) as hook:
        pass
    with pytest.raises(WebhookError, match="localhost"):
        await ask(hook)


def deciding(hook: Webhook, failure_policy: FailurePolicy = FailurePolicy.HOLD) -> ControllerSettings:
    settings = EvictionSettings(
        policy=PolicyChoice("quorum"), webhooks=(hook,), timeout=20.0, failure_policy=failure_policy
    )
    return ControllerSettings(eviction=settings)


async def has_event(world: World, start: str) -> bool:
    return any(text.startswith(start) for _, text in await world.events("user"))


async def test_a_veto_in_two_pieces_keeps_the_pod(tmp_path: Path) -> None:
    async with (
        webhook(tmp_path, in_two_pieces) as hook,
        eviction_policy_world(deciding(hook, FailurePolicy.DELETE), DEVICE) as world,
    ):
        await use_devices(world, "claim", "gpu-0", pods=("user",))
        await world.create(rule())
        await until(world, lambda: has_event(world, "quorum: "))
        assert await has_event(world, "quorum: pod stays: the quorum is at stake")
        await world.settle(60)
        assert await leaving(world) == set()


@pytest.mark.parametrize("case", ["an error", "a page", "hung up", "cut off"])
async def test_a_pod_is_held_while_its_webhook_fails(tmp_path: Path, case: str) -> None:
    answers = [WRONG[case][0]]

    async def answer(writer: asyncio.StreamWriter) -> None:
        await answers[-1](writer)

    async with webhook(tmp_path, answer) as hook, eviction_policy_world(deciding(hook), DEVICE) as world:
        await use_devices(world, "claim", "gpu-0", pods=("user",))
        await world.create(rule())
        await until(world, lambda: has_event(world, "quorum: WebhookError"))
        assert await leaving(world) == set()
        answers.append(whole(b'{"response": {"decision": "now"}}'))

        async def leaves() -> bool:
            await world.settle(1)
            return await leaving(world) == {"user"}

        await until(world, leaves)


async def test_what_a_webhook_sends_is_read_beside_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In `dray up` the controllers share the loop of the server."""
    readers: list[str] = []

    async def read(content: aiohttp.StreamReader) -> bytes:
        readers.append(threading.current_thread().name)
        return await read_all(content)

    read_all = eviction_webhook._read_all
    monkeypatch.setattr(eviction_webhook, "_read_all", read)
    async with webhook(tmp_path, in_chunks) as hook:
        assert isinstance(await ask(hook), Never)
    assert readers == ["eviction webhook"]
