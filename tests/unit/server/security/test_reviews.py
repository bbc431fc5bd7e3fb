from __future__ import annotations

from typing import Any

import pytest

from dray.api.generated.authentication import SelfSubjectReview, TokenReview, TokenReviewSpec, UserInfo
from dray.api.generated.authorization import (
    LocalSubjectAccessReview,
    NonResourceAttributes,
    ResourceAttributes,
    SelfSubjectAccessReview,
    SelfSubjectAccessReviewSpec,
    SelfSubjectRulesReview,
    SelfSubjectRulesReviewSpec,
    SubjectAccessReview,
    SubjectAccessReviewSpec,
)
from dray.api.meta import ObjectMeta
from dray.api.status import ApiError
from dray.server.security import reviews
from dray.server.security.authentication import Authenticator
from dray.server.security.default_roles import default_objects
from dray.server.security.default_roles.building import cluster_binding, cluster_role, rule, users
from dray.server.security.identity import Identity, authenticated
from dray.server.security.rbac import Rbac
from dray.server.security.tokens import ISSUER, ServiceAccountTokens
from security_world import FakeClock

ALICE = authenticated("alice", ("dev",), "7", {"scopes": ("a", "b")})


@pytest.fixture(scope="module")
def rbac() -> Rbac:
    return Rbac(
        [
            *default_objects(),
            cluster_role("reader", rule("get list", "core", "pods"), rule("get", "core", "secrets", names="s")),
            cluster_binding("reader", users("alice")),
        ]
    )


def pods(verb: str, subresource: str = "") -> ResourceAttributes:
    return ResourceAttributes(verb=verb, resource="pods", namespace="ns", subresource=subresource)


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({"resource_attributes": pods("list")}, True),
        ({"resource_attributes": pods("delete")}, False),
        ({"resource_attributes": pods("get", subresource="log")}, False),
        ({"resource_attributes": ResourceAttributes(verb="get", resource="secrets", name="s")}, True),
        ({"resource_attributes": ResourceAttributes(verb="get", resource="secrets", name="t")}, False),
        ({"non_resource_attributes": NonResourceAttributes(verb="get", path="/version")}, True),
        ({"non_resource_attributes": NonResourceAttributes(verb="get", path="/metrics")}, False),
    ],
)
def test_may_i(rbac: Rbac, spec: dict[str, Any], allowed: bool) -> None:
    review = SelfSubjectAccessReview(spec=SelfSubjectAccessReviewSpec(**spec))
    status = reviews.review_self_access(review, ALICE, rbac).status
    assert status.allowed is allowed
    assert status.reason.startswith("RBAC: allowed by") is allowed
    assert not status.denied


def test_may_they(rbac: Rbac) -> None:
    def allowed(**spec: Any) -> bool:
        review = SubjectAccessReview(spec=SubjectAccessReviewSpec(resource_attributes=pods("get"), **spec))
        return reviews.review_access(review, rbac).status.allowed

    assert allowed(user="alice")
    assert not allowed(user="bob", groups=("dev",))
    assert allowed(groups=("system:masters",))


def test_may_they_here(rbac: Rbac) -> None:
    spec = SubjectAccessReviewSpec(user="alice", resource_attributes=pods("get"))
    review = LocalSubjectAccessReview(metadata=ObjectMeta(namespace="ns"), spec=spec)
    assert reviews.review_local_access(review, rbac).status.allowed


@pytest.mark.parametrize(
    ("review", "field"),
    [
        (SelfSubjectAccessReview(), "spec.resourceAttributes"),
        (
            SelfSubjectAccessReview(
                spec=SelfSubjectAccessReviewSpec(
                    resource_attributes=pods("get"), non_resource_attributes=NonResourceAttributes()
                )
            ),
            "spec.resourceAttributes",
        ),
        (SubjectAccessReview(spec=SubjectAccessReviewSpec(resource_attributes=pods("get"))), "spec.user"),
        (SubjectAccessReview(spec=SubjectAccessReviewSpec(user="alice")), "spec.resourceAttributes"),
        (
            LocalSubjectAccessReview(
                metadata=ObjectMeta(namespace="other"),
                spec=SubjectAccessReviewSpec(user="alice", resource_attributes=pods("get")),
            ),
            "spec.resourceAttributes.namespace",
        ),
        (
            LocalSubjectAccessReview(
                spec=SubjectAccessReviewSpec(user="alice", non_resource_attributes=NonResourceAttributes())
            ),
            "spec.nonResourceAttributes",
        ),
        (SelfSubjectRulesReview(), "spec.namespace"),
        (TokenReview(), "spec.token"),
    ],
)
def test_questions_that_make_no_sense(rbac: Rbac, authenticator: Authenticator, review: Any, field: str) -> None:
    with pytest.raises(ApiError) as caught:
        ask(review, rbac, authenticator)
    assert caught.value.code == 422
    assert caught.value.status.details is not None
    assert [cause.field for cause in caught.value.status.details.causes] == [field]


def ask(review: Any, rbac: Rbac, authenticator: Authenticator) -> Any:
    if isinstance(review, SelfSubjectAccessReview):
        return reviews.review_self_access(review, ALICE, rbac)
    if isinstance(review, SubjectAccessReview):
        return reviews.review_access(review, rbac)
    if isinstance(review, LocalSubjectAccessReview):
        return reviews.review_local_access(review, rbac)
    if isinstance(review, SelfSubjectRulesReview):
        return reviews.review_self_rules(review, ALICE, rbac)
    return reviews.review_token(review, authenticator)


def test_what_may_i_do(rbac: Rbac) -> None:
    review = SelfSubjectRulesReview(spec=SelfSubjectRulesReviewSpec(namespace="ns"))
    status = reviews.review_self_rules(review, ALICE, rbac).status
    assert not status.incomplete
    found = {(rule.resources, rule.verbs, rule.resource_names) for rule in status.resource_rules}
    assert (("pods",), ("get", "list"), ()) in found
    assert (("secrets",), ("get",), ("s",)) in found
    assert any("/version" in rule.non_resource_urls and rule.verbs == ("get",) for rule in status.non_resource_rules)


def test_who_am_i() -> None:
    info = reviews.review_self(SelfSubjectReview(), ALICE).status.user_info
    groups = ("dev", "system:authenticated")
    assert info == UserInfo(username="alice", uid="7", groups=groups, extra={"scopes": ("a", "b")})


@pytest.fixture
def authenticator(tokens: ServiceAccountTokens, clock: FakeClock) -> Authenticator:
    identities: dict[str, Identity] = {"alice-token": ALICE}
    return Authenticator(identities, tokens, clock)


def test_whose_token_is_this(authenticator: Authenticator) -> None:
    def status(token: str, *audiences: str) -> Any:
        review = TokenReview(spec=TokenReviewSpec(token=token, audiences=audiences))
        return reviews.review_token(review, authenticator).status

    good = status("alice-token")
    assert (good.authenticated, good.user.username, good.audiences, good.error) == (True, "alice", (ISSUER,), "")
    bad = status("nobodys-token")
    assert (bad.authenticated, bad.user) == (False, UserInfo())
    assert bad.error.startswith("invalid bearer token")
    assert "nobodys" not in bad.error
    assert not status("alice-token", "vault").authenticated
