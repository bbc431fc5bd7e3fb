"""Plans for scaling up against a model that knows only numbers: devices and processors per node and per pod."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scale_up_objects import added, group, plan_for, template, waiting
from snapshot_objects import device_class


class Size(NamedTuple):
    """What a node has, or a pod needs."""

    devices: int
    cpu: int


node_sizes = st.builds(Size, devices=st.integers(0, 3), cpu=st.integers(1, 4))
pod_sizes = st.builds(Size, devices=st.integers(0, 3), cpu=st.integers(1, 4))

TEMPLATES = [template(f"take-{count}", count) for count in (1, 2, 3)]


def objects(pods: Sequence[Size]) -> list[dict[str, object]]:
    made = [device_class(), *TEMPLATES]
    for number, pod in enumerate(pods):
        name = f"take-{pod.devices}" if pod.devices else ""
        made.append(waiting(f"pod-{number}", cpu=pod.cpu, claim_template=name))
    return made


def fits(pods: Sequence[Size], node: Size) -> bool:
    return sum(pod.devices for pod in pods) <= node.devices and sum(pod.cpu for pod in pods) <= node.cpu


def least_cost(pods: Sequence[Size], nodes: Sequence[tuple[Size, int]]) -> int:
    """The cheapest way to put all pods on nodes: every way to split them into sets is tried."""
    best: dict[frozenset[int], int] = {frozenset(): 0}
    everyone = frozenset(range(len(pods)))
    cheapest: dict[frozenset[int], int] = {}
    subsets = [
        frozenset(chosen)
        for size in range(1, len(pods) + 1)
        for chosen in itertools.combinations(range(len(pods)), size)
    ]
    for chosen in subsets:
        prices = [price for node, price in nodes if fits([pods[one] for one in chosen], node)]
        if prices:
            cheapest[chosen] = min(prices)
    for chosen in subsets:
        parts = [part for part in cheapest if part <= chosen and chosen - part in best]
        if parts:
            best[chosen] = min(best[chosen - part] + cheapest[part] for part in parts)
    return best[everyone]


@pytest.mark.req("4381-199", "4381-200", "4381-201")
@settings(max_examples=60)
@given(
    pods=st.lists(pod_sizes, min_size=1, max_size=6),
    nodes=st.lists(st.tuples(node_sizes, st.integers(1, 4)), min_size=1, max_size=3),
)
def test_a_plan_holds_what_it_promises(pods: list[Size], nodes: list[tuple[Size, int]]) -> None:
    sizes = {f"group-{number}": node for number, (node, _) in enumerate(nodes)}
    groups = [
        group(f"group-{number}", devices=node.devices, cpu=node.cpu, price=price)
        for number, (node, price) in enumerate(nodes)
    ]
    answer = plan_for(objects(pods), *groups)
    # Everybody who fits on an empty node of some group is helped, and nobody else.
    helpable = {number for number, pod in enumerate(pods) if any(fits([pod], node) for node, _ in nodes)}
    assert {int(name.rpartition("-")[2]) for name in answer.placements} == helpable
    # No node holds more than it has, and there are just the nodes that the plan names.
    used: dict[str, list[Size]] = {}
    for name, node_name in answer.placements.items():
        used.setdefault(node_name, []).append(pods[int(name.rpartition("-")[2])])
    for node_name, there in used.items():
        assert fits(there, sizes[node_name.partition("#")[0]])
    assert len(used) == answer.nodes, "an empty node was bought"
    assert answer.cost >= least_cost([pods[number] for number in sorted(helpable)], nodes)


@pytest.mark.req("4381-199")
@settings(max_examples=60)
@given(
    pod=pod_sizes,
    count=st.integers(1, 6),
    nodes=st.lists(st.tuples(node_sizes, st.integers(1, 4)), min_size=1, max_size=2),
)
def test_equal_pods_get_as_few_nodes_of_a_group_as_possible(
    pod: Size, count: int, nodes: list[tuple[Size, int]]
) -> None:
    [(node, price), *_] = nodes
    answer = plan_for(objects([pod] * count), group("only", devices=node.devices, cpu=node.cpu, price=price))
    if fits([pod], node):
        assert answer.cost == least_cost([pod] * count, [(node, price)])
    else:
        assert added(answer) == {}
        assert len(answer.unplaced) == count
