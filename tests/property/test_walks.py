"""A pod that fits nowhere does not look at all nodes in one turn; the verdict is the one of looking at all at once."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from dray import cel
from dray.allocator import Options
from dray.allocator.aside import Aside
from dray.api.generated.core import Pod
from dray.scheduling import walks
from dray.scheduling.cluster import Cluster
from dray.scheduling.decide import Chosen, decide
from dray.scheduling.node_table import NodeFilter
from dray.scheduling.pod_info import PodInfo, read_pod
from dray.scheduling.refusal import Refused
from dray.scheduling.text import tell
from scheduler_objects import cluster, node, pod

NODES, AT_ONCE = 200, 20


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walks, "NODES_PER_TURN", AT_ONCE)


class Turns:
    """Decides in turns, on a clock that stands still, and counts the nodes that were asked in each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[int] = []
        self._backlog = cel.Backlog(lambda: 0.0)
        self._options = Options(aside=Aside(self._backlog, None))
        refuses = NodeFilter.refuses

        def counted(asked: NodeFilter, which: object) -> object:
            self.asked[-1] += 1
            return refuses(asked, which)  # type: ignore[arg-type]

        monkeypatch.setattr(NodeFilter, "refuses", counted)

    def decide(self, here: Cluster, wanted: PodInfo) -> Chosen | Refused:
        self.asked.append(0)
        self._backlog.begin_turn("ns", 1.0)
        return decide(here, wanted, self._options)


def _placed(number: int, cpu: str = "1") -> Pod:
    made = pod(f"b{number}", cpu=cpu)
    return replace(made, spec=replace(made.spec, node_name=f"n{number % NODES:03}"))


def _full() -> Cluster:
    """Nodes with four processors, three of them in use, and room for three pods."""
    here = cluster(*[node(f"n{number:03}", cpu="4") for number in range(NODES)])
    for number in range(3 * NODES):
        placed = _placed(number)
        here.set_pod(placed, placed.metadata.uid)
    return here


def _is_for_later(answer: Chosen | Refused) -> bool:
    return isinstance(answer, Refused) and answer.needs_more_turns


def test_no_turn_asks_more_nodes_than_it_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    here, turns, wanted = _full(), Turns(monkeypatch), read_pod(pod("p", cpu="3"))
    while _is_for_later(answer := turns.decide(here, wanted)):
        assert len(here.walks) == 1
    assert max(turns.asked) <= AT_ONCE
    assert NODES <= sum(turns.asked) <= NODES + len(turns.asked)
    assert isinstance(answer, Refused)
    assert tell(answer) == tell(decide(_full(), wanted, Options()))  # type: ignore[arg-type]  # it is refused, too
    assert len(here.walks) == 0


def test_pods_come_and_go_meanwhile_and_the_verdict_is_the_one_of_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(30):
        here, turns, chance = _full(), Turns(monkeypatch), random.Random(seed)
        wanted = read_pod(pod("p", cpu="2"))
        while _is_for_later(answer := turns.decide(here, wanted)):
            one = _placed(chance.randrange(3 * NODES))
            here.set_pod(one if chance.random() < 0.8 else None, one.metadata.uid)  # hardly any goes
            if chance.random() < 0.1:
                at = here.nodes.get(f"n{chance.randrange(NODES):03}")
                assert at is not None
                here.set_node(at.node, replace(at.node, spec=replace(at.node.spec, unschedulable=True)))
        fresh = Cluster()
        for each in here.nodes:
            fresh.set_node(None, each.node)
            for info in each.pods.values():
                fresh.set_pod(info.pod, info.pod.metadata.uid)
        expected = decide(fresh, wanted, Options())
        if isinstance(answer, Chosen):
            assert isinstance(expected, Chosen), seed
            chosen = fresh.nodes.get(answer.node)
            assert chosen is not None
            assert not fresh.nodes.filter(wanted).refuses(chosen), seed
        else:
            assert isinstance(expected, Refused), seed
            assert tell(answer) == tell(expected), seed


def test_of_many_nodes_a_turn_has_more_so_that_the_turns_stay_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walks, "NODES_PER_TURN", 1)
    here, turns, wanted = _full(), Turns(monkeypatch), read_pod(pod("p", cpu="3"))
    while _is_for_later(turns.decide(here, wanted)):
        pass
    assert max(turns.asked) <= NODES // walks.MOST_TURNS + 1
    assert len(turns.asked) <= walks.MOST_TURNS + 2


def test_many_such_pods_all_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is room for what three of them found out: the others look at all nodes in one turn."""
    monkeypatch.setattr(walks, "MOST_ENTRIES", 3 * NODES)
    here, turns = _full(), Turns(monkeypatch)
    waiting = [read_pod(pod(f"p{number}", cpu=f"{3 + number}")) for number in range(8)]
    for _ in range(NODES // AT_ONCE + 2):
        waiting = [one for one in waiting if _is_for_later(turns.decide(here, one))]
        assert len(here.walks) <= 3
    assert waiting == []


def test_what_a_pod_left_behind_that_never_came_again_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walks, "MOST_ENTRIES", NODES)
    monkeypatch.setattr(walks, "STALE", 10)
    here, turns = _full(), Turns(monkeypatch)
    assert _is_for_later(turns.decide(here, read_pod(pod("gone", cpu="3"))))
    here.set_pod(None, _placed(0).metadata.uid)
    fits = read_pod(pod("small", cpu="1"))
    for _ in range(10):
        assert isinstance(turns.decide(here, fits), Chosen)
    assert _is_for_later(turns.decide(here, read_pod(pod("p", cpu="3"))))
