"""One request from end to end: who asks, what they ask for, whether they may, and the answer."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from dray.api import codec
from dray.api.meta import DeleteOptions, Object, Status, StatusDetails
from dray.server import (
    body,
    conditional_updates,
    deletes,
    deprecations,
    errors,
    field_owners,
    options,
    patches,
    reads,
    routes,
    scales,
    watches,
    writes,
    yaml_answers,
)
from dray.server.engine import Call, Engine
from dray.server.errors import ApiError
from dray.server.handling import Handling, Observer
from dray.server.http import MAX_BODY_BYTES, Answer, Request, Response, Stream
from dray.server.owner_references import without_duplicates
from dray.server.pages import Pages
from dray.server.representation import choose
from dray.server.request_namespace import in_namespace
from dray.server.routes import Route
from dray.server.security.identity import Identity
from dray.store import Closed, StorageError

CLIENT_GONE = 499
"""The code that logs and metrics show for a client that did not wait for its answer."""

log = logging.getLogger(__name__)


MOST_WARNINGS = 80
"""Python's clients give up at a hundred headers."""
WARNINGS_TOGETHER = 4096
LONGEST_WARNING = 256
"""How many letters there may be in all warnings of an answer, and in one of them if they are too many."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Gate(Protocol):
    """Tells who asks, and whether they may."""

    def sender(self, request: Request) -> Identity | None:
        """Who sends the request, whoever it acts as; None if the credentials are not valid."""
        ...

    def identify(self, request: Request) -> Identity | None:
        """The caller, None if the credentials are not valid."""
        ...

    def check(self, caller: Identity, verb: str, route: Route | None, request: Request) -> None:
        """Raises ApiError unless the caller may do this."""
        ...


class Actions(Protocol):
    """What posting does where nothing is stored: pods/binding, pods/eviction, serviceaccounts/token, reviews."""

    def find(self, route: Route) -> Callable[[Engine, Call, Request], Awaitable[Answer]] | None:
        """The action, None if the route is an ordinary create."""
        ...


class App:
    """The application that `http.Server` calls."""

    def __init__(
        self,
        engine: Engine,
        table: routes.Table,
        gate: Gate,
        pages: Pages,
        actions: Actions,
        observers: Sequence[Observer] = (),
    ) -> None:
        self._engine = engine
        self._table = table
        self._gate = gate
        self._pages = pages
        self._actions = actions
        self._observers = observers

    async def __call__(self, request: Request) -> Answer:
        """Answers every request; failures become Status objects, even those that nobody thought of."""
        handling = Handling(request, time.perf_counter(), time.time())
        for observer in self._observers:
            observer.began(handling)
        answer: Answer = Response(CLIENT_GONE)
        try:
            answer = await self._answer(handling)
        except ApiError as error:
            answer = failure(error)
        except Closed:
            answer = failure(errors.unavailable("the server is shutting down"))
        except Exception as error:
            answer = self._unexpected(handling, error)
        finally:
            for observer in self._observers:
                observer.answered(handling, answer)
        if yaml_answers.is_preferred(request.header("accept")):
            answer = await yaml_answers.written(answer)
        if isinstance(answer, Stream):
            answer.ended = lambda: self._ended(handling)
        return answer

    def _unexpected(self, handling: Handling, error: Exception) -> Response:
        """The disk has failed, or dray has a bug: the log has the details, the client the id to find them by."""
        request = handling.request
        user = handling.caller.user if handling.caller is not None else ""
        fields = {"id": handling.id, "user": user, "agent": request.header("user-agent")}
        known = isinstance(error, StorageError)
        log.error("%s %s: %s", request.method, request.uri, error, exc_info=not known, extra={"fields": fields})
        what = str(error) if known else f"{type(error).__name__}; the server's log has more under id {handling.id}"
        answer = failure(errors.internal(what))
        answer.headers = (*answer.headers, ("Audit-Id", handling.id))
        return answer

    def _sent(self, route: Route, events: int) -> None:
        for observer in self._observers:
            observer.sent(route, events)

    def _ended(self, handling: Handling) -> None:
        for observer in self._observers:
            observer.ended(handling)

    async def _answer(self, handling: Handling) -> Answer:
        """Raises ApiError."""
        request = handling.request
        if "impersonate-user" in request.headers:
            handling.sender = self._gate.sender(request)
        caller = handling.caller = self._gate.identify(request)
        if caller is None:
            raise errors.unauthorized()
        page = self._pages.find(request.path)
        if page is not None:
            self._gate.check(caller, request.method.lower(), None, request)
            if request.method not in ("GET", "HEAD"):
                raise errors.method_not_allowed()
            return await page(request, caller)
        route = handling.route = self._route(request)
        self._gate.check(caller, route.verb, route, request)
        if route.subresource in routes.OF_KUBELETS:
            raise errors.no_containers(route.kind, route.name, route.subresource)
        if request.oversized:
            raise errors.too_large(MAX_BODY_BYTES)
        call = Call(route, caller, self._engine.clock(), warnings=deprecations.warnings(route))
        try:
            if route.subresource == "scale":
                answer = await self._scale(request, call)
            else:
                answer = await _VERBS[route.verb](self, request, call)
        except ApiError as error:
            answer = failure(error)
        return with_warnings(answer, call.warnings)

    def _route(self, request: Request) -> Route:
        try:
            return self._table.find(request.method, request.path, request.query)
        except routes.NoSuchResource:
            raise errors.page_not_found() from None
        except routes.NoSuchVerb:
            raise errors.method_not_allowed() from None
        except routes.NoSuchPage:
            raise NotServed from None

    async def _get(self, request: Request, call: Call) -> Answer:
        form = choose(request, call)
        reads.check_revision(self._engine, options.revision(request.query.get("resourceVersion", "")))
        record = writes.current(self._engine, call)
        return form.one(record)

    async def _list(self, request: Request, call: Call) -> Answer:
        form = choose(request, call)
        return form.many(reads.list_page(self._engine, call, options.list_options(request.query)))

    async def _watch(self, request: Request, call: Call) -> Answer:
        form = choose(request, call)
        given = options.list_options(request.query)
        watch = watches.Watch(self._engine, call, given, form, lambda events: self._sent(call.route, events))
        return Stream(watch.chunks(), form.content_type)

    async def _create(self, request: Request, call: Call) -> Answer:
        form = choose(request, call)
        self._apply_options(request, call, "CreateOptions")
        action = self._actions.find(call.route)
        if action is not None:
            return await action(self._engine, call, request)
        obj = without_duplicates(self._decode(request, call, "CreateOptions"), call.warnings)
        return form.one(await writes.create(self._engine, call, obj, field_owners.track), code=201)

    async def _update(self, request: Request, call: Call) -> Answer:
        form = choose(request, call)
        self._apply_options(request, call, "UpdateOptions")
        obj = named_as(self._decode(request, call, "UpdateOptions"), call.route)
        obj = without_duplicates(obj, call.warnings)
        writes.current(self._engine, call)
        conditional_updates.check(call.route, obj)
        meta = obj.metadata
        record = await writes.update(
            self._engine, call, lambda _: obj, field_owners.track, expected=meta.resource_version, uid=meta.uid
        )
        return form.one(record)

    async def _patch(self, request: Request, call: Call) -> Answer:
        form = choose(request, call)
        self._apply_options(request, call, "PatchOptions")
        done = await patches.patch(self._engine, call, request)
        return form.one(done.record, code=201 if done.created else 200)

    async def _delete(self, request: Request, call: Call) -> Answer:
        form = choose(request, call)
        options.check_repeated_dry_run(request.uri, "DeleteOptions")
        given = deletes.options(self._delete_options(request), request.query)
        deleted = await deletes.delete(self._engine, call, given)
        return form.deleted(deleted.record, gone=deleted.gone)

    async def _delete_collection(self, request: Request, call: Call) -> Answer:
        form = choose(request, call)
        options.check_repeated_dry_run(request.uri, "DeleteOptions")
        given = deletes.options(self._delete_options(request), request.query)
        page = reads.list_page(self._engine, call, options.list_options(request.query))
        for record in page.records:
            one = Route("delete", call.route.kind, call.route.version, record.key.namespace, record.key.name)
            try:
                await deletes.delete(self._engine, Call(one, call.caller, call.now, warnings=[]), given)
            except ApiError as error:
                if error.code not in (404, 409):
                    raise
        return form.many(page)

    async def _scale(self, request: Request, call: Call) -> Answer:
        if call.route.verb == "get":
            return await scales.read(self._engine, call, request)
        self._apply_options(request, call, "UpdateOptions" if call.route.verb == "update" else "PatchOptions")
        change = scales.update if call.route.verb == "update" else scales.patch
        return await change(self._engine, call, request)

    def _apply_options(self, request: Request, call: Call, kind: str) -> None:
        options.check_repeated_dry_run(request.uri, kind)
        given = options.write_options(request.query, kind)
        call.dry_run = given.dry_run
        call.field_manager = given.field_manager or field_owners.manager_of(request.header("user-agent"))

    def _decode(self, request: Request, call: Call, kind: str) -> Object:
        given = options.write_options(request.query, kind)
        return body.decode(request.body, request.header("content-type"), call.route, given, call.warnings)

    def _delete_options(self, request: Request) -> DeleteOptions | None:
        if not request.body:
            return None
        reading = codec.read(body.parse(request.body, request.header("content-type")), DeleteOptions)
        if reading.obj is None:
            raise errors.bad_request(f"delete options: {'; '.join(map(str, reading.errors))}")
        if reading.obj.kind not in ("", "DeleteOptions"):
            raise errors.bad_request(f"delete options: of kind {reading.obj.kind}, expected DeleteOptions")
        return reading.obj


_VERBS: dict[str, Callable[[App, Request, Call], Awaitable[Answer]]] = {
    "get": App._get,
    "list": App._list,
    "watch": App._watch,
    "create": App._create,
    "update": App._update,
    "patch": App._patch,
    "delete": App._delete,
    "deletecollection": App._delete_collection,
}


class NotServed(ApiError):
    """A path outside everything that is served, which Kubernetes answers in plain text."""

    def __init__(self) -> None:
        super().__init__(404, "NotFound", "404 page not found\n", StatusDetails())


def named_as(obj: Object, route: Route) -> Object:
    """A body about the object that the path names, which may leave the namespace to the path. Raises ApiError."""
    meta = obj.metadata
    if meta.name != route.name:
        message = f"the name of the object ({meta.name}) does not match the name on the URL ({route.name})"
        raise errors.bad_request(message if meta.name else "name must be provided")
    return in_namespace(obj, route.namespace)


def failure(error: ApiError) -> Response:
    """A failure as an answer."""
    if isinstance(error, NotServed):
        return Response(404, str(error).encode(), "text/plain; charset=utf-8")
    headers: tuple[tuple[str, str], ...] = ()
    details = error.status.details
    if details is not None and details.retry_after_seconds:
        headers = (("Retry-After", str(details.retry_after_seconds)),)
    return Response(error.code, codec.encode(error.status), headers=headers)


def success(status: Status) -> Response:
    """An answer that is no object."""
    return Response(status.code or 200, codec.encode(status))


def with_warnings(answer: Answer, warnings: list[str]) -> Answer:
    """The answer with what the caller should be told."""
    if not warnings:
        return answer
    for text in _shortened(list(dict.fromkeys(warnings))):
        one_line = _CONTROL.sub("?", text)  # names of unknown fields are quoted here, and may be anything
        quoted = one_line.replace("\\", "\\\\").replace('"', '\\"')
        answer.headers = (*answer.headers, ("Warning", f'299 - "{quoted}"'))
    return answer


def _shortened(warnings: list[str]) -> list[str]:
    """As many warnings as clients can take: all if they are short together, else the beginnings of the first ones."""
    kept = warnings[:MOST_WARNINGS]
    if sum(map(len, kept)) > WARNINGS_TOGETHER:
        room = WARNINGS_TOGETHER
        short, kept = [text[:LONGEST_WARNING] for text in kept], []
        for text in short:
            if room <= 0:
                break
            kept.append(text)
            room -= len(text)
    left_out = len(warnings) - MOST_WARNINGS
    return [*kept, f"and {left_out} more warnings like these"] if left_out > 0 else kept
