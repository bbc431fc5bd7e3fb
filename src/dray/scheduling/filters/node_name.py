"""A pod may name its node."""

from __future__ import annotations

from dray.scheduling.node_info import NodeInfo
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.reasons import OtherNode

_OTHER = (OtherNode(),)


def check(pod: PodInfo, node: NodeInfo) -> tuple[OtherNode, ...]:
    """Whether the pod names no node, or this one."""
    wanted = pod.pod.spec.node_name
    return _OTHER if wanted and wanted != node.name else ()
