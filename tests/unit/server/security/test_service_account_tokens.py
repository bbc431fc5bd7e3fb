from __future__ import annotations

import base64
import datetime as dt
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwk, jwt

from dray.api.generated.core import Pod, ServiceAccount
from dray.api.meta import ObjectMeta
from dray.api.recent import Recent
from dray.api.times import Time
from dray.server.security import tokens as module
from dray.server.security.certificates import create_private_key
from dray.server.security.tokens import ISSUER, Binding, Reference, ServiceAccountTokens, TokenError
from security_world import NOW, FakeClock, Objects

ACCOUNT = ServiceAccount(metadata=ObjectMeta(namespace="ns", name="driver", uid="sa-uid"))
POD = Pod(metadata=ObjectMeta(namespace="ns", name="pod", uid="pod-uid"))
BINDING = Binding("ns", Reference("driver", "sa-uid"))
BOUND = Binding("ns", Reference("driver", "sa-uid"), pod=Reference("pod", "pod-uid"), node=Reference("n1", "node-uid"))
HOUR = dt.timedelta(hours=1)
KEY = create_private_key()


@pytest.fixture(autouse=True)
def stored(objects: Objects) -> None:
    objects.add("serviceaccounts", ACCOUNT)
    objects.add("pods", POD)


def sign(tokens: ServiceAccountTokens, binding: Binding = BINDING, audiences: tuple[str, ...] = ()) -> str:
    return tokens.sign(binding, audiences, HOUR, NOW)[0]


def part(token: str, index: int) -> dict[str, object]:
    text = token.split(".")[index]
    decoded: dict[str, object] = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return decoded


def test_claims_are_those_of_kubernetes(tokens: ServiceAccountTokens) -> None:
    token, expires = tokens.sign(BOUND, ("vault",), HOUR, NOW)
    claims = part(token, 1)
    assert part(token, 0)["alg"] == "ES256"
    assert claims.pop("jti")
    issued = int(NOW.timestamp())
    assert claims == {
        "iss": ISSUER,
        "sub": "system:serviceaccount:ns:driver",
        "aud": ["vault"],
        "iat": issued,
        "nbf": issued,
        "exp": issued + 3600,
        "kubernetes.io": {
            "namespace": "ns",
            "serviceaccount": {"name": "driver", "uid": "sa-uid"},
            "pod": {"name": "pod", "uid": "pod-uid"},
            "node": {"name": "n1", "uid": "node-uid"},
        },
    }
    assert expires == NOW + HOUR


def test_identity_of_a_bound_token(tokens: ServiceAccountTokens) -> None:
    identity, audiences = tokens.verify(sign(tokens, BOUND))
    assert identity.user == "system:serviceaccount:ns:driver"
    assert identity.uid == "sa-uid"
    assert identity.groups == ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")
    assert identity.extra["authentication.kubernetes.io/pod-name"] == ("pod",)
    assert identity.extra["authentication.kubernetes.io/node-name"] == ("n1",)
    assert identity.extra["authentication.kubernetes.io/credential-id"][0].startswith("JTI=")
    assert audiences == (ISSUER,)


def test_time_is_checked_on_every_use(tokens: ServiceAccountTokens, clock: FakeClock) -> None:
    token = sign(tokens)
    tokens.verify(token)
    clock.time += 3600 + 59
    tokens.verify(token)
    clock.time += 2
    with pytest.raises(TokenError, match="has expired"):
        tokens.verify(token)
    clock.time = NOW.timestamp() - 61
    with pytest.raises(TokenError, match="not valid yet"):
        tokens.verify(token)


def test_audiences(tokens: ServiceAccountTokens) -> None:
    token = sign(tokens, audiences=("vault", "other"))
    with pytest.raises(TokenError, match="audiences"):
        tokens.verify(token)
    assert tokens.verify(token, ("vault", "third"))[1] == ("vault",)


@pytest.mark.parametrize("resource", ["serviceaccounts", "pods"])
def test_bound_objects_are_checked_on_every_use(tokens: ServiceAccountTokens, objects: Objects, resource: str) -> None:
    token = sign(tokens, BOUND)
    tokens.verify(token)
    name = "driver" if resource == "serviceaccounts" else "pod"
    kind = ServiceAccount if resource == "serviceaccounts" else Pod
    objects.add(resource, kind(metadata=ObjectMeta(namespace="ns", name=name, uid="recreated")))
    with pytest.raises(TokenError, match="which is gone"):
        tokens.verify(token)
    del objects.stored[resource, "ns", name]
    with pytest.raises(TokenError, match="which is gone"):
        tokens.verify(token)


def test_a_pod_may_use_its_token_while_it_terminates(
    tokens: ServiceAccountTokens, objects: Objects, clock: FakeClock
) -> None:
    token = sign(tokens, BOUND)
    ends = Time.of(NOW + dt.timedelta(seconds=30))
    objects.add("pods", Pod(metadata=ObjectMeta(namespace="ns", name="pod", uid="pod-uid", deletion_timestamp=ends)))
    tokens.verify(token)
    clock.time += 91
    with pytest.raises(TokenError, match="being deleted"):
        tokens.verify(token)


