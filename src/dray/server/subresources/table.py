"""The table of strategies: for every subresource, and for kinds that are posted but not stored, how it is written."""

from __future__ import annotations

from collections.abc import Mapping

from dray.api.generated.core import Binding
from dray.api.generated.policy import Eviction
from dray.custom.object_rules import CustomRules
from dray.server.security.authentication import Authenticator
from dray.server.security.authorization import Authorizer
from dray.server.security.tokens import ServiceAccountTokens
from dray.server.strategies import CUSTOM, EVERY, PostStrategy, Strategies, Table, UpdateStrategy
from dray.server.subresources import (
    certificate_approval,
    custom_scale,
    namespace_finalize,
    pod_binding,
    pod_eviction,
    review_posts,
    scale,
    service_account_token,
)
from dray.validation import ephemeral_containers, pod_resize
from dray.validation.rules import Rules


def object_itself(rules: Rules) -> UpdateStrategy:
    """All but the status."""
    return UpdateStrategy(
        default=rules.default,
        prepare=rules.prepare_update,
        validate=rules.validate_update,
        warnings=rules.warnings,
    )


def status(rules: Rules) -> UpdateStrategy:
    """Nothing but the status."""
    return UpdateStrategy(default=rules.default_of_status, prepare=rules.prepare_status, validate=rules.validate_status)


def scale_of_workload(rules: Rules) -> UpdateStrategy:
    """The number of replicas, under the rules of the workload."""
    return UpdateStrategy(
        default=rules.default,
        prepare=rules.prepare_update,
        validate=rules.validate_update,
        warnings=rules.warnings,
        view=scale.VIEW,
    )


def scale_of_custom_object(rules: Rules) -> UpdateStrategy:
    """The number of replicas, where the definition says that it is."""
    assert isinstance(rules, CustomRules)
    return UpdateStrategy(
        default=rules.default,
        prepare=rules.prepare_update,
        validate=rules.validate_update,
        view=custom_scale.view(rules.version),
    )


def finalizers_of_namespace(rules: Rules) -> UpdateStrategy:
    """Who must be done before the namespace goes."""
    return UpdateStrategy(
        default=rules.default, prepare=namespace_finalize.finalized, validate=namespace_finalize.problems
    )


def more_ephemeral_containers(rules: Rules) -> UpdateStrategy:
    """Ephemeral containers that are added to a pod."""
    return UpdateStrategy(
        default=rules.default,
        prepare=lambda new, old, _context: ephemeral_containers.with_ephemeral_containers(old, new),
        validate=lambda new, old, _context: ephemeral_containers.validate_ephemeral_containers(new, old),
    )


def size_of_pod(rules: Rules) -> UpdateStrategy:
    """How much cpu and memory the containers of a pod have."""
    return UpdateStrategy(default=rules.default, prepare=pod_resize.resized, validate=pod_resize.problems)


def decision_about_certificate(rules: Rules) -> UpdateStrategy:
    """The conditions Approved and Denied of a request for a certificate."""
    return UpdateStrategy(
        default=rules.default, prepare=certificate_approval.decided, validate=certificate_approval.problems
    )


UPDATES: Table = {
    (EVERY, ""): object_itself,
    (EVERY, "status"): status,
    (EVERY, "scale"): scale_of_workload,
    (CUSTOM, ""): object_itself,
    (CUSTOM, "status"): status,
    (CUSTOM, "scale"): scale_of_custom_object,
    ("certificatesigningrequests.certificates.k8s.io", "approval"): decision_about_certificate,
    ("namespaces", "finalize"): finalizers_of_namespace,
    ("pods", "ephemeralcontainers"): more_ephemeral_containers,
    ("pods", "resize"): size_of_pod,
}

POSTS: Table = {
    ("bindings", ""): PostStrategy(takes=Binding, do=pod_binding.bind),
    ("pods", "binding"): PostStrategy(takes=Binding, do=pod_binding.bind),
    ("pods", "eviction"): PostStrategy(takes=Eviction, do=pod_eviction.evict, group="policy"),
}


def strategies(
    tokens: ServiceAccountTokens, authenticator: Authenticator, authorizer: Authorizer, rules: Mapping[str, Rules]
) -> Strategies:
    """The strategies of a server with these identities and rights; `rules` are those that depend on the server."""
    return Strategies(
        {
            **UPDATES,
            **POSTS,
            ("serviceaccounts", "token"): service_account_token.strategy(tokens),
            **review_posts.strategies(authenticator, authorizer),
        },
        rules,
    )
