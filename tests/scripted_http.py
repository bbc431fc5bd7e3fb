"""An HTTP server that answers as a test tells it, for what a real one does rarely: being busy, expired, or broken."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable

from dray.process.http import Answer, Listener, Request, Server

Script = Callable[[Request], Answer]


@contextlib.asynccontextmanager
async def scripted_http(script: Script) -> AsyncIterator[str]:
    """The server's URL, while it runs."""

    async def app(request: Request) -> Answer:
        return script(request)

    server = Server(app)
    port = await server.listen(Listener("127.0.0.1", 0))
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await server.stop(0.1)
