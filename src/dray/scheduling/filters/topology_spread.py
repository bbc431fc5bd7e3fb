"""Pods that must be spread evenly over domains."""

from __future__ import annotations

from collections.abc import Callable

from dray.api.generated.core import Node
from dray.scheduling.domain_counts import DomainCounts
from dray.scheduling.filters import node_affinity, taints
from dray.scheduling.node_info import NodeInfo
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.pod_terms import Spread
from dray.scheduling.reasons import Crowded, NodeReason, OutsideTopology
from dray.scheduling.topology import Topology

_CROWDED = (Crowded(),)
_OUTSIDE = (OutsideTopology(),)


def count(topology: Topology, pod: PodInfo, spread: Spread) -> DomainCounts:
    """The pods that a constraint is about, on the nodes that count for it."""
    return topology.count_spread(spread, _suits(pod, spread))


def _suits(pod: PodInfo, spread: Spread) -> Callable[[Node], bool]:
    def suits(node: Node) -> bool:
        labels = node.metadata.labels
        if not all(key in labels for key in spread.keys):
            return False
        if spread.honors_affinity and not node_affinity.is_affine(pod, node):
            return False
        return not (spread.honors_taints and taints.untolerated(pod, node))

    return suits


class SpreadCheck:
    """How many pods may be in a domain for one more to come, by constraint."""

    def __init__(self, pod: PodInfo, topology: Topology) -> None:
        self.limits: list[tuple[DomainCounts, int]] = []
        meta = pod.pod.metadata
        for spread in pod.terms.spread if pod.terms is not None else ():
            counts = count(topology, pod, spread)
            lowest = counts.lowest if len(counts.by_value) >= spread.min_domains else 0
            counts_itself = spread.selection.matches(meta.namespace, meta.labels, topology.namespaces)
            self.limits.append((counts, lowest + spread.max_skew - counts_itself))

    @property
    def is_needed(self) -> bool:
        """Whether the pod may be refused anywhere."""
        return bool(self.limits)

    def check(self, _pod: PodInfo, node: NodeInfo) -> tuple[NodeReason, ...]:
        """Whether one more pod in the domains of the node is not too many."""
        labels = node.node.metadata.labels
        for counts, most in self.limits:
            value = labels.get(counts.key)
            if value is None:
                return _OUTSIDE
            if counts.by_value.get(value, 0) > most:
                return _CROWDED
        return ()
