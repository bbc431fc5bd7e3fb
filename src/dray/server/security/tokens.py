"""Service-account tokens: signed JWTs with Kubernetes' claims, bound to a ServiceAccount and optionally to a pod, node
or secret, and good only as long as those objects live."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Protocol

import msgspec
from joserfc import jwk, jwt
from joserfc.errors import JoseError

from dray.api import meta
from dray.api.recent import Recent
from dray.server.security.identity import (
    CREDENTIAL_ID,
    NODE_NAME,
    NODE_UID,
    POD_NAME,
    POD_UID,
    Identity,
    authenticated,
    service_account_groups,
    service_account_user,
)

ISSUER = "https://kubernetes.default.svc.cluster.local"
ALGORITHM = "ES256"
# As Kubernetes allows for clocks that differ.
LEEWAY_SECONDS = 60
MAX_TOKEN_LENGTH = 16 * 1024
MAX_CACHED_TOKENS = 8192
MOST_CACHED = 32 * 1024 * 1024
"""Bytes of what is known of tokens; guessed, and rather too many."""
_TOKEN_BYTES = 3072
_AUDIENCE_BYTES = 64

Clock = Callable[[], float]


class ObjectLookup(Protocol):
    """Finds a stored object of the core group, such as ("pods", "default", "web-0")."""

    def __call__(self, resource: str, namespace: str, name: str) -> meta.Object | None:
        """The object, None if there is none."""


class TokenError(Exception):
    """A token is not good. The message says why, without the token."""


class Reference(msgspec.Struct, frozen=True, omit_defaults=True):
    """An object by name and uid."""

    name: str = ""
    uid: str = ""


class Binding(msgspec.Struct, frozen=True, omit_defaults=True):
    """The `kubernetes.io` claim: which objects a token stands and falls with."""

    namespace: str
    serviceaccount: Reference
    pod: Reference | None = None
    node: Reference | None = None
    secret: Reference | None = None


class Claims(msgspec.Struct, frozen=True, omit_defaults=True):
    """The claims of a token."""

    iss: str
    sub: str
    aud: tuple[str, ...]
    exp: int
    nbf: int
    iat: int
    binding: Binding = msgspec.field(name="kubernetes.io")
    jti: str = ""


class _Verified(msgspec.Struct, frozen=True):
    """A token whose signature is good, and the identity it gives while its objects live."""

    claims: Claims
    identity: Identity
    server_audiences: tuple[str, ...]


class ServiceAccountTokens:
    """Signs tokens, and verifies them: the signature once per token, time and bound objects on every use."""

    def __init__(self, signing_key: bytes, lookup: ObjectLookup, clock: Clock, audiences: tuple[str, ...] = ()) -> None:
        """`signing_key` is a P-256 key (PEM); `audiences` are those of this server, by default its issuer URL."""
        self._key = jwk.ECKey.import_key(signing_key)
        self._header = {"alg": ALGORITHM, "kid": self._key.thumbprint()}
        self._lookup = lookup
        self._clock = clock
        self._verified: Recent[bytes, _Verified] = Recent(MAX_CACHED_TOKENS, MOST_CACHED)
        self.audiences = audiences or (ISSUER,)

    @property
    def public_key(self) -> dict[str, Any]:
        """What tokens can be checked with (a JWK)."""
        return {**self._key.as_dict(private=False), "kid": self._header["kid"]}

    def sign(
        self, binding: Binding, audiences: tuple[str, ...], lifetime: dt.timedelta, now: dt.datetime
    ) -> tuple[str, dt.datetime]:
        """A token for a ServiceAccount, and when it expires. No audience means this server."""
        issued = int(now.timestamp())
        claims = Claims(
            iss=ISSUER,
            sub=service_account_user(binding.namespace, binding.serviceaccount.name),
            aud=audiences or self.audiences,
            exp=issued + int(lifetime.total_seconds()),
            nbf=issued,
            iat=issued,
            jti=str(uuid.uuid4()),
            binding=binding,
        )
        token = jwt.encode(self._header, msgspec.to_builtins(claims), self._key, algorithms=[ALGORITHM])
        return token, dt.datetime.fromtimestamp(claims.exp, dt.UTC)

    def verify(
        self, token: str, audiences: tuple[str, ...] = (), digest: bytes | None = None
    ) -> tuple[Identity, tuple[str, ...]]:
        """The identity of a token and which of `audiences` (by default this server's) it is for. Raises TokenError.

        `digest` is `digest_of(token)`, for callers that have it already.
        """
        digest = digest or digest_of(token)
        verified = self._verified.get(digest)
        if verified is None:
            verified = self._verify_signature(token)
            size = _TOKEN_BYTES + len(token) + _AUDIENCE_BYTES * len(verified.claims.aud)
            self._verified.put(digest, verified, size)
        claims = verified.claims
        now = self._clock()
        if now > claims.exp + LEEWAY_SECONDS:
            self._verified.drop(digest)
            raise TokenError("service account token has expired")
        if now + LEEWAY_SECONDS < claims.nbf:
            raise TokenError("service account token is not valid yet")
        matching = verified.server_audiences
        if audiences:
            matching = tuple(audience for audience in audiences if audience in claims.aud)
        if not matching:
            raise TokenError(f"token audiences {list(claims.aud)} do not include this server")
        self._check_binding(claims.binding, now)
        return verified.identity, matching

    def _verify_signature(self, token: str) -> _Verified:
        if len(token) > MAX_TOKEN_LENGTH or token.count(".") != 2:
            raise TokenError("not a service account token")
        try:
            decoded = jwt.decode(token, self._key, algorithms=[ALGORITHM])
            claims = msgspec.convert(decoded.claims, Claims)
        except (JoseError, ValueError, TypeError, RecursionError) as error:
            raise TokenError("not a service account token of this server") from error
        binding = claims.binding
        if claims.iss != ISSUER or claims.sub != service_account_user(binding.namespace, binding.serviceaccount.name):
            raise TokenError("not a service account token of this server")
        audiences = tuple(audience for audience in self.audiences if audience in claims.aud)
        return _Verified(claims, _identity(claims), audiences)

    def _check_binding(self, binding: Binding, now: float) -> None:
        namespace = binding.namespace
        self._check_alive("serviceaccounts", namespace, binding.serviceaccount, now)
        if binding.pod is not None:
            self._check_alive("pods", namespace, binding.pod, now)
        elif binding.node is not None:
            self._check_alive("nodes", "", binding.node, now)
        elif binding.secret is not None:
            self._check_alive("secrets", namespace, binding.secret, now)

    def _check_alive(self, resource: str, namespace: str, reference: Reference, now: float) -> None:
        found = self._lookup(resource, namespace, reference.name)
        if found is None or found.metadata.uid != reference.uid:
            raise TokenError(f"the token is bound to {resource} {reference.name!r}, which is gone")
        deleted = found.metadata.deletion_timestamp
        if deleted is not None and deleted.datetime().timestamp() < now - LEEWAY_SECONDS:
            raise TokenError(f"the token is bound to {resource} {reference.name!r}, which is being deleted")


def digest_of(token: str) -> bytes:
    """By what tokens are looked up: so the time of a look-up says nothing about the tokens there are."""
    return sha256(token.encode("utf-8", "surrogatepass")).digest()


def _identity(claims: Claims) -> Identity:
    binding = claims.binding
    extra: dict[str, tuple[str, ...]] = {}
    if claims.jti:
        extra[CREDENTIAL_ID] = (f"JTI={claims.jti}",)
    if binding.pod is not None:
        extra[POD_NAME], extra[POD_UID] = (binding.pod.name,), (binding.pod.uid,)
    if binding.node is not None:
        extra[NODE_NAME], extra[NODE_UID] = (binding.node.name,), (binding.node.uid,)
    groups = service_account_groups(binding.namespace)
    return authenticated(claims.sub, groups, binding.serviceaccount.uid, extra)


def reference_to(obj: Any) -> Reference:
    """A reference to an object as it is now."""
    return Reference(obj.metadata.name, obj.metadata.uid)
