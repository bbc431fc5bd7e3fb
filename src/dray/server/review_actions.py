"""Posts that ask: may I, may they, who am I. The answer is the question with its status filled; nothing is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dray.api import codec
from dray.api.meta import Object
from dray.api.registry import by_kind
from dray.server import body
from dray.server.actions import ActionTable
from dray.server.engine import Call, Engine
from dray.server.http import Answer, Request, Response
from dray.server.objects import with_metadata
from dray.server.options import write_options
from dray.server.security import reviews
from dray.server.security.authentication import Authenticator
from dray.server.security.authorization import Authorizer
from dray.server.security.identity import Identity

Review = Callable[[Any, Identity], Object]
"""Answers a question that somebody asks. Raises ApiError."""


class ReviewAction:
    """One kind of review."""

    def __init__(self, review: Review) -> None:
        self._review = review

    async def __call__(self, engine: Engine, call: Call, request: Request) -> Answer:  # noqa: ARG002
        """Answers the review in the body. Raises ApiError."""
        given = write_options(request.query, "CreateOptions")
        asked = body.decode(request.body, request.header("content-type"), call.route, given, call.warnings)
        asked = with_metadata(asked, namespace=call.route.namespace or asked.metadata.namespace)
        return Response(201, codec.encode(self._review(asked, call.caller)))


def register(actions: ActionTable, authenticator: Authenticator, authorizer: Authorizer) -> None:
    """Adds all reviews to the table."""
    found: dict[tuple[str, str], Review] = {
        ("authorization.k8s.io/v1", "SelfSubjectAccessReview"): lambda asked, caller: reviews.review_self_access(
            asked, caller, authorizer
        ),
        ("authorization.k8s.io/v1", "SubjectAccessReview"): lambda asked, _: reviews.review_access(asked, authorizer),
        ("authorization.k8s.io/v1", "LocalSubjectAccessReview"): lambda asked, _: reviews.review_local_access(
            asked, authorizer
        ),
        ("authorization.k8s.io/v1", "SelfSubjectRulesReview"): lambda asked, caller: reviews.review_self_rules(
            asked, caller, authorizer
        ),
        ("authentication.k8s.io/v1", "TokenReview"): lambda asked, _: reviews.review_token(asked, authenticator),
        ("authentication.k8s.io/v1", "SelfSubjectReview"): reviews.review_self,
    }
    for (api_version, kind), review in found.items():
        actions.add(by_kind(api_version, kind).resource, "", ReviewAction(review))
