"""The verbs over HTTP: each takes a request to typed values, calls the verb, and gives the answer its form.

One function per verb; `VERBS` is the table. Whoever calls them knows who asks, and that they may.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from dray.api import codec
from dray.api.idle_fields import idle_fields
from dray.api.meta import DeleteOptions, Object
from dray.api.status import ApiError
from dray.api.wire import MEDIA_TYPE as PROTOBUF
from dray.custom.kinds import CustomKind
from dray.process.http import Request, Response, Stream
from dray.process.tasks import with_turns
from dray.server import errors
from dray.server.answers import long_lists
from dray.server.answers.representation import Representation, check_plain, choose
from dray.server.beside import LARGE, MANY
from dray.server.bodies import body, options
from dray.server.bodies.options import ListOptions, WriteOptions
from dray.server.bodies.owner_references import without_duplicates
from dray.server.bodies.request_namespace import check_namespace, in_namespace
from dray.server.bodies.unsaid import with_unsaid
from dray.server.engine import Call, Engine
from dray.server.patch.formats import APPLY_PATCH
from dray.server.routes import Route
from dray.server.strategies import PostStrategy, View
from dray.server.verbs import conditional_updates, deletes, field_owners, patches, reads, watches, writes
from dray.store import Record

R = TypeVar("R")

LONG_QUERY = 4 * 1024
_TOLD = ("fieldManager", "fieldValidation")
"""What admission is told of the options of a write, besides whether it is a dry run."""
AT_ONCE = 16
"""Objects of a collection that are deleted before others get a turn of the loop."""

Handler = Callable[[Engine, Request, Call], Awaitable[Response]]
"""Answers a request. Raises ApiError."""


async def get(engine: Engine, request: Request, call: Call) -> Response:
    """One object, or a part of it."""
    form = choose(engine, request, call)
    await reads.see(engine, options.revision(request.query.get("resourceVersion", "")))
    record = writes.current(engine, call)
    if call.route.kind.converts and engine.conversions is not None:
        record = (await engine.conversions.records(call.route.kind, [record]))[0]
    return await _one(engine, call, form, record)


async def _one(engine: Engine, call: Call, form: Representation, record: Record, code: int = 200) -> Response:
    """An object as the client wants to see it."""
    if form.is_ready(record):
        return form.one(record, code)
    return await engine.beside(call, form.one, record, code)


async def list_(engine: Engine, request: Request, call: Call) -> Response:
    """A page of objects."""
    form = choose(engine, request, call)
    page = await reads.list_page(engine, call, await _list_options(engine, request, call))
    return await _many(engine, request, call, form, page)


async def _list_options(engine: Engine, request: Request, call: Call) -> ListOptions:
    """What a query asks for. Selectors may be long. Raises ApiError."""
    if "shardSelector" in request.query:
        call.warnings.append("shardSelector does nothing here: all objects are in the answer")
    if len(request.uri) > LONG_QUERY:
        return await engine.beside(call, options.list_options, request.query)
    return options.list_options(request.query)


async def _many(engine: Engine, request: Request, call: Call, form: Representation, page: reads.Page) -> Response:
    """A list as the client wants to see it."""
    size = sum(record.size for record in page.records)
    await engine.unread.take(request, size, call.turn)
    if call.route.kind.converts and engine.conversions is not None:
        page = reads.Page(await engine.conversions.records(call.route.kind, page.records), page.meta)
    if long_lists.is_long(request, form, size):
        return long_lists.written(engine, request, call, form, page)
    if long_lists.is_long_in_protobuf(call, form, size):
        return await engine.beside(call, long_lists.in_protobuf, call, page)
    if len(page.records) > MANY or size > LARGE:
        return await engine.beside(call, form.many, page)
    return form.many(page)


async def watch(engine: Engine, request: Request, call: Call, sent: watches.Sent) -> Stream:
    """A stream of changes; `sent` hears how many events go out. Raises ApiError."""
    form = choose(engine, request, call)
    following = watches.Watch(engine, call, await _list_options(engine, request, call), form, sent)
    return Stream(following.chunks(), following.content_type)


async def create(engine: Engine, request: Request, call: Call) -> Response:
    """Stores a new object, or does what posting there does."""
    form = choose(engine, request, call)
    given = _write_options(request, call, "CreateOptions")
    post = engine.strategies.post(call.route.kind, call.route.subresource)
    if post is not None:
        check_plain(request)
        posted = await _read(engine, request, call, lambda: _posted(request, call, given, post))
        posted = await engine.admission.post(engine, call, posted)
        if not call.route.subresource:
            call.warnings.extend(idle_fields(call.route.kind, posted))
        reply = await post.do(engine, call, posted)
        data = await engine.beside(call, codec.encode, reply) if call.is_large else codec.encode(reply)
        return Response(201, data)
    obj = await _read(engine, request, call, lambda: _decoded(request, call, given))
    if obj.metadata.resource_version not in ("", "0"):
        raise errors.bad_request("resourceVersion should not be set on objects to be created")
    return await _one(engine, call, form, await writes.create(engine, call, obj), code=201)


async def _read(engine: Engine, request: Request, call: Call, read: Callable[[], R]) -> R:
    """What is made of a body: of a large one beside the loop, as all that follows for it. Raises ApiError."""
    kind = call.route.kind
    call.is_large = body.is_large(request.body, request.header("content-type"), kind)
    if isinstance(kind, CustomKind) and not kind.version.is_compiled:
        await engine.beside(call, kind.version.compile)
    if call.is_large or not (kind.is_custom or codec.is_prepared(kind.type_of(call.route.version))):
        return await engine.beside(call, read)
    return read()


def _decoded(request: Request, call: Call, given: WriteOptions) -> Object:
    obj = body.decode(request.body, request.header("content-type"), call.route, given, call.warnings)
    if call.route.name:
        obj = _named_as(obj, call.route)
    return without_duplicates(obj, call.warnings)


async def update(engine: Engine, request: Request, call: Call) -> Response:
    """Replaces an object, or a part of it."""
    form = choose(engine, request, call)
    given = _write_options(request, call, "UpdateOptions")
    view = engine.strategies.update(call.route.kind, call.route.subresource).view
    if view is not None:
        return await _one(engine, call, form, await _update_view(engine, request, call, view, given))
    obj = await _read(engine, request, call, lambda: _decoded(request, call, given))
    writes.current(engine, call)
    conditional_updates.check(call.route, obj)
    meta = obj.metadata
    in_protobuf = body.media_type(request.header("content-type")) == PROTOBUF
    change = partial(with_unsaid, new=obj) if in_protobuf else lambda _: obj
    record = await writes.update(engine, call, change, expected=meta.resource_version, uid=meta.uid)
    return await _one(engine, call, form, record)


async def _update_view(engine: Engine, request: Request, call: Call, view: View, given: WriteOptions) -> Record:
    def read() -> Object:
        value = body.parse(request.body, request.header("content-type"))
        shape: Object = view.read(value, call.route.name)
        body.complain(codec.read(value, type(shape)), view.kind, call.route.version, given, call.warnings)
        return shape

    shape = await _read(engine, request, call, read)
    check_namespace(shape, call.route.namespace)
    meta = shape.metadata
    return await writes.update(
        engine, call, lambda old: view.merge(old, shape), expected=meta.resource_version, uid=meta.uid
    )


async def patch(engine: Engine, request: Request, call: Call) -> Response:
    """Changes an object, or a part of it, by a patch."""
    form = choose(engine, request, call)
    applies = body.media_type(request.header("content-type")) == APPLY_PATCH
    given = _write_options(request, call, "PatchOptions", applies=applies)
    wanted = await _read(engine, request, call, lambda: body.read_patch(request.body, request.header("content-type")))
    done = await patches.patch(engine, call, wanted, given)
    return await _one(engine, call, form, done.record, code=201 if done.created else 200)


async def delete(engine: Engine, request: Request, call: Call) -> Response:
    """Deletes an object, or marks it."""
    form = choose(engine, request, call)
    given = await _read(engine, request, call, lambda: _delete_options(request))
    deleted = await deletes.delete(engine, call, given)
    record = deleted.record
    if call.route.kind.converts and engine.conversions is not None:
        record = (await engine.conversions.records(call.route.kind, [record]))[0]
    if form.is_ready(record):
        return form.deleted(record, gone=deleted.gone)
    return await engine.beside(call, lambda: form.deleted(record, gone=deleted.gone))


async def delete_collection(engine: Engine, request: Request, call: Call) -> Response:
    """Deletes what a list would show, one by one; what others deleted or changed meanwhile is left alone."""
    form = choose(engine, request, call)
    given = await _read(engine, request, call, lambda: _delete_options(request))
    deletes.check_collection(given)
    page = await reads.list_page(engine, call, await _list_options(engine, request, call))
    async for record in with_turns(page.records, AT_ONCE):  # a delete that is refused or only tried waits for nothing
        one = Route("delete", call.route.kind, call.route.version, record.key.namespace, record.key.name)
        try:
            part = Call(one, call.caller, call.now, is_unnamed=True, warnings=call.warnings, turn=call.turn)
            await deletes.delete(engine, part, given)
            call.annotations.update(part.annotations)
        except ApiError as error:
            if error.code != 404 and (error.code != 409 or given.preconditions is not None):
                raise
    return await _many(engine, request, call, form, page)


VERBS: dict[str, Handler] = {
    "get": get,
    "list": list_,
    "create": create,
    "update": update,
    "patch": patch,
    "delete": delete,
    "deletecollection": delete_collection,
}
"""All but `watch`, whose answer goes on."""


def _write_options(request: Request, call: Call, kind: str, *, applies: bool = False) -> WriteOptions:
    given = options.write_options(request.query, request.uri, kind, applies=applies)
    call.dry_run = given.dry_run
    call.field_manager = given.field_manager or field_owners.manager_of(request.header("user-agent"))
    if request.query:
        call.options = {name: request.query[name] for name in _TOLD if request.query.get(name)}
    return given


def _posted(request: Request, call: Call, given: WriteOptions, post: PostStrategy) -> Object:
    """What was posted, which is either of the kind that the path names, or of that of the subresource."""
    content_type = request.header("content-type")
    if not call.route.subresource:
        return body.decode(request.body, content_type, call.route, given, call.warnings)
    value = {} if post.may_be_empty and not request.body else body.parse(request.body, content_type)
    body.check_part(value, post.takes.__name__, post.group)
    reading = codec.read(value, post.takes)
    if reading.obj is None:
        raise errors.bad_request("; ".join(map(str, reading.errors)))
    body.complain(reading, post.takes.__name__, call.route.version, given, call.warnings)
    check_namespace(reading.obj, call.route.namespace)
    return reading.obj


def _delete_options(request: Request) -> DeleteOptions:
    if not request.body:
        return deletes.options(DeleteOptions(), request.query, request.uri)
    reading = codec.read(body.parse(request.body, request.header("content-type")), DeleteOptions)
    if reading.obj is None:
        raise errors.bad_request(f"delete options: {'; '.join(map(str, reading.errors))}")
    if reading.obj.kind not in ("", "DeleteOptions"):
        raise errors.bad_request(f"delete options: of kind {reading.obj.kind}, expected DeleteOptions")
    return deletes.options(reading.obj, request.query, request.uri)


def _named_as(obj: Object, route: Route) -> Object:
    """A body about the object that the path names, which may leave the namespace to the path. Raises ApiError."""
    meta = obj.metadata
    if meta.name != route.name:
        message = f"the name of the object ({meta.name}) does not match the name on the URL ({route.name})"
        raise errors.bad_request(message if meta.name else "name must be provided")
    return in_namespace(obj, route.namespace)
