"""Who is logged in. A session is known by two secrets: a cookie, which scripts cannot read, and a key in a header,
which no other site and no other port of this host can send. Neither is worth anything without the other.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from typing import Final
from weakref import WeakValueDictionary

from dray.api.status import ApiError
from dray.api.tenants import tenant
from dray.dashboard.access import Access, Caller
from dray.live.viewer import Viewer
from dray.reconcile import Clock

IDLE_SECONDS: Final = 8 * 3600.0
LONGEST_SECONDS: Final = 24 * 3600.0
CODE_SECONDS: Final = 3600.0
UNWATCHED_SECONDS: Final = 60.0
"""So long the view of a session that nobody looks at is kept current."""
MOST_SESSIONS: Final = 200
MOST_OF_ONE: Final = 20
MOST_STREAMS: Final = 12
"""Streams of one session: a browser has a few for each tab."""
MOST_VIEWS: Final = 4
"""Sessions of one tenant that see something at a time: each has a view of all that its caller may see, ten megabytes
for a thousand nodes."""


class Tenant:
    """What the sessions of one tenant share: the turn for what takes long, and the room for views."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self.viewing: list[Session] = []
        """Those that have a view, or are about to."""

    async def make_room(self) -> None:
        """Closes views that nobody looks at while there are too many. Raises ApiError (429) if all are looked at."""
        while len(self.viewing) >= MOST_VIEWS:
            idle = [one for one in self.viewing if one.is_idle]
            if not idle:
                raise ApiError(429, "TooManyRequests", "too many sessions of yours see something: close some of them")
            await min(idle, key=lambda one: one.used).close_viewer()


class Session:
    """Somebody who is logged in. The viewer is started when something is to be seen, and ends when nobody looks."""

    def __init__(self, caller: Caller, namespace: str, key: str, now: float, tenant: Tenant) -> None:
        self.caller = caller
        self._tenant = tenant
        self.namespace = namespace
        self.began = self.used = self.checked = now
        self.streams = 0
        self._key = _digest(key)
        self._viewer: Viewer | None = None
        self._starting = asyncio.Lock()

    @property
    def turn(self) -> asyncio.Lock:
        """Shared by the sessions of one tenant, so that what takes long is done for others, too."""
        return self._tenant.turn

    @property
    def is_idle(self) -> bool:
        """Whether there is a view that nobody looks at."""
        return self._viewer is not None and not self.streams

    def has_key(self, key: str) -> bool:
        """Whether this is the session's key."""
        return hmac.compare_digest(self._key, _digest(key))

    async def viewer(self, clock: Clock) -> Viewer:
        """The view of this session, current. Raises ApiError or OSError if it cannot be had."""
        async with self._starting:
            if self._viewer is not None and self._viewer.is_outdated:
                await self.close_viewer()
            if self._viewer is None:
                await self._tenant.make_room()
                self._tenant.viewing.append(self)
                viewer = Viewer(self.caller.reader, clock, self.namespace, pause=self.caller.pause)
                try:
                    await viewer.start()
                except BaseException:
                    self._tenant.viewing.remove(self)
                    await viewer.stop()
                    raise
                self._viewer = viewer
            return self._viewer

    async def close_viewer(self) -> None:
        """Ends the view; the next who looks starts another."""
        viewer, self._viewer = self._viewer, None
        if viewer is not None:
            self._tenant.viewing.remove(self)
            await viewer.stop()

    def is_over(self, now: float) -> bool:
        """Whether it has lasted, or lain idle, for too long."""
        return now - self.began > LONGEST_SECONDS or now - self.used > IDLE_SECONDS


class Sessions:
    """All sessions, by the digest of their cookie; and links that log somebody in once."""

    def __init__(self, access: Access, clock: Clock) -> None:
        self.access = access
        self.clock = clock
        self._sessions: dict[bytes, Session] = {}
        self._codes: dict[bytes, tuple[str, float]] = {}
        self._tenants: WeakValueDictionary[str, Tenant] = WeakValueDictionary()

    def new_code(self, token: str) -> str:
        """A code with which somebody gets in once, in the next hour, as the owner of a token."""
        code = secrets.token_urlsafe(32)
        self._codes[_digest(code)] = (token, self.clock.monotonic())
        return code

    async def log_in(self, *, token: str = "", code: str = "", namespace: str = "") -> tuple[Session, str, str]:
        """A new session, its cookie and its key. Raises ApiError (401) or OSError."""
        now = self.clock.monotonic()
        if code:
            token, made = self._codes.pop(_digest(code), ("", 0.0))
            if not token or now - made > CODE_SECONDS:
                raise ApiError(401, "Unauthorized", "this link was used already, or is too old; log in with a token")
        elif not token or not token.isprintable() or len(token) > 16384:
            raise ApiError(401, "Unauthorized", "the credential is not valid")
        caller = await self.access.enter(token)
        await self._make_room(caller)
        cookie, key = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        shared = self._tenants.setdefault(tenant(caller.user), Tenant())
        session = self._sessions[_digest(cookie)] = Session(caller, namespace, key, now, shared)
        return session, cookie, key

    async def find(self, cookie: str, key: str) -> Session | None:
        """The session of a cookie and a key; None if there is none, or its credential is no longer good."""
        place = _digest(cookie)
        session = self._sessions.get(place)
        if session is None or not session.has_key(key):
            return None
        now = self.clock.monotonic()
        if session.is_over(now):
            await self._end(place)
            return None
        session.used = now
        if now - session.checked >= self.access.check_seconds and not await self._is_good(session):
            await self._end(place)
            return None
        return session

    async def _is_good(self, session: Session) -> bool:
        """Whether the credential still is. Raises OSError if nobody can be asked."""
        session.checked = self.clock.monotonic()
        return await self.access.is_still_in(session.caller)

    async def log_out(self, cookie: str) -> None:
        """Ends a session."""
        await self._end(_digest(cookie))

    async def tidy(self) -> None:
        """Ends sessions that are over, and views that nobody looks at. Until cancelled."""
        while True:
            await self.clock.sleep(UNWATCHED_SECONDS / 4)
            now = self.clock.monotonic()
            for place, session in list(self._sessions.items()):
                if session.is_over(now) or not await self._may_go_on(session):
                    await self._end(place)
                elif not session.streams and now - session.used > UNWATCHED_SECONDS:
                    await session.close_viewer()

    async def _may_go_on(self, session: Session) -> bool:
        """Streams make no requests: whether whoever reads them may is asked here."""
        try:
            return not session.streams or await self._is_good(session)
        except OSError:
            return True

    async def close(self) -> None:
        """Ends all sessions."""
        for place in list(self._sessions):
            await self._end(place)

    async def _make_room(self, caller: Caller) -> None:
        """When there are too many of one tenant its oldest session ends; when in all, that of whoever has most."""
        own = tenant(caller.user)
        while True:
            held: dict[str, list[bytes]] = {}
            for place, one in self._sessions.items():
                held.setdefault(tenant(one.caller.user), []).append(place)
            if len(held.get(own, ())) >= MOST_OF_ONE:
                await self._end(held[own][0])
            elif len(self._sessions) >= MOST_SESSIONS:
                await self._end(max(held.values(), key=len)[0])
            else:
                return

    async def _end(self, place: bytes) -> None:
        session = self._sessions.pop(place, None)
        if session is not None:
            await session.close_viewer()
            await self.access.leave(session.caller)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="surrogateescape")).digest()
