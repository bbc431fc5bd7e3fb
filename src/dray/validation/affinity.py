"""Where pods want to be: affinity and topology spread."""

from __future__ import annotations

from dray.api.field import duplicate, forbidden, invalid, required
from dray.api.generated.core import (
    Affinity,
    NodeAffinity,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    TopologySpreadConstraint,
)
from dray.api.meta import LabelSelector
from dray.validation import check, names
from dray.validation.context import Errors
from dray.validation.label_selectors import validate_label_selector
from dray.validation.node_selectors import validate_node_selector, validate_node_selector_term

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def validate_affinity(errors: Errors, affinity: Affinity, path: str) -> None:
    """Affinity to nodes, to pods and away from pods."""
    if affinity.node_affinity is not None:
        _validate_node_affinity(errors, affinity.node_affinity, f"{path}.nodeAffinity")
    if affinity.pod_affinity is not None:
        _validate_pod_affinity(errors, affinity.pod_affinity, f"{path}.podAffinity")
    if affinity.pod_anti_affinity is not None:
        _validate_pod_affinity(errors, affinity.pod_anti_affinity, f"{path}.podAntiAffinity")


def _validate_node_affinity(errors: Errors, affinity: NodeAffinity, path: str) -> None:
    if affinity.required_during_scheduling_ignored_during_execution is not None:
        validate_node_selector(
            errors, affinity.required_during_scheduling_ignored_during_execution, f"{path}.{_REQUIRED}"
        )
    for index, term in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        inner = f"{path}.{_PREFERRED}[{index}]"
        _validate_weight(errors, term.weight, f"{inner}.weight")
        validate_node_selector_term(errors, term.preference, f"{inner}.preference", any_values=True)


def _validate_pod_affinity(errors: Errors, affinity: PodAffinity | PodAntiAffinity, path: str) -> None:
    for index, term in enumerate(affinity.required_during_scheduling_ignored_during_execution):
        _validate_term(errors, term, f"{path}.{_REQUIRED}[{index}]")
    for index, weighted in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        inner = f"{path}.{_PREFERRED}[{index}]"
        _validate_weight(errors, weighted.weight, f"{inner}.weight")
        _validate_term(errors, weighted.pod_affinity_term, f"{inner}.podAffinityTerm")


def _validate_term(errors: Errors, term: PodAffinityTerm, path: str) -> None:
    validate_label_selector(errors, term.label_selector, f"{path}.labelSelector")
    validate_label_selector(errors, term.namespace_selector, f"{path}.namespaceSelector")
    _validate_keys(errors, term.match_label_keys, term.label_selector, f"{path}.matchLabelKeys")
    _validate_keys(errors, term.mismatch_label_keys, term.label_selector, f"{path}.mismatchLabelKeys")
    unwanted = set(term.mismatch_label_keys)
    for index, key in enumerate(term.match_label_keys):
        if key in unwanted:
            told = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.append(invalid(f"{path}.matchLabelKeys[{index}]", key, told))
    for namespace in term.namespaces:
        check.name(errors, f"{path}.namespace", namespace, names.dns_label)
    if not term.topology_key:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    check.name(errors, f"{path}.topologyKey", term.topology_key, names.label_key)


def _validate_keys(errors: Errors, keys: tuple[str, ...], selector: LabelSelector | None, path: str) -> None:
    if keys and selector is None:
        errors.append(forbidden(path, "must not be specified when labelSelector is not set"))
        return
    for index, key in enumerate(keys):
        check.name(errors, f"{path}[{index}]", key, names.label_key)


def _validate_weight(errors: Errors, weight: int, path: str) -> None:
    if not 1 <= weight <= 100:
        errors.append(invalid(path, weight, "must be in the range 1-100"))


def validate_spread(errors: Errors, constraints: tuple[TopologySpreadConstraint, ...], path: str) -> None:
    """How evenly pods are spread over zones, nodes and the like."""
    for index, constraint in enumerate(constraints):
        inner = f"{path}[{index}]"
        if constraint.max_skew <= 0:
            errors.append(invalid(f"{inner}.maxSkew", constraint.max_skew, "must be greater than zero"))
        if not constraint.topology_key:
            errors.append(required(f"{inner}.topologyKey", "can not be empty"))
        check.one_of(
            errors, f"{inner}.whenUnsatisfiable", constraint.when_unsatisfiable, ("DoNotSchedule", "ScheduleAnyway")
        )
        for field, policy in (
            ("nodeAffinityPolicy", constraint.node_affinity_policy),
            ("nodeTaintsPolicy", constraint.node_taints_policy),
        ):
            if policy is not None:
                check.one_of(errors, f"{inner}.{field}", policy, ("Honor", "Ignore"))
        _validate_keys(errors, constraint.match_label_keys, constraint.label_selector, f"{inner}.matchLabelKeys")
        validate_label_selector(errors, constraint.label_selector, f"{inner}.labelSelector")
        _validate_domains(errors, constraint, inner)
    _validate_pairs(errors, constraints, path)


def _validate_pairs(errors: Errors, constraints: tuple[TopologySpreadConstraint, ...], path: str) -> None:
    """One constraint for each key and what happens if it cannot be kept; told of all but the last."""
    pairs = [(constraint.topology_key, constraint.when_unsatisfiable) for constraint in constraints]
    last = {pair: index for index, pair in enumerate(pairs)}
    for index, pair in enumerate(pairs):
        if last[pair] != index:
            where = f"{path}[{index}].{{topologyKey, whenUnsatisfiable}}"
            errors.append(duplicate(where, f"{{{pair[0]}, {pair[1]}}}"))


def _validate_domains(errors: Errors, constraint: TopologySpreadConstraint, path: str) -> None:
    domains = constraint.min_domains
    if domains is None:
        return
    if domains <= 0:
        errors.append(invalid(f"{path}.minDomains", domains, "must be greater than zero"))
    if constraint.when_unsatisfiable != "DoNotSchedule":
        errors.append(invalid(f"{path}.minDomains", domains, "can only be used with DoNotSchedule"))
