"""Which nodes to look at first, or at all, for a pod that says something about other pods.

Looking at every node would do, too, but slowly: where a pod must not go is known by domain, and where it should, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from dray.scheduling.domain_counts import DomainCounts
from dray.scheduling.filters.inter_pod_affinity import CompanyCheck
from dray.scheduling.filters.topology_spread import SpreadCheck
from dray.scheduling.node_info import NodeInfo
from dray.scheduling.topology import Topology

FIRST_OF_A_WISH: Final = 100


def narrow(topology: Topology, company: CompanyCheck, spread: SpreadCheck) -> Iterator[NodeInfo] | None:
    """The nodes that the constraint with the most domains allows; None if there is no constraint."""
    ways: list[tuple[int, Iterator[NodeInfo]]] = []
    if not company.is_first:
        ways += [(len(one.by_value), topology.nodes_of(one.key, one.fullest_first())) for one in company.wanted]
    ways += [(len(one.by_value), _outside(topology, one)) for one in company.avoided]
    ways += [(len(one.by_value), topology.nodes_of(one.key, one.emptiest_first(most))) for one, most in spread.limits]
    return max(ways, key=_domains)[1] if ways else None


def _domains(way: tuple[int, Iterator[NodeInfo]]) -> int:
    return way[0]


def _outside(topology: Topology, counts: DomainCounts) -> Iterator[NodeInfo]:
    """The nodes of the empty domains, and those in none."""
    yield from topology.nodes_of(counts.key, counts.emptiest_first(0))
    yield from topology.domains(counts.key).get(None, {}).values()


def in_turns(wishes: Iterable[Iterator[NodeInfo]], everything: Iterator[NodeInfo]) -> Iterator[NodeInfo]:
    """The first nodes of each wish, and everything, one of each in turn, every node once.

    A pod may have many wishes, and most say the same of most nodes: beyond the first, they only take time.
    """
    seen: set[str] = set()
    waiting = [*(islice(nodes, FIRST_OF_A_WISH) for nodes in wishes), everything]
    while len(waiting) > 1:
        left = []
        for nodes in waiting:
            node = next((one for one in nodes if one.name not in seen), None)
            if node is not None:
                seen.add(node.name)
                left.append(nodes)
                yield node
        waiting = left
    for nodes in waiting:
        yield from (one for one in nodes if one.name not in seen)
