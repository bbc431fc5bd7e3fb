"""The application: static files for everybody, everything else for those who are logged in.

    /dashboard/            the page                 /dashboard/api/login     token or one-time code → cookie and key
    /dashboard/NAME.js     its parts                /dashboard/api/…         documents, streams, changes

A request that comes from another site, or from another port of this host, is refused before it is looked at.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeVar

import msgspec

from dray.api import kinds
from dray.api.registry import Kind
from dray.api.resource import ResourceClaim
from dray.api.status import ApiError
from dray.dashboard import static_files, view_stream
from dray.dashboard.access import Access
from dray.dashboard.answers import document, long_document, refusal, stream
from dray.dashboard.fleet_stream import open_fleet
from dray.dashboard.sessions import MOST_STREAMS, Session, Sessions
from dray.live.documents import NoSuchThing
from dray.live.rights import may
from dray.maintenance import out_of_service
from dray.process.http import Answer, Request, Response
from dray.process.tasks import end
from dray.reconcile import Clock
from dray.snapshot import SnapshotError
from dray.snapshot.pod_explanation import explain_pod
from dray.views.explanation import Picture, allocated_picture, claim_picture, pod_picture
from dray.views.grouping import GroupingError
from dray.views.waiting import claims_for

PREFIX: Final = "/dashboard/"
API: Final = f"{PREFIX}api/"
KEY_HEADER: Final = "x-dray-key"
MOST_BYTES: Final = 64 * 1024
AT_ONCE: Final = 2
"""Explanations and previews that are worked out at a time, of all viewers; one of each user."""

log = logging.getLogger(__name__)

T = TypeVar("T")
Handler = Callable[[Session, Request], Awaitable[Answer]]


class LogIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What somebody shows at the door."""

    token: str = ""
    code: str = ""
    namespace: str = ""


