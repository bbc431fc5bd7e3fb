"""Questions about rights and identities, asked through the API: access reviews, token reviews and `whoami`.

Each function answers one kind of review by filling its status. Who may ask is decided before, by the roles.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from dray.api import field, registry
from dray.api.field import FieldError
from dray.api.generated import authentication, authorization
from dray.api.generated.rbac import PolicyRule
from dray.api.status import ApiError
from dray.server.errors import invalid
from dray.server.security.authentication import Authenticator
from dray.server.security.authorization import SELECTING, Attributes, Authorizer, selected_fields
from dray.server.security.identity import Identity
from dray.server.security.tokens import TokenError

_AccessReview = TypeVar("_AccessReview", authorization.SubjectAccessReview, authorization.LocalSubjectAccessReview)
_ResourceAttributes = authorization.ResourceAttributes | None
_PathAttributes = authorization.NonResourceAttributes | None


def review_self_access(
    review: authorization.SelfSubjectAccessReview, identity: Identity, authorizer: Authorizer
) -> authorization.SelfSubjectAccessReview:
    """May I? Raises ApiError (422)."""
    spec = review.spec
    _require("SelfSubjectAccessReview", _check_attributes(spec.resource_attributes, spec.non_resource_attributes))
    attributes = _attributes(spec.resource_attributes, spec.non_resource_attributes)
    return replace(review, status=_access(identity, attributes, authorizer))


def review_access(
    review: authorization.SubjectAccessReview, authorizer: Authorizer
) -> authorization.SubjectAccessReview:
    """May they? Raises ApiError (422)."""
    spec = review.spec
    errors = _check_attributes(spec.resource_attributes, spec.non_resource_attributes)
    _require("SubjectAccessReview", [*errors, *_check_subject(spec)])
    return _review_subject(review, authorizer)


def review_local_access(
    review: authorization.LocalSubjectAccessReview, authorizer: Authorizer
) -> authorization.LocalSubjectAccessReview:
    """May they, in the namespace of the review? Raises ApiError (422)."""
    spec = review.spec
    errors = [*_check_attributes(spec.resource_attributes, spec.non_resource_attributes), *_check_subject(spec)]
    if spec.non_resource_attributes is not None:
        errors.append(field.forbidden("spec.nonResourceAttributes", "disallowed on this kind of request"))
    given = spec.resource_attributes.namespace if spec.resource_attributes is not None else ""
    if given != review.metadata.namespace:
        detail = f"must match the namespace of the review, {review.metadata.namespace}"
        errors.append(field.invalid("spec.resourceAttributes.namespace", given, detail))
    _require("LocalSubjectAccessReview", errors)
    return _review_subject(review, authorizer)


def review_self_rules(
    review: authorization.SelfSubjectRulesReview, identity: Identity, authorizer: Authorizer
) -> authorization.SelfSubjectRulesReview:
    """What may I do in a namespace? Raises ApiError (422)."""
    if not review.spec.namespace:
        _require("SelfSubjectRulesReview", [field.required("spec.namespace")])
    rules = authorizer.rules_for(identity, review.spec.namespace)
    status = authorization.SubjectRulesReviewStatus(
        resource_rules=tuple(_resource_rule(rule) for rule in rules if rule.resources),
        non_resource_rules=tuple(_path_rule(rule) for rule in rules if rule.non_resource_urls),
    )
    return replace(review, status=status)


def review_token(review: authentication.TokenReview, authenticator: Authenticator) -> authentication.TokenReview:
    """Whose token is this? A bad one is an answer, a missing one an error. Raises ApiError (422)."""
    if not review.spec.token:
        _require("TokenReview", [field.required("spec.token", "the token to review")])
    try:
        identity, audiences = authenticator.authenticate_token(review.spec.token, review.spec.audiences)
    except TokenError as error:
        return replace(review, status=authentication.TokenReviewStatus(error=f"invalid bearer token: {error}"))
    status = authentication.TokenReviewStatus(authenticated=True, user=identity.user_info(), audiences=audiences)
    return replace(review, status=status)


def review_self(review: authentication.SelfSubjectReview, identity: Identity) -> authentication.SelfSubjectReview:
    """Who am I? (`kubectl auth whoami`)"""
    return replace(review, status=authentication.SelfSubjectReviewStatus(user_info=identity.user_info()))


def _review_subject(review: _AccessReview, authorizer: Authorizer) -> _AccessReview:
    spec = review.spec
    identity = Identity(spec.user, spec.groups, spec.uid, spec.extra)
    attributes = _attributes(spec.resource_attributes, spec.non_resource_attributes)
    return replace(review, status=_access(identity, attributes, authorizer))


def _access(
    identity: Identity, attributes: Attributes, authorizer: Authorizer
) -> authorization.SubjectAccessReviewStatus:
    decision = authorizer.allowed(identity, attributes)
    return authorization.SubjectAccessReviewStatus(allowed=decision.allowed, reason=decision.reason)


def _attributes(resource: _ResourceAttributes, path: _PathAttributes) -> Attributes:
    if resource is not None:
        return Attributes(
            resource.verb,
            resource.group,
            resource.resource,
            resource.subresource,
            resource.namespace,
            resource.name,
            fields=_selected(resource),
        )
    assert path is not None
    return Attributes(path.verb, path=path.path)


def _selected(resource: authorization.ResourceAttributes) -> tuple[tuple[str, str], ...]:
    """What is demanded of fields: as in the query of a list, or taken apart."""
    given = resource.field_selector
    if given is None:
        return ()
    apart = tuple(
        (one.key, one.values[0]) for one in given.requirements if (one.operator, len(one.values)) == ("In", 1)
    )
    return selected_fields(resource.verb, given.raw_selector) or (apart if resource.verb in SELECTING else ())


def _check_attributes(resource: _ResourceAttributes, path: _PathAttributes) -> list[FieldError]:
    if (resource is None) == (path is None):
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [field.invalid("spec.resourceAttributes", resource, detail)]
    return []


def _check_subject(spec: authorization.SubjectAccessReviewSpec) -> list[FieldError]:
    if spec.user or spec.groups:
        return []
    return [field.invalid("spec.user", spec.user, "at least one of user or group must be specified")]


def _require(kind: str, errors: list[FieldError]) -> None:
    if errors:
        raise _invalid(kind, errors)


def _invalid(kind: str, errors: list[FieldError]) -> ApiError:
    group = "authentication.k8s.io" if kind == "TokenReview" else "authorization.k8s.io"
    return invalid(registry.by_kind(f"{group}/v1", kind), "", errors)


def _resource_rule(rule: PolicyRule) -> authorization.ResourceRule:
    return authorization.ResourceRule(
        verbs=rule.verbs, api_groups=rule.api_groups, resources=rule.resources, resource_names=rule.resource_names
    )


def _path_rule(rule: PolicyRule) -> authorization.NonResourceRule:
    return authorization.NonResourceRule(verbs=rule.verbs, non_resource_urls=rule.non_resource_urls)
