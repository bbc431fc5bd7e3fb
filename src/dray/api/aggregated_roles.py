"""ClusterRoles whose rules are those of other ClusterRoles, chosen by label (`aggregationRule`).

The rules written in such a role do not count on dray's server: they are always the sum of the chosen ones, as they are
now. A controller writes what `aggregate` gives into the role, for people and for other servers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dray.api.generated.rbac import AggregationRule, ClusterRole, PolicyRule
from dray.api.labels import LabelSelector, SelectorError


def aggregate(name: str, roles: Mapping[str, ClusterRole]) -> tuple[PolicyRule, ...]:
    """The rules that a ClusterRole gives, its own or the aggregated ones; each rule once."""
    rules = (rule for role in _sources(name, roles) for rule in role.rules)
    return tuple(dict.fromkeys(rules))


def _sources(name: str, roles: Mapping[str, ClusterRole]) -> Iterator[ClusterRole]:
    """The roles whose own rules count. Aggregated roles may choose one another, even in a circle."""
    visited = {name}
    pending = [name]
    while pending:
        role = roles[pending.pop()]
        if role.aggregation_rule is None:
            yield role
            continue
        chosen = [other for other in _chosen(role.aggregation_rule, roles) if other not in visited]
        visited.update(chosen)
        pending.extend(reversed(chosen))


def _chosen(rule: AggregationRule, roles: Mapping[str, ClusterRole]) -> list[str]:
    try:
        selectors = [LabelSelector.of(selector) for selector in rule.cluster_role_selectors]
    except SelectorError:
        # Validation keeps such selectors out; if one is stored all the same, it must not give rights.
        return []
    return sorted(
        name
        for name, candidate in roles.items()
        if any(selector.matches(candidate.metadata.labels) for selector in selectors)
    )
