"""Where pods want to be: affinity and topology spread."""

from __future__ import annotations

from dray.api.field import invalid, required
from dray.api.generated.core import (
    Affinity,
    NodeAffinity,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    TopologySpreadConstraint,
)
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
        validate_node_selector_term(errors, term.preference, f"{inner}.preference")


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
    for namespace in term.namespaces:
        check.name(errors, f"{path}.namespace", namespace, names.dns_label)
    if not term.topology_key:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    check.name(errors, f"{path}.topologyKey", term.topology_key, names.label_key)


def _validate_weight(errors: Errors, weight: int, path: str) -> None:
    if not 1 <= weight <= 100:
        errors.append(invalid(path, weight, "must be in the range 1-100"))


def validate_spread(errors: Errors, constraints: tuple[TopologySpreadConstraint, ...], path: str) -> None:
    """How evenly pods are spread over zones, nodes and the like."""
    for index, constraint in enumerate(constraints):
        inner = f"{path}[{index}]"
        if constraint.max_skew <= 0:
            errors.append(invalid(f"{inner}.maxSkew", constraint.max_skew, "must be greater than zero"))
        check.required_name(errors, f"{inner}.topologyKey", constraint.topology_key, names.label_key)
        check.required_one_of(
            errors, f"{inner}.whenUnsatisfiable", constraint.when_unsatisfiable, ("DoNotSchedule", "ScheduleAnyway")
        )
        validate_label_selector(errors, constraint.label_selector, f"{inner}.labelSelector")
        _validate_domains(errors, constraint, inner)
    pairs = ((constraint.topology_key, constraint.when_unsatisfiable) for constraint in constraints)
    check.unique(errors, path, pairs)


def _validate_domains(errors: Errors, constraint: TopologySpreadConstraint, path: str) -> None:
    domains = constraint.min_domains
    if domains is None:
        return
    if domains <= 0:
        errors.append(invalid(f"{path}.minDomains", domains, "must be greater than zero"))
    if constraint.when_unsatisfiable != "DoNotSchedule":
        errors.append(invalid(f"{path}.minDomains", domains, "can only be used with DoNotSchedule"))
