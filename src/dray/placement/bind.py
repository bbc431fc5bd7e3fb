"""From a result to what is written: PlacementDecisions and the placement's status (SVS-80). Pure, like the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dray.api.cluster import (
    ClusterDecision,
    DecisionGroupStatus,
    Placement,
    PlacementDecision,
    PlacementDecisionStatus,
    PlacementStatus,
)
from dray.api.cluster.placement import CONDITION_SATISFIED, SORT_BY_SCORE
from dray.api.cluster.placement_decision import (
    DECISION_GROUP_INDEX_LABEL,
    DECISION_GROUP_NAME_LABEL,
    DECISIONS,
    PLACEMENT_LABEL,
)
from dray.api.conditions import with_conditions
from dray.api.meta import Condition, ObjectMeta, OwnerReference
from dray.api.times import Time
from dray.placement.groups import Group
from dray.placement.result import PlacementResult

API_VERSION = "cluster.open-cluster-management.io/v1beta1"


def decision_objects(placement: Placement, result: PlacementResult) -> tuple[PlacementDecision, ...]:
    """All PlacementDecisions that the placement should have; others of its label are to be deleted."""
    # Scores are written only where they order the decisions; else every change of a score would be a write.
    scores = result.scores if placement.spec.sort_by == SORT_BY_SCORE else {}
    return tuple(
        PlacementDecision(
            kind="PlacementDecision",
            api_version=API_VERSION,
            metadata=_metadata(placement, name, group),
            status=PlacementDecisionStatus(decisions=_entries(clusters, scores)),
        )
        for name, group, clusters in _cut(placement.metadata.name, result)
    )


def decision_names(placement: str, result: PlacementResult) -> Iterator[str]:
    """The names of the PlacementDecisions that a placement of that name should have."""
    return (name for name, _, _ in _cut(placement, result))


def placement_status(
    placement: Placement, result: PlacementResult, now: Time, note: str | None = None
) -> PlacementStatus:
    """The status that the placement should have; `note` says more than PlacementSatisfied does by itself."""
    names: dict[int, list[str]] = {}
    for name, group, _ in _cut(placement.metadata.name, result):
        names.setdefault(group.index, []).append(name)
    return PlacementStatus(
        number_of_selected_clusters=len(result.decisions),
        decision_groups=tuple(
            DecisionGroupStatus(
                decision_group_index=group.index,
                decision_group_name=group.name,
                decisions=tuple(names[group.index]),
                clusters_count=len(group.clusters),
            )
            for group in result.groups
        ),
        conditions=_conditions(placement, result, now, note),
        last_score_update_time=placement.status.last_score_update_time,
    )


def _cut(placement: str, result: PlacementResult) -> Iterator[tuple[str, Group, tuple[str, ...]]]:
    """Object names with the part of a group that each holds; numbers start at 1 and run on over the groups."""
    number = 0
    for group in result.groups:
        for start in range(0, max(len(group.clusters), 1), DECISIONS):
            number += 1
            name = f"{placement}-decision-{number}"
            yield name, group, group.clusters[start : start + DECISIONS]


def _entries(clusters: tuple[str, ...], scores: Mapping[str, int]) -> tuple[ClusterDecision, ...]:
    return tuple(ClusterDecision(cluster_name=name, score=scores.get(name, 0)) for name in clusters)


def _metadata(placement: Placement, name: str, group: Group) -> ObjectMeta:
    owner = OwnerReference(
        api_version=API_VERSION,
        kind="Placement",
        name=placement.metadata.name,
        uid=placement.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )
    labels = {
        PLACEMENT_LABEL: placement.metadata.name,
        DECISION_GROUP_NAME_LABEL: group.name,
        DECISION_GROUP_INDEX_LABEL: str(group.index),
    }
    return ObjectMeta(name=name, namespace=placement.metadata.namespace, labels=labels, owner_references=(owner,))


def _conditions(placement: Placement, result: PlacementResult, now: Time, note: str | None) -> tuple[Condition, ...]:
    """Ours in place of their predecessors; those of others stay. The time changes only with the status."""
    told = [
        Condition(
            type=kind,
            status=condition.status,
            observed_generation=placement.metadata.generation,
            last_transition_time=now,
            reason=condition.reason,
            message=note if note is not None and kind == CONDITION_SATISFIED else condition.message,
        )
        for kind, condition in result.conditions.items()
    ]
    return with_conditions(placement.status.conditions, told)
