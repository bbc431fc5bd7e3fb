"""One request from end to end: who asks, what they ask for, whether they may, and the answer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Protocol

from msgspec.structs import replace

from dray.api.tenants import tenant
from dray.process.busy import Stopwatch, counted
from dray.process.http import JSON, MAX_BODY_BYTES, Answer, Request, Response
from dray.server import errors, handlers, objects, routes
from dray.server.answers import compression, other_forms, route_warnings
from dray.server.answers.failures import failure
from dray.server.answers.warnings import with_warnings
from dray.server.bodies.options import time_limit
from dray.server.discovery.pages import Pages
from dray.server.engine import Call, Engine
from dray.server.errors import ApiError
from dray.server.fairness import Fairness, Flow, is_vital, may_be_refused
from dray.server.kubelets.conversations import Conversations
from dray.server.kubelets.proxy import Kubelets
from dray.server.latest import was_early
from dray.server.observers.handling import Handling, Observer
from dray.server.routes import Route
from dray.server.security.identity import Identity
from dray.store import Closed, StorageError, TooLarge

CLIENT_GONE = 499
"""The code that logs and metrics show for a client that did not wait for its answer."""

_GONE = Response(CLIENT_GONE)

READ_SECONDS = 0.0001
WRITE_SECONDS = 0.0003
BYTE_SECONDS = 1e-7

SMALL_BODY = 64 * 1024

LONG_WATCH = 512
MOST_OF_LONG_WATCHES = 2 * 1024 * 1024
"""Bytes that the addresses of one caller's watches may have beyond the usual: what is read from them takes fifteen
times as much, for as long as they are open."""

log = logging.getLogger(__name__)


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


class App:
    """The application that `http.Server` calls."""

    def __init__(
        self,
        engine: Engine,
        gate: Gate,
        pages: Pages,
        observers: Sequence[Observer],
        fairness: Fairness,
        kubelets: Kubelets,
    ) -> None:
        self._engine = engine
        self._kubelets = kubelets
        self._conversations = Conversations()
        self._long_watches = Conversations(MOST_OF_LONG_WATCHES, "bytes of selectors in watches that are")
        self._gate = gate
        self._pages = pages
        self._observers = observers
        self._fairness = fairness

    def admit(self, request: Request) -> Response | None:
        """Looks at the head of a request before its body is read; the answer if it is refused."""
        handling = request.admitted = Handling(request, time.perf_counter(), time.time())
        try:
            self._admit(handling)
            if request.oversized:
                raise errors.too_large(MAX_BODY_BYTES)
        except ApiError as error:
            if self._may_be_early(request, error):
                request.admitted = None
                return None
            answer = failure(error)
        except Exception as error:
            answer = self._unexpected(handling, error)
        else:
            return None
        request.admitted = None
        for observer in self._observers:
            observer.began(handling)
            observer.answered(handling, answer)
        return other_forms.written_now(answer, request.header("accept"))

    def _may_be_early(self, request: Request, refusal: ApiError) -> bool:
        """Whether another server may know better whom to let in, or what there is. `__call__` then looks again.

        Not for bodies of any size: those of strangers are not read.
        """
        if not self._engine.store.is_shared or refusal.code not in (401, 403, 404):
            return False
        length = request.header("content-length") or "0"
        return length.isdigit() and int(length) <= SMALL_BODY and not request.header("transfer-encoding")

    def at_once(self, request: Request) -> Response | None:
        """One stored object as it is, if nobody has to wait for it; None if the request is to be answered as others.

        Nothing else is asked for as often, and there is nothing to it: what is made for others that may have to wait
        would take most of the time.
        """
        if request.method != "GET" or request.query or not self._engine.store.is_current:
            return None
        if request.headers.get("accept", JSON) != JSON:
            return None
        handling = Handling(request, time.perf_counter(), time.time())
        try:
            self._admit(handling)
            answer = self._stored(handling)
        except Exception:
            return None  # what is wrong is found once more as for others, and told
        if answer is None:
            request.admitted = handling
            return None
        for observer in self._observers:
            observer.began(handling)
            observer.answered(handling, answer)
        return answer

    def _stored(self, handling: Handling) -> Response | None:
        """What a request that was admitted asks for, if that is a small object just as it is stored."""
        route, fairness = handling.route, self._fairness
        if route is None or route.verb != "get" or route.subresource:
            return None
        kind = route.kind
        if kind.is_custom or not objects.is_stored_form(kind, route.version):
            return None
        record = self._engine.store.get((kind.resource, route.namespace, route.name))
        if record is None or record.size > compression.LARGE_ANSWER:
            return None
        flow = fairness.flow(handling.request.owner)
        if not fairness.try_enter(flow):
            return None
        fairness.leave(flow, READ_SECONDS)
        return Response(200, record.data)

    async def __call__(self, request: Request) -> Answer:
        """Answers every request; failures become Status objects, even those that nobody thought of."""
        admitted: Handling | None = request.admitted
        request.admitted = None  # each would keep the other, and the body, until garbage is collected
        handling = admitted or Handling(request, time.perf_counter(), time.time())
        for observer in self._observers:
            observer.began(handling)
        answer: Answer = _GONE
        try:
            if admitted is None:
                try:
                    self._admit(handling)
                except ApiError as refusal:
                    if not self._may_be_early(request, refusal):
                        raise
                    await self._admit_again(handling)
            if "timeout" in request.query:
                answer = await self._answer_in_time(handling)
            else:
                answer = await self._answer_in_turn(handling)
        except ApiError as error:
            answer = failure(error)
        except Closed:
            answer = failure(errors.shutting_down())
        except Exception as error:
            answer = self._unexpected(handling, error)
        finally:
            for observer in self._observers:
                observer.answered(handling, answer)
        if not isinstance(answer, Response):
            answer.ended = partial(self._ended, handling, answer.ended)
            return answer
        if len(answer.body) <= compression.LARGE_ANSWER and request.headers.get("accept", JSON) == JSON:
            return answer
        return await self._as_accepted(handling, answer)

    async def _as_accepted(self, handling: Handling, answer: Response) -> Answer:
        """An answer in the form and the coding that the client accepts."""
        request = handling.request
        accept, coding = request.header("accept"), request.header("accept-encoding")
        has_other_form = accept and accept != JSON
        if not has_other_form and len(answer.body) <= compression.LARGE_ANSWER:
            return answer
        await self._engine.unread.take(request, len(answer.body))
        if has_other_form:
            answer = await other_forms.written(answer, accept, self._engine.workers, request.owner)
        return await compression.compressed(answer, coding, self._engine.workers, request.owner)

    async def _answer_in_time(self, handling: Handling) -> Answer:
        """Answers within the time that the client allows, if it says so. Watches have their own. Raises ApiError."""
        request, route = handling.request, handling.route
        goes_on = route is not None and (route.verb == "watch" or route.subresource in routes.OF_KUBELETS)
        seconds = None if goes_on else time_limit(request.query)
        if seconds is None:
            return await self._answer_in_turn(handling)
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await self._answer_in_turn(handling)
        except TimeoutError:
            if not limit.expired():
                raise
            raise errors.out_of_time() from None

    async def _answer_in_turn(self, handling: Handling) -> Answer:
        """Answers a request that was admitted when it is its caller's turn. Raises ApiError."""
        request, caller, route, fairness = handling.request, handling.caller, handling.route, self._fairness
        assert caller is not None
        if route is not None and route.subresource in routes.OF_KUBELETS:
            # It may take long until a kubelet answers, and that keeps nobody else waiting here.
            ask = partial(self._kubelets.answer, self._engine, route, request)
            return await self._conversations.opened(request.owner, ask)
        flow = fairness.flow(request.owner)
        if not fairness.try_enter(flow):
            kind = "" if route is None else route.kind.resource
            vital, refusable = is_vital(caller, route), may_be_refused(caller, route)
            await fairness.wait(flow, kind, vital=vital, refusable=refusable)
        if request.method not in ("GET", "HEAD"):
            # Writes are stored for several at once: how long they keep the loop busy is guessed from their size.
            try:
                return await self._answer(handling, caller, flow)
            finally:
                fairness.leave(flow, WRITE_SECONDS + len(request.body) * BYTE_SECONDS)
        busy = Stopwatch()
        try:
            return await counted(self._answer(handling, caller, flow), busy)
        finally:
            fairness.leave(flow, busy.seconds)

    def _unexpected(self, handling: Handling, error: Exception) -> Response:
        """The disk has failed, or dray has a bug: the log has the details, the client the id to find them by."""
        request = handling.request
        user = handling.caller.user if handling.caller is not None else ""
        fields = {"id": handling.id, "user": user, "agent": request.header("user-agent")}
        known = isinstance(error, StorageError)
        log.error("%s %s: %s", request.method, request.uri, error, exc_info=not known, extra={"fields": fields})
        if isinstance(error, StorageError):
            answer = failure(errors.storage(error))
        else:
            what = f"{type(error).__name__}; the server's log has more under id {handling.id}"
            answer = failure(errors.internal(what))
        answer.headers = (*answer.headers, ("Audit-Id", handling.id))
        return answer

    def _sent(self, route: Route, events: int) -> None:
        for observer in self._observers:
            observer.sent(route, events)

    def _ended(self, handling: Handling, before: Callable[[], None]) -> None:
        before()
        for observer in self._observers:
            observer.ended(handling)

    async def _admit_again(self, handling: Handling) -> None:
        """Lets a request in if another server knows better than to refuse it. Raises ApiError."""
        with contextlib.suppress(StorageError):
            await self._engine.store.catch_up()
        self._admit(handling)

    def _admit(self, handling: Handling) -> None:
        """Finds out who asks for what, and whether they may. Raises ApiError."""
        request = handling.request
        if "impersonate-user" in request.headers:
            handling.sender = self._gate.sender(request)
        caller = handling.caller = self._gate.identify(request)
        if caller is None:
            raise errors.unauthorized()
        if not request.body:  # else it is on an account already: another server knew of the caller first
            request.owner = tenant(caller.user)
        if self._pages.find(request.path) is not None:
            self._gate.check(caller, request.method.lower(), None, request)
            return
        route = handling.route = self._engine.kinds.find(request.method, request.path, request.query)
        self._gate.check(caller, route.verb, route, request)
        if route.subresource in routes.CONVERSATIONS and route.verb != "create":
            # WebSockets begin with a GET: who may only read must not type.
            self._gate.check(caller, "create", replace(route, verb="create"), request)

    def _answer(self, handling: Handling, caller: Identity, flow: Flow) -> Coroutine[Any, Any, Answer]:
        """Who answers: a page, or a verb. Raises ApiError."""
        request, route = handling.request, handling.route
        if route is None:
            page = self._pages.find(request.path)
            assert page is not None
            if request.method not in ("GET", "HEAD"):
                raise errors.method_not_allowed()
            return page(request, caller)
        if request.oversized:
            raise errors.too_large(MAX_BODY_BYTES)
        is_latest = route.verb == "get" and "resourceVersion" not in request.query  # it waits for the latest state
        by_latest = self._engine.store.is_shared and not is_latest
        return (self._answer_by_latest if by_latest else self._answer_verb)(handling, caller, flow, route)

    async def _answer_by_latest(self, handling: Handling, caller: Identity, flow: Flow, route: Route) -> Answer:
        """A refusal counts only by the latest state, which other servers may have written."""
        seen = self._engine.store.revision
        answer = await self._answer_verb(handling, caller, flow, route)
        if isinstance(answer, Response) and await was_early(self._engine.store, seen, answer.code):
            answer = await self._answer_verb(handling, caller, flow, route)
        return answer

    async def _answer_verb(self, handling: Handling, caller: Identity, flow: Flow, route: Route) -> Answer:
        request = handling.request
        call = Call(route, caller, self._engine.clock(), warnings=route_warnings.warnings(route), turn=flow)
        handling.annotations = call.annotations
        answer: Answer
        try:
            if route.verb == "watch":
                watch = partial(handlers.watch, self._engine, request, call, partial(self._sent, route))
                extra = len(request.uri) - LONG_WATCH
                answer = await (self._long_watches.opened(request.owner, watch, extra) if extra > 0 else watch())
            else:
                answer = await handlers.VERBS[route.verb](self._engine, request, call)
        except ApiError as error:
            answer = failure(error)
        except TooLarge as error:
            answer = failure(errors.storage(error))
        except RecursionError:  # whatever follows an object step by step goes as deep as that is
            answer = failure(errors.bad_request("an object is nested deeper than the server can follow"))
        return with_warnings(answer, call.warnings) if call.warnings else answer
