"""Bringing stored defaults up to date: a new release may need more rights, and an admin may have added some."""

from __future__ import annotations

from msgspec.structs import replace

from dray.api.generated.rbac import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from dray.api.meta import ObjectMeta
from dray.server.security.default_roles.building import AUTOUPDATE
from dray.server.security.rbac import Stored
from dray.server.security.rules import Rule, uncovered


def reconciled(stored: Stored | None, wanted: Stored) -> Stored | None:
    """What is to be stored for the default object `wanted`; None if nothing has to change.

    Missing rules, subjects, labels and annotations are added and nothing is taken away. An object annotated with
    `rbac.authorization.kubernetes.io/autoupdate: "false"` is the admin's own and is left alone. A binding to another
    role is, too: roleRef cannot be changed.
    """
    if stored is None:
        return wanted
    if stored.metadata.annotations.get(AUTOUPDATE) == "false":
        return None
    updated = _add_missing(stored, wanted)
    updated = replace(updated, metadata=_add_metadata(stored.metadata, wanted.metadata))
    return None if updated == stored else updated


def _add_missing(stored: Stored, wanted: Stored) -> Stored:
    if isinstance(stored, Role | ClusterRole) and isinstance(wanted, Role | ClusterRole):
        return _add_rules(stored, wanted)
    if isinstance(stored, RoleBinding | ClusterRoleBinding) and isinstance(wanted, RoleBinding | ClusterRoleBinding):
        if stored.role_ref != wanted.role_ref:
            return stored
        missing = tuple(subject for subject in wanted.subjects if subject not in stored.subjects)
        return replace(stored, subjects=(*stored.subjects, *missing))
    return stored


def _add_rules(stored: Role | ClusterRole, wanted: Role | ClusterRole) -> Role | ClusterRole:
    if isinstance(stored, ClusterRole) and isinstance(wanted, ClusterRole) and wanted.aggregation_rule is not None:
        # The rules of an aggregated role are computed; only how it is put together is a default.
        return stored if stored.aggregation_rule else replace(stored, aggregation_rule=wanted.aggregation_rule)
    missing = uncovered([Rule(rule) for rule in stored.rules], wanted.rules)
    return replace(stored, rules=(*stored.rules, *missing)) if missing else stored


def _add_metadata(stored: ObjectMeta, wanted: ObjectMeta) -> ObjectMeta:
    return replace(stored, labels=wanted.labels | stored.labels, annotations=wanted.annotations | stored.annotations)
