"""What a decision costs that many terms are about: each pod and each node once, however many turns it takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from dray import cel
from dray.allocator import Options
from dray.allocator.aside import Aside
from dray.api.generated.core import Pod
from dray.scheduling import node_table, topology, worth
from dray.scheduling.cluster import Cluster
from dray.scheduling.decide import Chosen, decide
from dray.scheduling.filters.inter_pod_affinity import CompanyCheck
from dray.scheduling.pod_info import PodInfo, read_pod
from dray.scheduling.reasons import KeptAway
from scheduler_objects import cluster, node, pod

NODES, PODS_EACH, TERMS, TURN = 300, 4, 64, 0.01
HOST = "kubernetes.io/hostname"
EVERYBODY: dict[str, Any] = {"namespaceSelector": {}}


def _terms(count: int, key: str, **more: Any) -> list[dict[str, Any]]:
    return [
        {"labelSelector": {"matchExpressions": [{"key": f"k{each}", "operator": "DoesNotExist"}]}, "topologyKey": key}
        | more
        for each in range(count)
    ]


def _avoiding(terms: list[dict[str, Any]]) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def _liking(terms: list[dict[str, Any]]) -> dict[str, Any]:
    weighted = [{"weight": 1, "podAffinityTerm": term} for term in terms]
    return {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}}


def _placed(name: str, on: int, **spec: Any) -> Pod:
    made = pod(name, labels={"app": name}, cpu="10m", **spec)
    return replace(made, spec=replace(made.spec, node_name=f"n{on}"))


def _cluster() -> Cluster:
    here = cluster(*[node(f"n{each}", labels={"zone": f"z{each % 3}", HOST: f"n{each}"}) for each in range(NODES)])
    for number in range(NODES * PODS_EACH):
        placed = _placed(f"b{number}", number % NODES)
        here.set_pod(placed, placed.metadata.uid)
    return here


def _decide_in_turns(here: Cluster, wanted: PodInfo) -> Iterator[None]:
    """One step a turn, in which there is time for next to nothing."""
    looks = 0.0

    def clock() -> float:
        nonlocal looks
        looks += TURN
        return looks

    backlog = cel.Backlog(clock)
    options = Options(aside=Aside(backlog, None))
    while True:
        backlog.begin_turn("ns", TURN)
        answer = decide(here, wanted, options)
        yield
        if isinstance(answer, Chosen) or not answer.needs_more_turns:
            return


@pytest.mark.parametrize("spec", [_avoiding, _liking])
def test_many_terms_about_one_topology_key_count_each_pod_once(spec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at, judged = 0, 0
    sum_of = worth.sum_of

    def counting(*args: Any) -> Any:
        found = sum_of(*args)

        def count(one: PodInfo) -> int:
            nonlocal looked_at
            looked_at += 1
            return found(one)

        return count

    judge = node_table.NodeFilter._judge

    def judging(self: Any, one: Any) -> Any:
        nonlocal judged
        judged += 1
        return judge(self, one)

    monkeypatch.setattr(worth, "sum_of", counting)
    monkeypatch.setattr(node_table.NodeFilter, "_judge", judging)
    turns = sum(1 for _ in _decide_in_turns(_cluster(), read_pod(pod("p", **spec(_terms(TERMS, "zone"))))))
    assert turns > 3
    assert looked_at == NODES * PODS_EACH
    assert judged <= NODES


@pytest.mark.parametrize("spec", [_avoiding, _liking])
def test_a_turn_that_has_counted_much_does_not_look_at_all_nodes_too(
    spec: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either takes most of a turn by itself, where there are thousands of nodes."""
    asked = 0
    refuses = node_table.NodeFilter.refuses

    def counting(self: Any, one: Any) -> Any:
        nonlocal asked
        asked += 1
        return refuses(self, one)

    monkeypatch.setattr(node_table.NodeFilter, "refuses", counting)
    monkeypatch.setattr(topology, "MANY_LOOKS", 5)
    backlog = cel.Backlog(lambda: 0.0)  # there is time for everything
    backlog.begin_turn("ns", TURN)
    here, wanted = _cluster(), read_pod(pod("p", cpu="1000", **spec(_terms(TERMS, "zone"))))
    options = Options(aside=Aside(backlog, None))
    answer = decide(here, wanted, options)
    assert not isinstance(answer, Chosen)
    assert (answer.needs_more_turns, backlog.was_cut_short, asked) == (True, True, 0)
    answer = decide(here, wanted, options)
    assert not isinstance(answer, Chosen)
    assert (answer.needs_more_turns, asked) == (False, NODES)


def test_nodes_are_sorted_by_one_label_after_the_other_as_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [f"t{number}" for number in range(8)]
    here = cluster(*[node(f"n{each}", labels=dict.fromkeys(keys, f"v{each % 3}")) for each in range(NODES)])
    placed = _placed("b", 1)
    here.set_pod(placed, placed.metadata.uid)
    sorted_by: list[int] = []
    domains = topology.Topology.domains

    def noted(self: topology.Topology, key: str) -> Any:
        before = set(self._domains)
        try:
            return domains(self, key)
        finally:
            sorted_by[-1] += key not in before

    monkeypatch.setattr(topology.Topology, "domains", noted)
    wanted = read_pod(pod("p", cpu="1000", **_liking([term for key in keys for term in _terms(1, key)])))
    sorted_by.append(0)
    turns = _decide_in_turns(here, wanted)
    while next(turns, turns) is None:
        sorted_by.append(0)
    assert max(sorted_by) == 1
    assert sum(sorted_by) == len(keys)


def test_judging_goes_on_where_it_was_and_does_not_walk_the_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    refuses = node_table.NodeFilter.refuses

    def counting(self: Any, one: Any) -> Any:
        nonlocal asked
        asked += 1
        return refuses(self, one)

    monkeypatch.setattr(node_table.NodeFilter, "refuses", counting)
    turns = sum(1 for _ in _decide_in_turns(_cluster(), read_pod(pod("p", nodeSelector={"no": "where"}))))
    assert turns > NODES / 2, "one node a turn, or so"
    assert asked < 2 * NODES


def test_what_placed_pods_say_of_a_pod_is_kept_together_and_current() -> None:
    here = _cluster()
    for number in range(40):
        made = _placed(f"t{number}", number, **_avoiding(_terms(TERMS, HOST, **EVERYBODY)))
        made = replace(made, metadata=replace(made.metadata, labels={}))
        here.set_pod(made, made.metadata.uid)
    there, stranger = here.nodes.topology, read_pod(pod("p", namespace="other"))

    def kept_away() -> set[str]:
        check = CompanyCheck(stranger, there)
        return {one.name for one in here.nodes if check.check(stranger, one) == (KeptAway(),)}

    assert kept_away() == {f"n{number}" for number in range(40)}
    assert {key: len(values) for key, values in there.keeping_away(stranger).items()} == {HOST: 40}
    here.set_pod(None, "uid-t7")
    moved = _placed("t9", 299, **_avoiding(_terms(TERMS, HOST, **EVERYBODY)))
    here.set_pod(moved, moved.metadata.uid)
    assert kept_away() == {f"n{number}" for number in range(40) if number not in (7, 9)} | {"n299"}
    here.set_namespace("other", {"quiet": "yes"})
    assert len(kept_away()) == 39
