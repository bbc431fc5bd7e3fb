"""Who asks the node, and whether they may: as a kubelet finds it out, by asking the API server."""

from __future__ import annotations

import hashlib
import ssl
from typing import Any, Final, Generic, TypeVar

import msgspec

from dray.api.generated.authentication import TokenReview, TokenReviewSpec
from dray.api.generated.authorization import ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec
from dray.api.recent import Newest
from dray.client import Client
from dray.process.certificate_holder import holder
from dray.process.http import Request
from dray.reconcile import Clock

T = TypeVar("T")

MOST_REMEMBERED: Final = 1024
TOKEN_SECONDS: Final = 120.0
ALLOWED_SECONDS: Final = 300.0
REFUSED_SECONDS: Final = 30.0


class Caller(msgspec.Struct, frozen=True):
    """Who asks."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""


class Callers:
    """Finds out, and remembers for some time."""

    def __init__(self, client: Client, node: str, clock: Clock) -> None:
        self._client = client
        self.node = node
        self._clock = clock
        self._tokens: _Memory[Caller | None] = _Memory()
        self._rights: _Memory[bool] = _Memory()

    async def identify(self, request: Request) -> Caller | None:
        """Who asks; None if that cannot be believed. Raises ApiError or OSError while nobody can be asked."""
        if request.peer.certificate is not None:
            caller = self._holder(request.peer.certificate)
            if caller is not None:
                return caller
        scheme, _, token = request.header("authorization").strip().partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return None
        return await self._owner(token.strip())

    async def may(self, caller: Caller, verb: str, subresource: str) -> bool:
        """Whether a caller may do this with the node. Raises ApiError or OSError while nobody can be asked."""
        key = f"{caller.user}\0{','.join(caller.groups)}\0{verb}\0{subresource}"
        now = self._clock.monotonic()
        known = self._rights.get(key, now)
        if known is not None:
            return known
        asked = ResourceAttributes(verb=verb, version="v1", resource="nodes", subresource=subresource, name=self.node)
        spec = SubjectAccessReviewSpec(
            user=caller.user, groups=caller.groups, uid=caller.uid, resource_attributes=asked
        )
        review = SubjectAccessReview(kind="SubjectAccessReview", api_version="authorization.k8s.io/v1", spec=spec)
        allowed = (await self._client.create(review)).status.allowed
        self._rights.put(key, allowed, now + (ALLOWED_SECONDS if allowed else REFUSED_SECONDS))
        return allowed

    def _holder(self, certificate: dict[str, Any]) -> Caller | None:
        """Common name → user, organisations → groups. The handshake has seen who signed it."""
        user, groups = holder(certificate.get("subject"))
        end = ssl.cert_time_to_seconds(str(certificate.get("notAfter", "")))
        return Caller(user, (*groups, "system:authenticated")) if user and self._clock.now() <= end else None

    async def _owner(self, token: str) -> Caller | None:
        key = hashlib.sha256(token.encode()).hexdigest()
        now = self._clock.monotonic()
        known = self._tokens.get(key, now)
        if known is not None:
            return known
        review = TokenReview(
            kind="TokenReview", api_version="authentication.k8s.io/v1", spec=TokenReviewSpec(token=token)
        )
        status = (await self._client.create(review)).status
        if not status.authenticated:
            return None
        caller = Caller(status.user.username, tuple(status.user.groups), status.user.uid)
        self._tokens.put(key, caller, now + TOKEN_SECONDS)
        return caller


class _Memory(Generic[T]):
    """What was found out, until it is too old, or too much."""

    def __init__(self) -> None:
        self._known: Newest[str, tuple[T, float]] = Newest(MOST_REMEMBERED)

    def get(self, key: str, now: float) -> T | None:
        found = self._known.get(key)
        return found[0] if found is not None and found[1] > now else None

    def put(self, key: str, value: T, until: float) -> None:
        self._known.keep(key, (value, until))
