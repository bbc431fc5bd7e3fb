"""Labels that a pod wants of its node: the node selector, and the required node affinity."""

from __future__ import annotations

from dray.api.node_match import NodeSelectorError, matches_lazily
from dray.scheduling.node_info import NodeInfo
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.reasons import NotAffine

NOT_AFFINE = (NotAffine(),)


def check(pod: PodInfo, node: NodeInfo) -> tuple[NotAffine, ...]:
    """Whether the node has the labels. An affinity that cannot be read matches no node."""
    labels = node.node.metadata.labels
    if any(labels.get(key) != value for key, value in pod.pod.spec.node_selector.items()):
        return NOT_AFFINE
    affinity = pod.pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return ()
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    try:
        return () if required is None or matches_lazily(required, node.name, labels) else NOT_AFFINE
    except NodeSelectorError:
        return NOT_AFFINE
