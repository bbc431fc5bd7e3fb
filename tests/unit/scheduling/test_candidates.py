"""Nodes in the order of several wishes: each once, and no wish walks all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dray.scheduling.candidates import FIRST_OF_A_WISH, in_turns
from dray.scheduling.node_info import NodeInfo
from scheduler_objects import node


class Walk:
    """A sequence of nodes that counts how far somebody went."""

    def __init__(self, nodes: Sequence[NodeInfo]) -> None:
        self._nodes = nodes
        self.steps = 0

    def __iter__(self) -> Iterator[NodeInfo]:
        for one in self._nodes:
            self.steps += 1
            yield one


NODES = [NodeInfo(node(f"n{number:04}")) for number in range(1000)]


def test_the_first_of_each_wish_come_first_and_every_node_comes_once() -> None:
    wishes = [iter(NODES[500:503]), iter(NODES[501:504])]
    names = [one.name for one in in_turns(wishes, iter(NODES))]
    assert names[:6] == ["n0500", "n0501", "n0000", "n0502", "n0503", "n0001"]
    assert sorted(names) == [one.name for one in NODES]


def test_many_wishes_about_the_same_nodes_do_not_walk_them_again_and_again() -> None:
    wishes = [Walk(NODES) for _ in range(64)]
    assert len(list(in_turns(map(iter, wishes), iter(NODES)))) == len(NODES)
    assert max(wish.steps for wish in wishes) <= FIRST_OF_A_WISH
