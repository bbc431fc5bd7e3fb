"""Taints of the node that keep pods away."""

from __future__ import annotations

from dray.api.generated.core import Node
from dray.api.toleration import is_tolerated
from dray.scheduling.node_info import NodeInfo
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.reasons import UntoleratedTaint


def check(pod: PodInfo, node: NodeInfo) -> tuple[UntoleratedTaint, ...]:
    """The first taint that the pod does not tolerate."""
    return untolerated(pod, node.node)


def untolerated(pod: PodInfo, node: Node) -> tuple[UntoleratedTaint, ...]:
    """The same, whoever is on the node."""
    for taint in node.spec.taints:
        if taint.effect in ("NoSchedule", "NoExecute") and not is_tolerated(pod.pod.spec.tolerations, taint):
            return (UntoleratedTaint(taint.key, taint.value),)
    return ()
