"""Placement, its decisions and the scores of add-ons (Open Cluster Management).

The schema is enforced here; what it cannot say, such as an empty key with the operator Equal, is accepted and reported
as the condition PlacementMisconfigured by whoever schedules (SVS-77).
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dray.api.cluster import AddOnPlacementScore, Placement, PlacementDecision, PrioritizerPolicy, Toleration
from dray.api.cluster.addon_placement_score import SCORE_LIMIT
from dray.api.cluster.managed_cluster import EFFECTS, VALUE_LENGTH
from dray.api.cluster.placement import (
    MODE_ADDITIVE,
    MODES,
    OPERATOR_EQUAL,
    OPERATORS,
    SCORE_ADD_ON,
    SCORE_BUILT_IN,
    SCORE_TYPES,
    SPREAD_CONSTRAINTS,
    TOPOLOGY_KEY_TYPES,
    UNSATISFIABLE_ACTIONS,
    WEIGHT_LIMIT,
)
from dray.api.cluster.placement_decision import DECISIONS
from dray.api.field import invalid, required
from dray.api.times import Time
from dray.validation import check, names
from dray.validation.conditions import validate_conditions
from dray.validation.context import Context, Errors
from dray.validation.managed_cluster import validate_key
from dray.validation.rules import Rules


def _default(obj: Placement, _now: Time) -> Placement:
    """Tolerations compare values (OCM-09)."""
    if all(toleration.operator for toleration in obj.spec.tolerations):
        return obj
    tolerations = tuple(
        toleration if toleration.operator else replace(toleration, operator=OPERATOR_EQUAL)
        for toleration in obj.spec.tolerations
    )
    return replace(obj, spec=replace(obj.spec, tolerations=tolerations))


def _check(errors: Errors, new: Placement, _old: Placement | None, _ctx: Context) -> None:
    spec = new.spec
    if spec.number_of_clusters is not None:
        check.not_negative(errors, "spec.numberOfClusters", spec.number_of_clusters)
    for index, toleration in enumerate(spec.tolerations):
        _validate_toleration(errors, toleration, f"spec.tolerations[{index}]")
    _validate_prioritizers(errors, spec.prioritizer_policy)
    _validate_spread(errors, new)


def _validate_toleration(errors: Errors, toleration: Toleration, path: str) -> None:
    """What the schema says of a toleration (OCM-08..11)."""
    if toleration.key:
        validate_key(errors, toleration.key, f"{path}.key")
    check.one_of(errors, f"{path}.operator", toleration.operator or OPERATOR_EQUAL, OPERATORS)
    check.length(errors, f"{path}.value", toleration.value, VALUE_LENGTH)
    if toleration.effect:
        check.one_of(errors, f"{path}.effect", toleration.effect, EFFECTS)


def _validate_prioritizers(errors: Errors, policy: PrioritizerPolicy) -> None:
    path = "spec.prioritizerPolicy"
    check.one_of(errors, f"{path}.mode", policy.mode or MODE_ADDITIVE, MODES)
    for index, config in enumerate(policy.configurations):
        inner = f"{path}.configurations[{index}]"
        weight = config.weight
        if weight is not None and abs(weight) > WEIGHT_LIMIT:
            errors.append(invalid(f"{inner}.weight", weight, f"must be between -{WEIGHT_LIMIT} and {WEIGHT_LIMIT}"))
        coordinate = config.score_coordinate
        if coordinate is None:
            errors.append(required(f"{inner}.scoreCoordinate"))
            continue
        kind = coordinate.type or SCORE_BUILT_IN
        check.one_of(errors, f"{inner}.scoreCoordinate.type", kind, SCORE_TYPES)
        if kind == SCORE_ADD_ON and coordinate.add_on is not None:
            for field, value in (
                ("resourceName", coordinate.add_on.resource_name),
                ("scoreName", coordinate.add_on.score_name),
            ):
                check.required_name(errors, f"{inner}.scoreCoordinate.addOn.{field}", value, names.label_key)


def _validate_spread(errors: Errors, obj: Placement) -> None:
    constraints = obj.spec.spread_policy.spread_constraints
    path = "spec.spreadPolicy.spreadConstraints"
    if not check.fits(errors, path, constraints, SPREAD_CONSTRAINTS):
        return
    for index, term in enumerate(constraints):
        inner = f"{path}[{index}]"
        if not term.topology_key:
            errors.append(required(f"{inner}.topologyKey"))
        check.required_one_of(errors, f"{inner}.topologyKeyType", term.topology_key_type, TOPOLOGY_KEY_TYPES)
        if term.max_skew is not None and term.max_skew < 1:
            errors.append(invalid(f"{inner}.maxSkew", term.max_skew, "must be at least 1"))
        if term.when_unsatisfiable:
            check.one_of(errors, f"{inner}.whenUnsatisfiable", term.when_unsatisfiable, UNSATISFIABLE_ACTIONS)


def _check_status(errors: Errors, new: Placement, _old: Placement, _ctx: Context) -> None:
    validate_conditions(errors, new.status.conditions, "status.conditions")


def _check_decision(errors: Errors, new: PlacementDecision, _old: PlacementDecision, _ctx: Context) -> None:
    """At most 100 clusters to an object (SVS-80)."""
    if check.fits(errors, "status.decisions", new.status.decisions, DECISIONS):
        for index, decision in enumerate(new.status.decisions):
            if not decision.cluster_name:
                errors.append(required(f"status.decisions[{index}].clusterName"))


def _check_scores(errors: Errors, new: AddOnPlacementScore, _old: AddOnPlacementScore, _ctx: Context) -> None:
    for index, score in enumerate(new.status.scores):
        path = f"status.scores[{index}]"
        if not score.name:
            errors.append(required(f"{path}.name"))
        if abs(score.value) > SCORE_LIMIT:
            errors.append(invalid(f"{path}.value", score.value, f"must be between -{SCORE_LIMIT} and {SCORE_LIMIT}"))
    check.unique(errors, "status.scores", (score.name for score in new.status.scores))


RULES: Final = {
    "Placement": Rules(
        has_generation=True, has_status=True, default=_default, check=_check, check_status=_check_status
    ),
    "PlacementDecision": Rules(has_generation=True, has_status=True, check_status=_check_decision),
    "AddOnPlacementScore": Rules(has_generation=True, has_status=True, check_status=_check_scores),
}
