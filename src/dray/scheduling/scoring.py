"""Which of the nodes that fit is the best: larger scores are better."""

from __future__ import annotations

from dray.api.generated.core import PreferredSchedulingTerm
from dray.api.node_match import NodeSelectorError, matches_lazily
from dray.api.node_selector import NodeSelector
from dray.api.toleration import is_tolerated
from dray.scheduling.node_info import NodeInfo
from dray.scheduling.pod_info import PodInfo

Score = tuple[float, ...]

_INDIFFERENT = (0, 0)


def rate(pod: PodInfo, node: NodeInfo) -> Score:
    """How good a choice the node is: what is preferred counts first, then how empty it is.

    Pods that ask for nothing fill a node, too, so that the number of pods decides in the end.
    """
    if not node.node.spec.taints and pod.pod.spec.affinity is None:
        return _INDIFFERENT + node.room_left(pod.requests)
    return preference(pod, node) + node.room_left(pod.requests)


def preference(pod: PodInfo, node: NodeInfo) -> tuple[int, int]:
    """What the node and the pod say about each other: no disliked taints first, then the weight of affinities."""
    taints, terms = node.node.spec.taints, preferred_terms(pod)
    disliked, weight = 0, 0
    for taint in taints:
        disliked += taint.effect == "PreferNoSchedule" and not is_tolerated(pod.pod.spec.tolerations, taint)
    for term in terms:
        weight += term.weight if _matches(term, node) else 0
    return -disliked, weight


def preferred_terms(pod: PodInfo) -> tuple[PreferredSchedulingTerm, ...]:
    """What a pod would like of its node."""
    affinity = pod.pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return ()
    return affinity.node_affinity.preferred_during_scheduling_ignored_during_execution


def _matches(term: PreferredSchedulingTerm, node: NodeInfo) -> bool:
    """Whether a node has what a term would like. A term that cannot be read counts for nothing."""
    try:
        selector = NodeSelector(node_selector_terms=(term.preference,))
        return matches_lazily(selector, node.name, node.node.metadata.labels)
    except NodeSelectorError:
        return False
