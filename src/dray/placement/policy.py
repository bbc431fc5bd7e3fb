"""A Placement's spec, read once: selectors, tolerations, prioritizers and groups ready for use.

What cannot be used is kept as a `PlacementProblem` next to the part it spoils, because when a problem shows depends on
the stage that meets it: upstream does not look at predicates while no cluster is available.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from dray.api.cluster import Placement, PlacementSpec, Toleration
from dray.api.cluster.placement import DISABLE_ANNOTATION, SORT_BY_SCORE
from dray.api.labels import SelectorError
from dray.api.references import ObjectName
from dray.placement.cluster_selector import ClusterSelector
from dray.placement.groups import GroupRules, read_group_rules
from dray.placement.prioritizers import Prioritizer
from dray.placement.prioritizers.addon import AddOn
from dray.placement.prioritizers.resource import ResourceAllocatable
from dray.placement.prioritizers.table import BUILT_IN, read_prioritizers
from dray.placement.problem import MisconfiguredError, PlacementProblem
from dray.placement.tolerations import find_fault


class Weighted(NamedTuple):
    """A prioritizer and how much it counts."""

    prioritizer: Prioritizer
    weight: int


class Weights(NamedTuple):
    """How much Balance and Steady count where nothing else does."""

    balance: int
    steady: int


@dataclass(frozen=True)
class Policy:
    """What a placement asks for. Equal specs need not give equal policies; compare placements, not policies."""

    placement: ObjectName
    idle: str | None
    """Why nothing is to be decided: the placement is being deleted, or scheduling is switched off."""
    cluster_sets: frozenset[str]
    """Empty: all bound sets."""
    count: int | None
    """None: every cluster that can be had."""
    predicates: tuple[ClusterSelector, ...]
    tolerations: tuple[Toleration, ...]
    prioritizers: tuple[Weighted, ...]
    groups: GroupRules
    by_score: bool
    """Whether decisions are listed by score instead of by name."""
    predicate_problem: PlacementProblem | None = None
    toleration_problem: PlacementProblem | None = None
    prioritizer_problem: PlacementProblem | None = None
    group_problem: PlacementProblem | None = None
    warnings: tuple[str, ...] = ()

    @cached_property
    def relative(self) -> bool:
        """Whether one cluster's change can change another's score."""
        return any(weighted.prioritizer.relative for weighted in self.prioritizers)

    @cached_property
    def add_ons(self) -> frozenset[str]:
        """The AddOnPlacementScores that count."""
        found = (weighted.prioritizer for weighted in self.prioritizers)
        return frozenset(prioritizer.resource_name for prioritizer in found if isinstance(prioritizer, AddOn))

    @cached_property
    def needs_scores(self) -> bool:
        """Whether scores play a part in what is decided."""
        return self.count is not None or self.by_score

    @cached_property
    def weights(self) -> Weights | None:
        """The weights, if Balance and Steady alone decide which of many are selected, and scores are not shown."""
        if self.by_score or self.count is None:
            return None
        found = {entry.prioritizer: entry.weight for entry in self.prioritizers}
        balance, steady = found.pop(BUILT_IN["Balance"], 0), found.pop(BUILT_IN["Steady"], 0)
        return Weights(balance, steady) if balance > 0 and not found else None

    @cached_property
    def resources(self) -> tuple[str, ...]:
        """The resources whose extremes among the clusters decide about scores."""
        found = (weighted.prioritizer for weighted in self.prioritizers)
        return tuple(prioritizer.resource for prioritizer in found if isinstance(prioritizer, ResourceAllocatable))

    def wants_set(self, name: str) -> bool:
        """Whether the spec asks for a set, if it is bound."""
        return not self.cluster_sets or name in self.cluster_sets

    @cached_property
    def problems(self) -> tuple[PlacementProblem, ...]:
        """Everything that is wrong with the spec, in the order in which it is met."""
        found = (self.predicate_problem, self.toleration_problem, self.prioritizer_problem, self.group_problem)
        return tuple(problem for problem in found if problem is not None)


def read_policy(placement: Placement) -> Policy:
    """Compile a placement. Never raises for what a user wrote."""
    spec = placement.spec
    predicates, predicate_problem = _read_predicates(spec)
    prioritizers, prioritizer_problem = _read_prioritizers(spec)
    groups, group_problem = _read_groups(spec)
    return Policy(
        placement=ObjectName(placement.metadata.namespace, placement.metadata.name),
        idle=_find_idleness(placement),
        cluster_sets=frozenset(spec.cluster_sets),
        count=spec.number_of_clusters,
        predicates=predicates,
        tolerations=spec.tolerations,
        prioritizers=prioritizers,
        groups=groups,
        by_score=spec.sort_by == SORT_BY_SCORE,
        predicate_problem=predicate_problem,
        toleration_problem=_check_tolerations(spec),
        prioritizer_problem=prioritizer_problem or _check_count(spec),
        group_problem=group_problem,
        warnings=_find_warnings(spec),
    )


def _find_idleness(placement: Placement) -> str | None:
    if placement.metadata.deletion_timestamp is not None:
        return "the placement is being deleted"
    if placement.metadata.annotations.get(DISABLE_ANNOTATION) == "true":
        return f"scheduling is switched off by annotation {DISABLE_ANNOTATION}"
    return None


def _read_predicates(spec: PlacementSpec) -> tuple[tuple[ClusterSelector, ...], PlacementProblem | None]:
    selectors: list[ClusterSelector] = []
    for index, predicate in enumerate(spec.predicates):
        path = f"spec.predicates[{index}].requiredClusterSelector"
        selector = predicate.required_cluster_selector
        if selector.cel_selector.cel_expressions:
            return (), PlacementProblem(
                "Predicate", f"{path}.celSelector: CEL expressions over clusters are not supported"
            )
        try:
            selectors.append(ClusterSelector.of(selector.label_selector, selector.claim_selector, path))
        except SelectorError as error:
            return (), PlacementProblem("Predicate", str(error))
    return tuple(selectors), None


def _check_tolerations(spec: PlacementSpec) -> PlacementProblem | None:
    for index, toleration in enumerate(spec.tolerations):
        fault = find_fault(toleration)
        if fault is not None:
            return PlacementProblem("TaintToleration", f"spec.tolerations[{index}]: {fault}")
    return None


def _read_prioritizers(spec: PlacementSpec) -> tuple[tuple[Weighted, ...], PlacementProblem | None]:
    try:
        return tuple(Weighted(*entry) for entry in read_prioritizers(spec.prioritizer_policy)), None
    except MisconfiguredError as error:
        return (), error.problem


def _check_count(spec: PlacementSpec) -> PlacementProblem | None:
    if spec.number_of_clusters is not None and spec.number_of_clusters < 0:
        return PlacementProblem("", f"spec.numberOfClusters: {spec.number_of_clusters} is negative")
    return None


def _read_groups(spec: PlacementSpec) -> tuple[GroupRules, PlacementProblem | None]:
    try:
        return read_group_rules(spec.decision_strategy.group_strategy), None
    except MisconfiguredError as error:
        return GroupRules(), error.problem


def _find_warnings(spec: PlacementSpec) -> tuple[str, ...]:
    if spec.spread_policy.spread_constraints:
        return ("spec.spreadPolicy has no effect: spreading is not implemented",)
    return ()
