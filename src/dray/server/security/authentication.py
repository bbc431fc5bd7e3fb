"""From what a request carries to who sent it: client certificate, bearer token, or nobody."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

import msgspec

from dray.api.recent import Bounded, Newest
from dray.api.text_memory import LONGEST, text_length
from dray.process.certificate_holder import holder
from dray.server.security.identity import ANONYMOUS_IDENTITY, Identity, authenticated
from dray.server.security.tokens import Clock, ServiceAccountTokens, TokenError, digest_of

MAX_CACHED_CERTIFICATES = 4096
MAX_SEEN = 1024


class _CertificateHolder(msgspec.Struct, frozen=True):
    identity: Identity | None
    not_before: float
    not_after: float


class Authenticator:
    """Knows the static tokens and asks the service-account tokens for the others."""

    def __init__(
        self,
        static_tokens: Mapping[str, Identity],
        service_accounts: ServiceAccountTokens,
        clock: Clock,
        *,
        anonymous: bool = True,
    ) -> None:
        """Who shows nothing is `system:anonymous`, or nobody if that is switched off."""
        self._static = {digest_of(token): identity for token, identity in static_tokens.items()}
        self._service_accounts = service_accounts
        self._clock = clock
        self._nobody = ANONYMOUS_IDENTITY if anonymous else None
        self._holders: Newest[tuple[Any, ...], _CertificateHolder] = Newest(MAX_CACHED_CERTIFICATES)
        self._seen: Bounded[int, tuple[str, Identity]] = Bounded(MAX_SEEN)
        """Headers with static tokens, by their identity: requests of one connection share theirs."""

    def authenticate(self, headers: Mapping[str, str], peer_certificate: Mapping[str, Any] | None) -> Identity | None:
        """Who sent a request; None if a credential is bad (401).

        `headers` have lower-case names; `peer_certificate` is what `ssl.SSLSocket.getpeercert()` gives for a client
        certificate that the TLS handshake has verified. The certificate counts before the token; a request with
        neither is anonymous, or refused if nobody may be. As in Kubernetes an authorization scheme other than Bearer
        counts as no credential.
        """
        if peer_certificate is not None:
            holder = self._holder(peer_certificate)
            # The handshake checked the dates, but a connection may outlive the certificate.
            if not holder.not_before <= self._clock() <= holder.not_after:
                return None
            if holder.identity is not None:
                return holder.identity
        authorization = headers.get("authorization")
        if authorization is None:
            return self._nobody
        seen = self._seen.get(id(authorization))
        if seen is not None:
            return seen[1]
        scheme, _, token = authorization.strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return self._nobody
        identity = self._static.get(digest_of(token))
        if identity is not None:
            self._remember(authorization, identity)
            return identity
        try:
            return self.authenticate_token(token)[0]
        except TokenError:
            return None

    def _remember(self, authorization: str, identity: Identity) -> None:
        if len(authorization) <= LONGEST:
            self._seen.keep(id(authorization), (authorization, identity))

    def authenticate_token(self, token: str, audiences: tuple[str, ...] = ()) -> tuple[Identity, tuple[str, ...]]:
        """Whose token this is and which of `audiences` (by default this server's) it is for. Raises TokenError."""
        digest = digest_of(token)
        identity = self._static.get(digest)
        if identity is None:
            return self._service_accounts.verify(token, audiences, digest)
        served = self._service_accounts.audiences
        if not audiences:
            return identity, served
        matching = tuple(audience for audience in audiences if audience in served)
        if not matching:
            raise TokenError("the token is for this server only")
        return identity, matching

    def _holder(self, certificate: Mapping[str, Any]) -> _CertificateHolder:
        key = (certificate.get("subject"), certificate.get("notBefore"), certificate.get("notAfter"))
        holder = self._holders.get(key)
        if holder is None:
            holder = _read_holder(*key)
            if text_length(key) <= LONGEST:
                self._holders.keep(key, holder)
        return holder


def _read_holder(subject: Any, not_before: Any, not_after: Any) -> _CertificateHolder:
    """Common name → user, organisations → groups; no identity without one common name."""
    try:
        start, end = ssl.cert_time_to_seconds(not_before), ssl.cert_time_to_seconds(not_after)
    except (TypeError, ValueError, AttributeError):
        return _CertificateHolder(None, 1, 0)
    user, groups = holder(subject)
    return _CertificateHolder(authenticated(user, groups) if user else None, start, end)
