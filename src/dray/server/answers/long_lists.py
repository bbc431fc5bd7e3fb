"""Long lists, written as they are read: nobody waits while megabytes are put together, and nobody holds them."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator

from dray.api.wire import MEDIA_TYPE
from dray.process.http import JSON, LongResponse, Request
from dray.server import objects
from dray.server.answers import compression
from dray.server.answers.representation import Representation
from dray.server.answers.yaml_answers import YAML
from dray.server.engine import Call, Engine
from dray.server.portions import portions
from dray.server.unread import LARGE
from dray.server.verbs.reads import Page
from dray.store import Record

_GZIP = 16 + zlib.MAX_WBITS


def is_long(request: Request, form: Representation, size: int) -> bool:
    """Whether a list of so many bytes is written so: one of whole objects in JSON."""
    if size <= LARGE or type(form) is not Representation or request.method != "GET":
        return False
    accept = request.header("accept")
    return YAML not in accept and MEDIA_TYPE not in accept


def written(engine: Engine, request: Request, call: Call, page: Page) -> LongResponse:
    """The answer, compressed if the client accepts that."""
    parts = _parts(engine, call, page)
    if not compression.is_accepted(request.header("accept-encoding")):
        return LongResponse(200, content_type=JSON, parts=parts)
    return LongResponse(
        200, content_type=JSON, headers=compression.HEADERS, parts=_compressed(engine, request.owner, parts)
    )


async def _parts(engine: Engine, call: Call, page: Page) -> AsyncIterator[bytes]:
    kind, version = call.route.kind, call.route.version
    is_ready = not kind.is_custom and objects.is_stored_form(kind, version)
    yield objects.list_head(kind, version, page.meta)
    between = b""
    for some in portions(page.records, _size):
        if is_ready:
            items = objects.render_items(kind, version, some)
        else:
            items = await engine.beside(call, objects.render_items, kind, version, some)
        yield between + b",".join(items)
        between = b","
    yield b"]}"


async def _compressed(engine: Engine, caller: str, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    compressor = zlib.compressobj(compression.FASTEST, zlib.DEFLATED, _GZIP)
    async for part in parts:
        some = await engine.workers.run(caller, compressor.compress, part)
        if some:
            yield some
    yield compressor.flush()


def _size(record: Record) -> int:
    return len(record.data)
