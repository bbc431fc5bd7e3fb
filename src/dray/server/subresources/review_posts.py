"""Posts that ask: may I, may they, who am I. The answer is the question with its status filled; nothing is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dray.api.meta import Object
from dray.api.registry import by_kind
from dray.server.engine import Call, Engine
from dray.server.objects import with_metadata
from dray.server.security import reviews
from dray.server.security.authentication import Authenticator
from dray.server.security.authorization import Authorizer
from dray.server.security.identity import Identity
from dray.server.strategies import PostStrategy

Review = Callable[[Any, Identity], Object]
"""Answers a question that somebody asks. Raises ApiError."""

AUTHORIZATION = "authorization.k8s.io/v1"
AUTHENTICATION = "authentication.k8s.io/v1"


def strategies(authenticator: Authenticator, authorizer: Authorizer) -> dict[tuple[str, str], PostStrategy]:
    """One strategy per kind of review."""
    found: dict[tuple[str, str], Review] = {
        (AUTHORIZATION, "SelfSubjectAccessReview"): lambda asked, caller: reviews.review_self_access(
            asked, caller, authorizer
        ),
        (AUTHORIZATION, "SubjectAccessReview"): lambda asked, _: reviews.review_access(asked, authorizer),
        (AUTHORIZATION, "LocalSubjectAccessReview"): lambda asked, _: reviews.review_local_access(asked, authorizer),
        (AUTHORIZATION, "SelfSubjectRulesReview"): lambda asked, caller: reviews.review_self_rules(
            asked, caller, authorizer
        ),
        (AUTHENTICATION, "TokenReview"): lambda asked, _: reviews.review_token(asked, authenticator),
        (AUTHENTICATION, "SelfSubjectReview"): reviews.review_self,
    }
    return {(by_kind(*which).resource, ""): _strategy(by_kind(*which).hub, review) for which, review in found.items()}


def _strategy(kind: type[Object], review: Review) -> PostStrategy:
    async def answer(_engine: Engine, call: Call, asked: Object) -> Object:
        placed = with_metadata(asked, namespace=call.route.namespace or asked.metadata.namespace)
        return review(placed, call.caller)

    return PostStrategy(takes=kind, do=answer)
