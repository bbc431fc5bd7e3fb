"""What can go wrong on request: answers of the API, and watches that break off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec

from dray.process.http import Answer, Application, Request, Response, Stream, failure


class ApiFault(msgspec.Struct):
    """The next `times` requests with this method, whose path contains this text, fail with this code."""

    code: int = 500
    method: str = ""
    path: str = ""
    times: int = 1

    def hits(self, request: Request) -> bool:
        """Whether it is the turn of this request; if so, one less is left."""
        if not self.times or (self.method and request.method != self.method) or self.path not in request.path:
            return False
        self.times -= 1
        return True


class ApiFaults:
    """Stands between the clients of a server and the server: those over HTTP, that is, not its own components."""

    def __init__(self) -> None:
        self._planned: list[ApiFault] = []
        self._broken = asyncio.Event()

    def fail(self, fault: ApiFault) -> None:
        """Plans a fault."""
        self._planned.append(fault)

    def break_watches(self) -> None:
        """All watches that are open end in the middle, as when a connection is lost."""
        self._broken.set()
        self._broken = asyncio.Event()

    def around(self, application: Application) -> Application:
        """The application, with what is planned."""

        async def answer(request: Request) -> Answer:
            for fault in self._planned:
                if fault.hits(request):
                    return _failure(fault.code)
            answer = await application(request)
            if isinstance(answer, Stream):
                answer.chunks = _until(self._broken, answer.chunks)
            return answer

        return answer


def _failure(code: int) -> Response:
    return failure(code, f"a test asked for code {code} here")


class _Lost(ConnectionError):
    """A connection breaks off because a test wants it to."""


async def _until(broken: asyncio.Event, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The chunks, until the connection breaks."""
    breaking = asyncio.ensure_future(broken.wait())
    coming: asyncio.Future[bytes] | None = None
    try:
        while True:
            coming = asyncio.ensure_future(anext(chunks))
            await asyncio.wait((coming, breaking), return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                raise _Lost
            try:
                chunk = coming.result()
            except StopAsyncIteration:
                return
            yield chunk
    finally:
        breaking.cancel()
        if coming is not None and not coming.done():
            coming.cancel()
            await asyncio.wait((coming,))  # else it would still be running when it is closed
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()
