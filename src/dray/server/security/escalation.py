"""Nobody gives away more than they have: checks for writes of roles and bindings.

Who may `escalate` a role, or `bind` the one that a binding refers to, is exempt, and so is `system:masters`.
"""

from __future__ import annotations

from typing import NamedTuple

from dray.api.generated.rbac import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding
from dray.api.registry import RBAC_GROUP
from dray.server.security.authorization import Attributes
from dray.server.security.identity import Identity
from dray.server.security.rbac import Rbac
from dray.server.security.rules import Rule, count_words, describe, quoted, uncovered

_EVERYTHING = (
    PolicyRule(api_groups=("*",), resources=("*",), verbs=("*",)),
    PolicyRule(non_resource_urls=("*",), verbs=("*",)),
)
_MAX_SHOWN = 50
_FEW = 100


class Question(NamedTuple):
    """Whether somebody has all the rights that some rules give. Answering it may take long, and needs nothing else."""

    identity: Identity
    own: list[Rule]
    wanted: tuple[PolicyRule, ...]

    @property
    def is_long(self) -> bool:
        """Whether there is much to compare."""
        return len(self.own) > _FEW or sum(map(count_words, self.wanted)) > _FEW

    def refusal(self) -> str | None:
        """Why not; None if all is theirs to give."""
        missing = uncovered(self.own, self.wanted)
        if not missing:
            return None
        lines = sorted(describe(rule) for rule in missing[: 10 * _MAX_SHOWN])
        if len(missing) > _MAX_SHOWN:
            lines = [*lines[:_MAX_SHOWN], f"and {len(missing) - _MAX_SHOWN} more"]
        who = f'user "{self.identity.user}" (groups={quoted(self.identity.groups)})'
        return f"{who} is attempting to grant RBAC permissions not currently held:\n" + "\n".join(lines)


def check_role_write(
    rbac: Rbac, identity: Identity, old: Role | ClusterRole | None, new: Role | ClusterRole
) -> Question | str | None:
    """Why a role may not be created (`old` None) or changed to `new`, or what that depends on; None if it may."""
    if identity.is_master or (old is not None and _grants_the_same(old, new)):
        return None
    namespace, resource = new.metadata.namespace, "clusterroles" if isinstance(new, ClusterRole) else "roles"
    if rbac.allowed(identity, Attributes("escalate", RBAC_GROUP, resource, "", namespace, new.metadata.name)).allowed:
        return None
    if (_aggregates(new) or _aggregates(old)) and rbac.missing_permissions(identity, _EVERYTHING):
        return "must have cluster-admin privileges to use the aggregationRule"
    return Question(identity, rbac.rules_of(identity, namespace), new.rules)


def check_binding_write(
    rbac: Rbac,
    identity: Identity,
    old: RoleBinding | ClusterRoleBinding | None,
    new: RoleBinding | ClusterRoleBinding,
) -> Question | str | None:
    """Why a binding may not be created (`old` None) or changed to `new`, or what that depends on; None if it may."""
    if identity.is_master:
        return None
    if old is not None and old.role_ref == new.role_ref and old.subjects == new.subjects:
        return None
    reference, namespace = new.role_ref, new.metadata.namespace
    resource = "clusterroles" if reference.kind == "ClusterRole" else "roles"
    if rbac.allowed(identity, Attributes("bind", RBAC_GROUP, resource, "", namespace, reference.name)).allowed:
        return None
    rules = rbac.role_rules(reference, namespace)
    if rules is None:
        return f'{reference.kind.lower()}.{RBAC_GROUP} "{reference.name}" not found'
    return Question(identity, rbac.rules_of(identity, namespace), rules)


def _grants_the_same(old: Role | ClusterRole, new: Role | ClusterRole) -> bool:
    """Whether only metadata changes, as when the garbage collector takes an owner or a finalizer away.

    Labels count: through them a role becomes part of aggregated ones.
    """
    return (
        old.rules == new.rules and _aggregation(old) == _aggregation(new) and old.metadata.labels == new.metadata.labels
    )


def _aggregation(role: Role | ClusterRole | None) -> object:
    return role.aggregation_rule if isinstance(role, ClusterRole) else None


def _aggregates(role: Role | ClusterRole | None) -> bool:
    return _aggregation(role) is not None
