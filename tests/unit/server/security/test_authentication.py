from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from dray.api.generated.core import ServiceAccount
from dray.api.meta import ObjectMeta
from dray.server.security.authentication import Authenticator
from dray.server.security.identity import ANONYMOUS_IDENTITY, Identity, authenticated, split_service_account_user
from dray.server.security.tokens import Binding, Reference, ServiceAccountTokens, TokenError
from security_world import NOW, FakeClock, Objects

ALICE = authenticated("alice", ("dev",), "1")


@pytest.fixture
def authenticator(tokens: ServiceAccountTokens, clock: FakeClock) -> Authenticator:
    return Authenticator({"alice-token": ALICE}, tokens, clock)


@pytest.mark.parametrize(
    ("authorization", "expected"),
    [
        ("Bearer alice-token", ALICE),
        ("bearer  alice-token ", ALICE),
        ("Bearer alice-token2", None),
        ("Bearer alice-toke", None),
        ("Bearer Alice-token", None),
        ("Bearer alice-token,Bearer alice-token", None),
        ("Bearer a.b.c", None),
        ("Bearer \xff\xfe", None),
        ("Bearer", ANONYMOUS_IDENTITY),
        ("", ANONYMOUS_IDENTITY),
        ("Basic YWxpY2U6eA==", ANONYMOUS_IDENTITY),
        ("alice-token", ANONYMOUS_IDENTITY),
    ],
)
def test_bearer_tokens(authenticator: Authenticator, authorization: str, expected: Identity | None) -> None:
    assert authenticator.authenticate({"authorization": authorization}, None) == expected


def test_no_credential_is_anonymous(authenticator: Authenticator) -> None:
    identity = authenticator.authenticate({}, None)
    assert identity == Identity("system:anonymous", ("system:unauthenticated",))


def test_service_account_tokens(authenticator: Authenticator, tokens: ServiceAccountTokens, objects: Objects) -> None:
    objects.add("serviceaccounts", ServiceAccount(metadata=ObjectMeta(namespace="ns", name="sa", uid="u")))
    token, _ = tokens.sign(Binding("ns", Reference("sa", "u")), (), dt.timedelta(hours=1), NOW)
    identity = authenticator.authenticate({"authorization": f"Bearer {token}"}, None)
    assert identity is not None
    assert identity.user == "system:serviceaccount:ns:sa"
    objects.stored.clear()
    assert authenticator.authenticate({"authorization": f"Bearer {token}"}, None) is None


def certificate(*names: tuple[str, str], before: str = "2026-01-01", after: str = "2027-01-01") -> dict[str, Any]:
    def spelled(day: str) -> str:
        return dt.datetime.fromisoformat(day).strftime("%b %d %H:%M:%S %Y GMT")

    return {
        "subject": tuple((name,) for name in names),
        "notBefore": spelled(before),
        "notAfter": spelled(after),
    }


@pytest.mark.parametrize(
    ("peer", "expected"),
    [
        (certificate(("commonName", "bob")), authenticated("bob")),
        (
            certificate(("organizationName", "a"), ("organizationName", "b"), ("commonName", "bob")),
            authenticated("bob", ("a", "b")),
        ),
        (certificate(("organizationName", "system:masters")), ANONYMOUS_IDENTITY),
        (certificate(("commonName", "")), ANONYMOUS_IDENTITY),
        (certificate(), ANONYMOUS_IDENTITY),
        (certificate(("commonName", "bob"), after="2026-05-31"), None),
        (certificate(("commonName", "bob"), before="2026-06-02"), None),
        ({}, None),
        ({"subject": ((("commonName", "bob"),),), "notBefore": "garbage", "notAfter": "garbage"}, None),
    ],
)
def test_client_certificates(authenticator: Authenticator, peer: dict[str, Any], expected: Identity | None) -> None:
    assert authenticator.authenticate({}, peer) == expected
    assert authenticator.authenticate({}, peer) == expected


def test_the_certificate_counts_before_the_token(authenticator: Authenticator) -> None:
    headers = {"authorization": "Bearer alice-token"}
    assert authenticator.authenticate(headers, certificate(("commonName", "bob"))) == authenticated("bob")
    assert authenticator.authenticate(headers, certificate()) == ALICE


def test_a_certificate_that_expires_on_an_open_connection(authenticator: Authenticator, clock: FakeClock) -> None:
    peer = certificate(("commonName", "bob"), after="2026-06-02")
    assert authenticator.authenticate({}, peer) == authenticated("bob")
    clock.time += 2 * 86400
    assert authenticator.authenticate({}, peer) is None


def test_a_static_token_is_for_this_server_only(authenticator: Authenticator, tokens: ServiceAccountTokens) -> None:
    assert authenticator.authenticate_token("alice-token") == (ALICE, tokens.audiences)
    with pytest.raises(TokenError, match="for this server only"):
        authenticator.authenticate_token("alice-token", ("vault",))


def test_everybody_authenticated_is_in_the_group_once() -> None:
    groups = authenticated("u", ("a", "", "system:authenticated", "a")).groups
    assert groups == ("a", "system:authenticated")


@pytest.mark.parametrize(
    ("user", "account"),
    [
        ("system:serviceaccount:ns:name", ("ns", "name")),
        ("system:serviceaccount:ns:", None),
        ("system:serviceaccount::name", None),
        ("system:serviceaccount:ns:a:b", None),
        ("system:serviceaccount:ns", None),
        ("alice", None),
    ],
)
def test_user_names_of_service_accounts(user: str, account: tuple[str, str] | None) -> None:
    assert split_service_account_user(user) == account