class Named(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule."""

    name: str


class Evicting(Named, frozen=True, forbid_unknown_fields=True):
    """A rule, a node, or a slice of a pool, which can only be confirmed: its driver publishes the taint."""

    kind: Literal["rule", "node", "slice"] = "rule"


EVICTING: Final = {"rule": kinds.RULES, "node": kinds.NODES, "slice": kinds.SLICES}


class Dashboard:
    """An application for `process.http.Server`, below `/dashboard/`. `close` it when the server stops."""

    def __init__(self, access: Access, clock: Clock, *, is_encrypted: bool) -> None:
        """`is_encrypted` tells whether browsers come over TLS; without it, only loopback should be listened on."""
        self.sessions = Sessions(access, clock)
        self._access = access
        self._clock = clock
        self._files = static_files.load()
        self._is_encrypted = is_encrypted
        self._cookie = "__Secure-dray" if is_encrypted else "dray"
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._tidying: asyncio.Task[None] | None = None
        self._reads: dict[str, Handler] = {
            "session": self._session,
            "fleet": self._fleet,
            "watch": self._watch,
            "explain": self._explain,
        }
        self._writes: dict[str, Handler] = {
            "logout": self._log_out,
            "preview": self._preview,
            "apply": self._apply,
            "confirm": self._on_evicting(out_of_service.confirm),
            "stop": self._on_evicting(out_of_service.stop),
            "undo": self._undo,
        }

    def link(self, token: str, address: str) -> str:
        """A link that logs whoever opens it first in as the owner of a token, once, within an hour."""
        return f"{address}{PREFIX}#/login?code={self.sessions.new_code(token)}"

    async def close(self) -> None:
        """Ends all sessions."""
        if self._tidying is not None:
            await end([self._tidying])
        await self.sessions.close()

    def admit(self, request: Request) -> Response | None:
        """Looks at a request before its body is read: nobody is known yet, so little is held, and of each one alone."""
        request.owner = f"{PREFIX} from {request.peer.address}"
        length = request.header("content-length")
        if request.header("transfer-encoding") or not length.isdecimal() or int(length) > MOST_BYTES:
            return refusal(413, f"more than {MOST_BYTES} bytes, or nobody knows how many")
        return None

    async def __call__(self, request: Request) -> Answer:
        """Answers every request below the prefix."""
        try:
            return await self._answer(request)
        except ApiError as error:
            return refusal(error.code, str(error))
        except (out_of_service.ChangeError, GroupingError, SnapshotError) as error:
            return refusal(422, str(error))
        except NoSuchThing as error:
            return refusal(404, str(error))
        except (OSError, TimeoutError) as error:
            return refusal(502, f"the cluster does not answer: {error}")

    async def _answer(self, request: Request) -> Answer:
        if not request.path.startswith(API):
            return self._static(request)
        if not _is_own(request, self._is_encrypted):
            return refusal(403, "this request comes from another site")
        if request.oversized or len(request.body) > MOST_BYTES:
            return refusal(413, f"more than {MOST_BYTES} bytes")
        name = request.path.removeprefix(API)
        if name == "login":
            return await self._log_in(request) if request.method == "POST" else refusal(405, "only POST")
        reads, writes = name in self._reads, name in self._writes
        if not reads and not writes:
            return refusal(404, "there is no such page")
        if request.method != ("GET" if reads else "POST"):
            return refusal(405, f"only {'GET' if reads else 'POST'}")
        session = await self.sessions.find(self._cookie_of(request), request.header(KEY_HEADER))
        if session is None:
            return refusal(401, "log in first")
        return await (self._reads[name] if reads else self._writes[name])(session, request)

    def _static(self, request: Request) -> Answer:
        if request.method not in ("GET", "HEAD"):
            return refusal(405, "only GET")
        if request.path == PREFIX.rstrip("/"):
            return Response(307, b"", headers=(("Location", PREFIX), ("Cache-Control", "no-store")))
        file = self._files.get(request.path.removeprefix(PREFIX))
        return static_files.serve(file, request) if file is not None else refusal(404, "there is no such page")

    # Who is there

    async def _log_in(self, request: Request) -> Answer:
        shown = _read(request, LogIn)
        if self._tidying is None:
            self._tidying = asyncio.get_running_loop().create_task(self.sessions.tidy())
        session, cookie, key = await self.sessions.log_in(token=shown.token, code=shown.code, namespace=shown.namespace)
        log.info("dashboard: %s logged in from %s", session.caller.user, request.peer.address)
        return document({"user": session.caller.user, "key": key}, headers=(self._set_cookie(cookie),))

    async def _log_out(self, _session: Session, request: Request) -> Answer:
        await self.sessions.log_out(self._cookie_of(request))
        return document({}, headers=(self._set_cookie("", age=0),))

    def _set_cookie(self, value: str, age: int = 24 * 3600) -> tuple[str, str]:
        secure = "; Secure" if self._is_encrypted else ""
        text = f"{self._cookie}={value}; Path={PREFIX}; Max-Age={age}; HttpOnly; SameSite=Strict{secure}"
        return "Set-Cookie", text

    def _cookie_of(self, request: Request) -> str:
        """Ours has letters of base64 alone: nothing in it is quoted."""
        for one in request.header("cookie").split(";"):
            name, _, value = one.partition("=")
            if name.strip() == self._cookie:
                return value.strip()
        return ""

    async def _session(self, session: Session, _request: Request) -> Answer:
        client = session.caller.reader
        rights = {verb: await may(client, verb, kinds.RULES) for verb in ("create", "patch", "delete")}
        return document(
            {
                "user": session.caller.user,
                "server": self._access.name,
                "namespace": session.namespace,
                "mayTaint": rights["create"] and rights["patch"],
                "mayUntaint": rights["delete"],
            }
        )

    # What is seen

    async def _fleet(self, session: Session, request: Request) -> Answer:
        viewer = await session.viewer(self._clock)
        fleet = await open_fleet(viewer, request.query.get("by", ""), request.query.get("cel", ""))
        return _streamed(session, fleet.lines())

    async def _watch(self, session: Session, request: Request) -> Answer:
        name = request.query.get("view", "")
        if name not in view_stream.VIEWS:
            return refusal(404, f"there is no view {name!r}; there are {', '.join(view_stream.VIEWS)}")
        viewer = await session.viewer(self._clock)
        if request.query.get("once"):
            async with session.turn:
                seen = await view_stream.VIEWS[name](viewer, request.query)
                return await long_document(lambda: seen)
        return _streamed(session, view_stream.follow(viewer, name, request.query))

    async def _explain(self, session: Session, request: Request) -> Answer:
        viewer = await session.viewer(self._clock)
        pod, claim = request.query.get("pod", ""), request.query.get("claim", "")
        async with session.turn, self._turn:
            snapshot = await viewer.snapshot()

            def work() -> Picture:
                now = datetime.now(UTC)
                if pod:
                    told = explain_pod(snapshot, pod)
                    return pod_picture(told, claims_for(told.pod, snapshot.objects(ResourceClaim)), now)
                found = snapshot.claim(claim)
                if found.status.allocation is not None:
                    return allocated_picture(found)
                return claim_picture(claim, snapshot.explain(claim), now)

            return await long_document(work)

    # What is changed

    async def _preview(self, session: Session, request: Request) -> Answer:
        wish = _read(request, out_of_service.Wish)
        viewer = await session.viewer(self._clock)
        async with session.turn, self._turn:
            seen = await out_of_service.preview(await viewer.snapshot(), session.caller.writer, wish)
            return await long_document(seen.to_dict)

    async def _apply(self, session: Session, request: Request) -> Answer:
        wish = _read(request, out_of_service.Wish)
        viewer = await session.viewer(self._clock)
        async with session.turn, self._turn:
            return document(await out_of_service.apply(await viewer.snapshot(), session.caller.writer, wish))

    def _on_evicting(self, change: Callable[[Any, str, Kind], Awaitable[None]]) -> Handler:
        async def handler(session: Session, request: Request) -> Answer:
            meant = _read(request, Evicting)
            await change(session.caller.writer, meant.name, EVICTING[meant.kind])
            return document({})

        return handler

    async def _undo(self, session: Session, request: Request) -> Answer:
        await out_of_service.undo(session.caller.writer, _read(request, Named).name)
        return document({})


def _is_own(request: Request, is_encrypted: bool) -> bool:
    """Whether a request comes from the page itself, by what the browser says of where it comes from."""
    if request.header("sec-fetch-site") not in ("", "same-origin", "none"):
        return False
    origin = request.header("origin")
    scheme = "https" if is_encrypted else "http"
    return not origin or origin == f"{scheme}://{request.header('host')}"


def _read(request: Request, type_: type[T]) -> T:
    """The body. Raises ApiError (400, 415)."""
    if request.header("content-type").partition(";")[0].strip() != "application/json":
        raise ApiError(415, "UnsupportedMediaType", "only application/json")
    try:
        return msgspec.json.decode(request.body, type=type_)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ApiError(400, "BadRequest", f"the body cannot be read: {_in_words(str(error))}") from None


def _in_words(problem: str) -> str:
    """What a decoder says of a field of the wrong type, for people: `hours must be a whole number or nothing, …`."""
    found = _WRONG_TYPE.fullmatch(problem)
    if found is None:
        return problem
    wanted, given = (
        " or ".join(_TYPES.get(one, one) for one in found[name].split(" | ")) for name in ("wanted", "given")
    )
    return f"{found['field'] or 'it'} must be {wanted}, and is {given}"


_WRONG_TYPE: Final = re.compile(
    r"Expected `(?P<wanted>[^`]+)`, got `(?P<given>[^`]+)`(?: - at `\$\.?(?P<field>[^`]*)`)?"
)
_TYPES: Final = {
    "int": "a whole number",
    "float": "a number with a fraction",
    "str": "a text",
    "bool": "true or false",
    "null": "nothing",
    "array": "a list",
    "object": "an object",
}


def _streamed(session: Session, lines: AsyncIterator[bytes]) -> Answer:
    if session.streams >= MOST_STREAMS:
        return refusal(429, "too many views are open at once: close some tabs")
    session.streams += 1

    def ended() -> None:
        session.streams -= 1

    return stream(_closing(lines), ended)


async def _closing(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Failures of a stream end it; the page comes again."""
    with contextlib.suppress(ApiError, OSError):
        async for line in lines:
            yield line