@pytest.mark.parametrize("binding", [Binding("ns", BINDING.serviceaccount, node=Reference("n1", "u"))])
def test_a_token_bound_to_a_node_dies_with_it(tokens: ServiceAccountTokens, objects: Objects, binding: Binding) -> None:
    with pytest.raises(TokenError, match="nodes 'n1'"):
        tokens.verify(sign(tokens, binding))
    objects.add("nodes", Pod(metadata=ObjectMeta(name="n1", uid="u")))
    tokens.verify(sign(tokens, binding))


def test_tokens_of_another_server(tokens: ServiceAccountTokens, objects: Objects, clock: FakeClock) -> None:
    other = ServiceAccountTokens(create_private_key(), objects, clock)
    with pytest.raises(TokenError, match="of this server"):
        tokens.verify(sign(other))


def encode(value: object) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@pytest.mark.parametrize("header", [{"alg": "none"}, {"alg": "HS256"}, {"alg": []}, [], 1, b"\xff", b"[" * 8000])
@pytest.mark.parametrize("signature", ["", "AAAA", "é"])
def test_forged_headers(tokens: ServiceAccountTokens, header: object, signature: str) -> None:
    payload = sign(tokens).split(".")[1]
    with pytest.raises(TokenError):
        tokens.verify(f"{encode(header)}.{payload}.{signature}")


@pytest.mark.parametrize(
    "change",
    [
        {"iss": "https://elsewhere.example.com"},
        {"sub": "system:serviceaccount:kube-system:admin"},
        {"aud": "not-a-list"},
        {"exp": "soon"},
        {"kubernetes.io": {}},
    ],
)
def test_well_signed_tokens_that_are_not_for_service_accounts(
    tokens: ServiceAccountTokens, signing_key: bytes, change: dict[str, object]
) -> None:
    claims = part(sign(tokens), 1)
    key = jwk.ECKey.import_key(signing_key)
    tokens.verify(jwt.encode({"alg": "ES256"}, claims, key))
    with pytest.raises(TokenError, match="of this server"):
        tokens.verify(jwt.encode({"alg": "ES256"}, claims | change, key))


def test_changed_claims(tokens: ServiceAccountTokens) -> None:
    header, payload, signature = sign(tokens).split(".")
    claims = part(f"{header}.{payload}.{signature}", 1) | {"sub": "system:serviceaccount:kube-system:admin"}
    with pytest.raises(TokenError, match="of this server"):
        tokens.verify(f"{header}.{encode(claims)}.{signature}")


@given(
    st.text(max_size=200) | st.builds(".".join, st.lists(st.text("abcXYZ019-_", max_size=40), min_size=3, max_size=3))
)
def test_garbage_is_refused_and_nothing_else_happens(text: str) -> None:
    tokens = ServiceAccountTokens(KEY, lambda *_: None, lambda: 0.0)
    with pytest.raises(TokenError):
        tokens.verify(text)


def test_huge_tokens_are_refused_at_once(tokens: ServiceAccountTokens) -> None:
    with pytest.raises(TokenError, match="not a service account token"):
        tokens.verify(f"{'a' * module.MAX_TOKEN_LENGTH}.b.c")


def test_the_signature_is_verified_once_and_the_cache_is_bounded(
    tokens: ServiceAccountTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "_verified", Recent(2, module.MOST_CACHED))
    verified: list[str] = []
    decode = jwt.decode

    def counted(token: str, *args: Any, **options: Any) -> jwt.Token:
        verified.append(token)
        return decode(token, *args, **options)

    monkeypatch.setattr(jwt, "decode", counted)
    first, second, third = (sign(tokens) for _ in range(3))
    for token in (first, first, second, first, third, third, first, second):
        tokens.verify(token)
    assert verified == [first, second, third, second]


def test_what_is_known_of_tokens_is_bounded_in_bytes(
    tokens: ServiceAccountTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token of 15 KB has room for thousands of audiences, and whoever has an account may have many of them."""
    monkeypatch.setattr(module, "MOST_CACHED", 2 * 1024 * 1024)
    monkeypatch.setattr(tokens, "_verified", Recent(module.MAX_CACHED_TOKENS, module.MOST_CACHED))
    audiences = (module.ISSUER, *(f"{number:x}" for number in range(300, 2000)))
    signed = [sign(tokens, audiences=audiences) for _ in range(60)]
    tokens.verify(signed[0])
    tracemalloc.start()
    try:
        for token in signed:
            tokens.verify(token)
        assert tracemalloc.get_traced_memory()[0] < 2 * module.MOST_CACHED
    finally:
        tracemalloc.stop()
