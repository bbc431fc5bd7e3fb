"""Long lists, written as they are read: nobody waits while megabytes are put together, and nobody holds them."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator

from dray.api import codec
from dray.api.registry import Kind
from dray.api.wire import MEDIA_TYPE
from dray.process.http import JSON, LongResponse, Request, Response
from dray.process.http.messages import YAML
from dray.server import objects
from dray.server.answers import compression, yaml_answers
from dray.server.answers.representation import Representation
from dray.server.engine import Call, Engine
from dray.server.portions import portions
from dray.server.protobuf import tables, write
from dray.server.unread import LARGE
from dray.server.verbs.reads import Page
from dray.store import Record

_GZIP = 16 + zlib.MAX_WBITS


def is_long(request: Request, form: Representation, size: int) -> bool:
    """Whether a list of so many bytes is written so: one of whole objects in JSON or YAML."""
    return _is_of_many_bytes(form, size) and request.method == "GET" and not form.in_protobuf


def is_long_in_protobuf(call: Call, form: Representation, size: int) -> bool:
    """Whether a list of so many bytes is written by `in_protobuf`."""
    kind, version = call.route.kind, call.route.version
    is_meant = _is_of_many_bytes(form, size) and form.in_protobuf
    return is_meant and tables.is_known(kind.api_version_of(version), kind.list_kind)


def _is_of_many_bytes(form: Representation, size: int) -> bool:
    return size > LARGE and type(form) is Representation


def in_protobuf(call: Call, page: Page) -> Response:
    """The whole answer, object by object: its length comes first. For a thread."""
    kind, version = call.route.kind, call.route.version
    items = (item for some in portions(page.records, _size) for item in objects.render_items(kind, version, some))
    body = write.list_of(kind.api_version_of(version), kind.list_kind, codec.encode(page.meta), items)
    return Response(200, body, MEDIA_TYPE)


def written(engine: Engine, request: Request, call: Call, form: Representation, page: Page) -> LongResponse:
    """The answer, compressed if the client accepts that."""
    parts, media = (_in_yaml(engine, call, page), YAML) if form.in_yaml else (_parts(engine, call, page), JSON)
    if not compression.is_accepted(request.header("accept-encoding")):
        return LongResponse(200, content_type=media, parts=parts)
    return LongResponse(
        200, content_type=media, headers=compression.HEADERS, parts=_compressed(engine, request.owner, parts)
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


async def _in_yaml(engine: Engine, call: Call, page: Page) -> AsyncIterator[bytes]:
    """By name, as all of YAML is written here: the objects come before their kind."""
    kind, version = call.route.kind, call.route.version
    before, _, after = yaml_answers.dump(objects.list_head(kind, version, page.meta) + b"]}").partition(b"items: []\n")
    yield before + b"items:\n"
    for some in portions(page.records, _size):
        yield await engine.beside(call, _dumped, kind, version, some)
    yield after


def _dumped(kind: Kind, version: str, records: list[Record]) -> bytes:
    return yaml_answers.dump_entries(objects.render_items(kind, version, records))


async def _compressed(engine: Engine, caller: str, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    compressor = zlib.compressobj(compression.FASTEST, zlib.DEFLATED, _GZIP)
    async for part in parts:
        some = await engine.workers.run(caller, compressor.compress, part)
        if some:
            yield some
    yield compressor.flush()


def _size(record: Record) -> int:
    return record.size
