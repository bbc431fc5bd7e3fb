"""What a pod would like of its neighbours, and they of it: soft spreading and preferred affinities.

Rated as kube-scheduler does: each sort of wish is a number per node, brought to 0 … 100 over the nodes that fit, so
that all sorts can be added.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log
from typing import Final

from dray.scheduling.domain_counts import DomainCounts
from dray.scheduling.filters import topology_spread
from dray.scheduling.node_info import NodeInfo
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.topology import Topology

BEST: Final = 100


class Preferences:
    """The wishes about one pod, looked up once for all nodes."""

    def __init__(self, pod: PodInfo, topology: Topology) -> None:
        terms = pod.terms
        self._topology = topology
        self._counted: list[DomainCounts] = []
        self._spread: list[tuple[int, DomainCounts]] = []
        if terms is not None:
            self._counted = [topology.count(weights, key) for key, weights in terms.liked]
            self._spread = [(one.max_skew, topology_spread.count(topology, pod, one)) for one in terms.soft_spread]
        self._liked = topology.attracting(pod)

    def __bool__(self) -> bool:
        return bool(self._counted or self._spread or self._liked)

    def best_first(self) -> list[Iterator[NodeInfo]]:
        """For every wish, the nodes that fulfil it best."""
        nodes_of = self._topology.nodes_of
        found = [nodes_of(counts.key, counts.best_first()) for counts in self._counted]
        found += [nodes_of(counts.key, counts.emptiest_first()) for _, counts in self._spread]
        for key, by_value in self._liked.items():
            found.append(nodes_of(key, iter([value for value, weight in by_value.items() if weight > 0])))
        return found

    def rate(self, nodes: Sequence[NodeInfo]) -> list[float]:
        """How well the wishes are fulfilled on each of the nodes, 0 to 200."""
        return [one + other for one, other in zip(self._rate_company(nodes), self._rate_spread(nodes), strict=True)]

    def _rate_company(self, nodes: Sequence[NodeInfo]) -> list[float]:
        sums = [self._company(node) for node in nodes]
        lowest, highest = min(sums), max(sums)
        if lowest == highest:
            return [0.0] * len(sums)
        return [BEST * (one - lowest) // (highest - lowest) for one in sums]

    def _company(self, node: NodeInfo) -> int:
        labels = node.node.metadata.labels
        score = 0
        for counts in self._counted:
            if counts.key in labels:
                score += counts.by_value.get(labels[counts.key], 0)
        for key, by_value in self._liked.items():
            if key in labels:
                score += by_value.get(labels[key], 0)
        return score

    def _rate_spread(self, nodes: Sequence[NodeInfo]) -> list[float]:
        if not self._spread:
            return [0.0] * len(nodes)
        sums = [self._crowd(node) for node in nodes]
        counted = [one for one in sums if one is not None]
        if not counted or not max(counted):
            return [0.0 if one is None else float(BEST) for one in sums]
        lowest, highest = min(counted), max(counted)
        return [0.0 if one is None else BEST * (highest + lowest - one) // highest for one in sums]

    def _crowd(self, node: NodeInfo) -> int | None:
        """How crowded the domains of a node are; None if it lacks one of the labels."""
        labels = node.node.metadata.labels
        score = 0.0
        for max_skew, counts in self._spread:
            if counts.key not in labels:
                return None
            # A pod more weighs more where there are many domains, as each has few then.
            score += counts.by_value.get(labels[counts.key], 0) * log(len(counts.by_value) + 2) + max_skew - 1
        return round(score)
