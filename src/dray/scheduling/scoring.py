"""Which of the nodes that fit is the best: larger scores are better."""

from __future__ import annotations

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
    disliked, weight = 0, 0
    for taint in node.node.spec.taints:
        disliked += taint.effect == "PreferNoSchedule" and not is_tolerated(pod.pod.spec.tolerations, taint)
    for each, term in pod.preferred:
        weight += each if term.matches(node.name, node.node.metadata.labels) else 0
    return -disliked, weight
