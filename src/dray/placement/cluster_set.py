"""A ManagedClusterSet and the clusters that belong to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from dray.api.cluster import ManagedClusterSet
from dray.api.cluster.cluster_set import CLUSTER_SET_LABEL, SELECTOR_EXCLUSIVE_LABEL, SELECTOR_LABELS, SELECTOR_TYPES
from dray.api.labels import LabelSelector, Requirement, SelectorError

_NOTHING = LabelSelector(matches_nothing=True)


@dataclass(frozen=True, slots=True)
class ClusterSet:
    """How a set selects, and whom it has selected so far.

    A set with a `fault` has no members, and placements that would choose from it stay as they are until it is mended.
    """

    selector: LabelSelector
    fault: str | None = None
    members: set[str] = field(default_factory=set, compare=False)

    @staticmethod
    def of(obj: ManagedClusterSet) -> ClusterSet:
        """Read the selector of a set. No label selector selects nothing, an empty one everything."""
        selector = obj.spec.cluster_selector
        kind = selector.selector_type or SELECTOR_EXCLUSIVE_LABEL
        if kind == SELECTOR_EXCLUSIVE_LABEL:
            # Not checked as a label value: a set whose name is too long for one has no members.
            return ClusterSet(LabelSelector((Requirement(CLUSTER_SET_LABEL, "In", (obj.metadata.name,)),)))
        if kind != SELECTOR_LABELS:
            known = " and ".join(SELECTOR_TYPES)
            return ClusterSet(_NOTHING, f"spec.clusterSelector.selectorType {kind!r} is unknown; known are {known}")
        try:
            return ClusterSet(LabelSelector.of(selector.label_selector))
        except SelectorError as error:
            return ClusterSet(_NOTHING, f"spec.clusterSelector.labelSelector: {error}")
