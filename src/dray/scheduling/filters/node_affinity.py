"""Labels that a pod wants of its node: the node selector, and the required node affinity."""

from __future__ import annotations

from dray.api.generated.core import Node
from dray.scheduling.node_info import NodeInfo
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.reasons import NotAffine

NOT_AFFINE = (NotAffine(),)


def check(pod: PodInfo, node: NodeInfo) -> tuple[NotAffine, ...]:
    """Whether the node has the labels."""
    return () if is_affine(pod, node.node) else NOT_AFFINE


def is_affine(pod: PodInfo, node: Node) -> bool:
    """Whether a node has the labels, whoever is there. A term that cannot be read matches no node."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in pod.pod.spec.node_selector.items()):
        return False
    return pod.required is None or pod.required.matches(node.metadata.name, labels)
