"""The checks that a node has to pass for a pod, devices aside: one module each, with a `check(pod, node)`.

A check says what it has against the pod (`reasons`), nothing if it has nothing against it. To add one: a module here,
its reasons in `reasons`, their words in `text`, and a place in one of the two lists.
"""

from collections.abc import Callable
from typing import Final

from dray.scheduling.filters import node_affinity, node_name, ports, resources, taints, unschedulable
from dray.scheduling.node_info import NodeInfo
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.reasons import NodeReason

Filter = Callable[[PodInfo, NodeInfo], tuple[NodeReason, ...]]

OF_THE_NODE: Final[tuple[Filter, ...]] = (node_name.check, unschedulable.check, taints.check, node_affinity.check)
"""Depend on the node and on the pod's `placement_key` alone, so that the answer is remembered."""


def of_its_pods(pod: PodInfo) -> tuple[Filter, ...]:
    """Those that depend on what else is on the node, too, as far as the pod asks for what they are about."""
    return (ports.check, resources.check) if pod.ports else (resources.check,)
