"""What both sorts of policies have: what they and their bindings are about, and what their expressions are offered."""

from __future__ import annotations

from typing import Final

from dray.admission.matching import Matcher
from dray.api.generated.admissionregistration import (
    MatchResources,
    MutatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicyBinding,
)

__all__ = ["IGNORE", "Binding", "matcher_of", "offers_of"]

IGNORE: Final = "Ignore"
"""The failure policy of who does not mind."""


class Binding:
    """A binding, compiled."""

    def __init__(self, stored: MutatingAdmissionPolicyBinding | ValidatingAdmissionPolicyBinding) -> None:
        self.name: Final = stored.metadata.name
        self.policy: Final = stored.spec.policy_name
        self.params: Final = stored.spec.param_ref
        self.matcher: Final = matcher_of(stored.spec.match_resources)


def matcher_of(resources: MatchResources | None) -> Matcher:
    """What a policy or a binding is about; without rules, everything."""
    if resources is None:
        return Matcher(None)
    return Matcher(
        resources.resource_rules or None,
        excluded=resources.exclude_resource_rules,
        match_policy=resources.match_policy,
        namespaces=resources.namespace_selector,
        objects=resources.object_selector,
    )


def offers_of(*, has_params: bool, authorizes: bool = True) -> frozenset[str]:
    """What the expressions of a policy are offered."""
    offered = {"variables"}
    if has_params:
        offered.add("params")
    if authorizes:
        offered.add("authorizer")
    return frozenset(offered)
