"""Of pods in numbers only the first is compared on many nodes; each gets the node that comparing all would give it."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from dray.api.generated.core import Node, Pod, PodSpec
from dray.scheduling import rankings
from dray.scheduling.cluster import Cluster
from dray.scheduling.decide import ENOUGH_NODES, Chosen
from dray.scheduling.node_table import NodeFilter
from dray.scheduling.pod_info import read_pod
from dray.scheduling.refusal import Refused
from dray.scheduling.text import tell
from scheduler_objects import choose, chosen_node, cluster, node, pod

NODES = 70
"""More than are compared, so that there are some behind them."""


class Asked:
    """Counts the nodes that decisions look at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.nodes = 0
        refuses = NodeFilter.refuses

        def counted(asked: NodeFilter, which: object) -> object:
            self.nodes += 1
            return refuses(asked, which)  # type: ignore[arg-type]

        monkeypatch.setattr(NodeFilter, "refuses", counted)


def _alike(spec: PodSpec, name: str) -> Pod:
    made = pod(name)
    return replace(made, spec=spec, metadata=replace(made.metadata, uid=f"uid-{name}"))


def _on(one: Pod, where: str) -> Pod:
    """As it is stored with its node; what it asks for is that very part of its spec."""
    return replace(one, spec=replace(one.spec, node_name=where))


def _anew(here: Cluster) -> Cluster:
    """The same nodes and pods, of which nothing is remembered."""
    fresh = Cluster()
    for each in here.nodes:
        fresh.set_node(None, each.node)
        for info in each.pods.values():
            fresh.set_pod(info.pod, info.pod.metadata.uid)
    return fresh


def _node(number: int, cpu: int) -> Node:
    return node(f"n{number:03}", cpu=str(cpu))


@pytest.mark.parametrize("count", [20, NODES])
def test_the_next_pod_of_a_kind_is_compared_on_the_nodes_that_changed_alone(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    here, asked = cluster(*[_node(number, 100) for number in range(count)]), Asked(monkeypatch)
    spec = pod(cpu="1").spec
    for number in range(2 * min(count, ENOUGH_NODES) - 1):  # as many as no node is full of
        one = _alike(spec, f"p{number}")
        before = asked.nodes
        here.assume(read_pod(one), chosen_node(here, one), {})
        assert asked.nodes - before <= (1 if number else ENOUGH_NODES)


def test_whatever_happens_meanwhile_each_gets_the_node_that_comparing_all_gives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for seed in range(40):
        chance = random.Random(seed)
        monkeypatch.setattr(rankings, "MOST_CHANGES", chance.choice((2, 64)))
        numbers = chance.sample(range(2 * NODES), chance.choice((5, NODES)))
        here = cluster(*[_node(number, chance.choice((1, 2, 4))) for number in numbers])
        specs = [pod(cpu=cpu).spec for cpu in ("1", "500m", "2")]
        there: dict[str, Pod] = {}
        for step in range(60):
            one = _alike(chance.choice(specs), f"p{step}")
            fresh = _anew(here)
            expected, answer = choose(fresh, one), choose(here, one)
            assert _told(answer) == _told(expected), (seed, step)
            if isinstance(answer, Chosen) and chance.random() < 0.8:
                placed = there[one.metadata.uid] = _on(one, answer.node)
                here.set_pod(placed, one.metadata.uid)
            if there and chance.random() < 0.2:
                uid = chance.choice(list(there))
                del there[uid]
                here.set_pod(None, uid)
            if chance.random() < 0.2:
                _change_a_node(here, chance)


def _told(answer: Chosen | Refused) -> str:
    return answer.node if isinstance(answer, Chosen) else tell(answer)


def _change_a_node(here: Cluster, chance: random.Random) -> None:
    """One comes, goes, or is other than it was."""
    number = chance.randrange(2 * NODES)
    known = here.nodes.get(f"n{number:03}")
    if known is None:
        here.set_node(None, _node(number, 4))
    elif chance.random() < 0.4:
        here.set_node(known.node, None)
    else:
        is_closed = not known.node.spec.unschedulable
        here.set_node(known.node, replace(known.node, spec=replace(known.node.spec, unschedulable=is_closed)))
