"""An application that makes a mistake: its client is told so, and the connection serves on."""

from __future__ import annotations

import asyncio

import pytest

from dray.process.http import Answer, Listener, Request, Response, Server
from patience import PATIENCE


async def application(request: Request) -> Answer:
    if request.path == "/good":
        return Response(200, b"fine", "text/plain")
    raise RecursionError("too deep")


async def test_a_mistake_is_an_answer_and_nobody_waits_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    server = Server(application)
    try:
        port = await server.listen(Listener("127.0.0.1", 0))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            b"GET /%1b[31mbad HTTP/1.1\r\nHost: x\r\n\r\nGET /good HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        )
        async with asyncio.timeout(PATIENCE):
            answers = await reader.read()
        writer.close()
    finally:
        await server.stop(0)
    assert answers.startswith(b"HTTP/1.1 500 ")
    assert answers.endswith(b"fine")
    (told,) = [record for record in caplog.records if record.exc_info]
    assert told.getMessage() == "a mistake while answering GET /\\x1b[31mbad"
