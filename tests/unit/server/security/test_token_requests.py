from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from dray.api.generated.authentication import BoundObjectReference, TokenRequest, TokenRequestSpec
from dray.api.generated.core import Node, Pod, PodSpec, Secret, ServiceAccount
from dray.api.meta import ObjectMeta
from dray.api.status import ApiError
from dray.api.times import Time
from dray.server.security.token_requests import MAX_SECONDS, IssuedToken, issue_token
from dray.server.security.tokens import ISSUER, ServiceAccountTokens
from security_world import NOW, Objects

ACCOUNT = ServiceAccount(metadata=ObjectMeta(namespace="ns", name="driver", uid="sa-uid"))


@pytest.fixture(autouse=True)
def stored(objects: Objects) -> None:
    objects.add("serviceaccounts", ACCOUNT)
    spec = PodSpec(service_account_name="driver", node_name="n1")
    objects.add("pods", Pod(metadata=ObjectMeta(namespace="ns", name="pod", uid="pod-uid"), spec=spec))
    objects.add("pods", Pod(metadata=ObjectMeta(namespace="ns", name="other"), spec=PodSpec(service_account_name="x")))
    objects.add("nodes", Node(metadata=ObjectMeta(name="n1", uid="node-uid")))
    objects.add("secrets", Secret(metadata=ObjectMeta(namespace="ns", name="s", uid="secret-uid")))


def request(tokens: ServiceAccountTokens, objects: Objects, **spec: Any) -> IssuedToken:
    return issue_token(ACCOUNT, TokenRequest(spec=TokenRequestSpec(**spec)), tokens, objects, NOW)


def test_defaults(tokens: ServiceAccountTokens, objects: Objects) -> None:
    answer = request(tokens, objects).request
    assert (answer.kind, answer.api_version) == ("TokenRequest", "authentication.k8s.io/v1")
    assert (answer.metadata.name, answer.metadata.namespace) == ("driver", "ns")
    assert answer.spec.audiences == (ISSUER,)
    assert answer.spec.expiration_seconds == 3600
    assert answer.status.expiration_timestamp == Time.of(NOW + dt.timedelta(hours=1))
    assert tokens.verify(answer.status.token)[0].user == "system:serviceaccount:ns:driver"


@pytest.mark.parametrize(
    ("kind", "name", "extra"),
    [
        (
            "Pod",
            "pod",
            {"pod-name": ("pod",), "pod-uid": ("pod-uid",), "node-name": ("n1",), "node-uid": ("node-uid",)},
        ),
        ("Node", "n1", {"node-name": ("n1",), "node-uid": ("node-uid",)}),
        ("Secret", "s", {}),
    ],
)
def test_bound_tokens(
    tokens: ServiceAccountTokens, objects: Objects, kind: str, name: str, extra: dict[str, tuple[str, ...]]
) -> None:
    bound = BoundObjectReference(api_version="v1", kind=kind, name=name)
    token = request(tokens, objects, bound_object_ref=bound).request.status.token
    identity = tokens.verify(token)[0]
    shown = {key.rpartition("/")[2]: value for key, value in identity.extra.items()}
    shown.pop("credential-id")
    assert shown == extra


def test_a_year_is_the_most(tokens: ServiceAccountTokens, objects: Objects) -> None:
    issued = request(tokens, objects, expiration_seconds=MAX_SECONDS + 1)
    assert issued.request.spec.expiration_seconds == MAX_SECONDS
    assert issued.warnings == (f"requested expiration of {MAX_SECONDS + 1} seconds shortened to {MAX_SECONDS} seconds",)
    assert request(tokens, objects, expiration_seconds=600).warnings == ()


@pytest.mark.parametrize(
    ("spec", "code", "message"),
    [
        ({"expiration_seconds": 599}, 422, "may not specify a duration less than 10 minutes"),
        ({"expiration_seconds": 0}, 422, "may not specify a duration less than 10 minutes"),
        ({"expiration_seconds": 2**32 + 1}, 422, "may not specify a duration larger than 2^32 seconds"),
        ({"attestations": {"a": ("b",)}}, 422, "spec.attestations"),
        ({"bound_object_ref": ("v1", "Pod", "gone", "")}, 404, 'pods "gone" not found'),
        ({"bound_object_ref": ("v1", "Pod", "pod", "other-uid")}, 409, "(other-uid) does not match"),
        ({"bound_object_ref": ("v1", "Pod", "other", "")}, 400, "different serviceaccount name"),
        ({"bound_object_ref": ("v1", "ConfigMap", "c", "")}, 400, "cannot bind token to object of type"),
        ({"bound_object_ref": ("apps/v1", "Pod", "pod", "")}, 400, "cannot bind token to object of type"),
    ],
)
def test_refusals(
    tokens: ServiceAccountTokens, objects: Objects, spec: dict[str, Any], code: int, message: str
) -> None:
    bound = spec.pop("bound_object_ref", None)
    if bound is not None:
        version, kind, name, uid = bound
        spec["bound_object_ref"] = BoundObjectReference(api_version=version, kind=kind, name=name, uid=uid)
    with pytest.raises(ApiError) as caught:
        request(tokens, objects, **spec)
    assert caught.value.code == code
    assert message in caught.value.status.message


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        (ObjectMeta(name="other"), 422),
        (ObjectMeta(namespace="other"), 422),
        (ObjectMeta(uid="other"), 409),
        (ObjectMeta(name="driver", namespace="ns", uid="sa-uid"), None),
    ],
)
def test_metadata_must_match(
    tokens: ServiceAccountTokens, objects: Objects, metadata: ObjectMeta, code: int | None
) -> None:
    asked = TokenRequest(metadata=metadata)
    if code is None:
        assert issue_token(ACCOUNT, asked, tokens, objects, NOW).request.status.token
        return
    with pytest.raises(ApiError) as caught:
        issue_token(ACCOUNT, asked, tokens, objects, NOW)
    assert caught.value.code == code
