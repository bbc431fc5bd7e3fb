"""Evictions from nodes, without a server: what policies put off or keep, and what the guard holds."""

from __future__ import annotations

from functools import partial

import pytest

from dray.api.generated.core import Pod, PodSpec, PodStatus, Taint, Toleration
from dray.api.meta import ObjectMeta
from dray.api.references import ObjectRef
from dray.eviction.evictions import Taken
from dray.eviction.limiter import BURST
from dray.eviction.node_planner import NodePlanner
from dray.eviction.settings import Limit
from work import lines_run

A, B = (Taint(key=f"example.com/{name}", effect="NoExecute") for name in "ab")


def pod(name: str, node: str = "n1", *tolerations: Toleration) -> Pod:
    meta = ObjectMeta(name=name, namespace="ns", uid=f"uid-{name}")
    return Pod(metadata=meta, spec=PodSpec(node_name=node, tolerations=tolerations), status=PodStatus(phase="Running"))


def known(*pods: Pod, limit: Limit | None = None) -> NodePlanner:
    evictions = NodePlanner(limit)
    for one in pods:
        evictions.put_pod(one, 0.0)
    return evictions


def taken(evictions: NodePlanner, tick: float) -> list[str]:
    return [due.pod.name for due in take(evictions, tick)]


def take(evictions: NodePlanner, tick: float) -> list[Taken[ObjectRef]]:
    evictions.finish(tick)
    return evictions.take(tick)


def test_a_pod_that_is_put_off_is_taken_again_then() -> None:
    evictions = known(pod("p"))
    evictions.put_node("n1", [A], 1.0)
    (due,) = take(evictions, 1.0)
    evictions.departures.postpone(due, 50.0)
    assert evictions.wait(1.0) == 49.0
    assert taken(evictions, 49.0) == []
    assert taken(evictions, 50.0) == ["p"]


def test_what_was_put_off_for_one_taint_is_not_put_off_for_another() -> None:
    evictions = known(pod("p"))
    evictions.put_node("n1", [A], 1.0)
    (due,) = take(evictions, 1.0)
    evictions.departures.postpone(due, 50.0)
    evictions.put_node("n1", [A, B], 10.0)
    (again,) = take(evictions, 10.0)
    assert (again.pod.name, again.cause.key) == ("p", A.key)


def test_a_pod_that_is_kept_stays_for_these_taints_alone() -> None:
    evictions = known(pod("p"))
    ref = ObjectRef.of(pod("p"))
    evictions.put_node("n1", [A], 1.0)
    assert taken(evictions, 1.0) == ["p"]
    evictions.departures.exempt(ref)
    assert not evictions.departures.must_leave(ref)
    assert evictions.departures.is_put_off(ref)
    assert taken(evictions, 100.0) == []
    evictions.put_node("n1", [A, B], 100.0)
    assert taken(evictions, 100.0) == ["p"]
    evictions.departures.exempt(ref)
    evictions.departures.recall(ref)
    assert taken(evictions, 100.0) == ["p"]


def test_the_guard_counts_a_taint_over_all_nodes() -> None:
    evictions = known(*(pod(f"p{number}", f"n{number % 2}") for number in range(4)), limit=Limit(count=3))
    evictions.put_node("n0", [A], 1.0)
    assert sorted(taken(evictions, 1.0)) == ["p0", "p2"]
    evictions.put_node("n1", [A], 1.0)
    assert taken(evictions, 1.0) == []
    assert list(evictions.holds("n1")) == [A.key]
    assert evictions.take_changed_nodes() == ["n0", "n1"]
    assert evictions.take_changed_nodes() == []
    evictions.put_node("n1", [A], 2.0, {"dray.dev/confirm-evictions": "example.com/a"})
    assert sorted(taken(evictions, 2.0)) == ["p0", "p1", "p2", "p3"]
    assert not evictions.holds("n1")


@pytest.mark.req("3902-37")
def test_what_an_eviction_costs_does_not_depend_on_those_who_stay() -> None:
    def lines(bystanders: int) -> int:
        evictions = known(*(pod(f"other-{number}", "n2") for number in range(bystanders)))

        def evict() -> None:
            evictions.put_pod(pod("p"), 0.0)
            evictions.put_node("n1", [A], 1.0)
            assert taken(evictions, 1.0) == ["p"]

        return lines_run(evict).total()

    assert lines(300) < 2 * lines(3)


@pytest.mark.req("3902-16")
def test_a_taint_that_is_gone_evicts_nobody_while_pods_are_still_told() -> None:
    """Also nobody who was taken before."""
    evictions = known(*(pod(f"p{number}", f"n{number % 2}") for number in range(40)))
    for node in ("n0", "n1"):
        evictions.put_node(node, [A], 0.0, {"dray.dev/evictions-per-second": "example.com/a:NoExecute=1"})
    before = take(evictions, 0.0)
    assert len(before) == 2 * BURST
    evictions.put_node("n0", [], 1.0)
    evictions.put_node("n1", [], 1.0)
    cancelled = evictions.plan(100.0, 5)
    assert not evictions.is_current
    assert evictions.take(100.0) == []
    assert not any(evictions.must_leave(each.pod, 100.0) for each in before)
    while not evictions.is_current:
        assert evictions.take(100.0) == []
        cancelled += evictions.plan(100.0, 5)
    assert len(set(cancelled)) == len(cancelled) == 40
    assert not evictions.departures.pods


@pytest.mark.parametrize("nodes", [1, 20])
@pytest.mark.parametrize("limit", [None, Limit(count=5), Limit(percent=100.0)])
def test_no_turn_is_longer_for_more_pods_that_have_to_leave(nodes: int, limit: Limit | None) -> None:
    def longest(pods: int) -> int:
        evictions = known(*(pod(f"p{number}", f"n{number % nodes}") for number in range(pods)), limit=limit)
        evictions.finish(0.0)
        turns: list[int] = []
        confirmed = {"dray.dev/confirm-evictions": A.key}
        for taints, said in (([A], {}), ([A], confirmed), ([], {})):
            for number in range(nodes):
                put = partial(evictions.put_node, f"n{number}", taints, 1.0, said)
                turns.append(lines_run(put).total())
            is_done = False
            while not is_done:
                turns += [lines_run(partial(evictions.plan, 1.0, 20)).total()]
                turns += [lines_run(partial(evictions.take, 1.0)).total()]
                is_done = evictions.is_current and evictions.wait(1.0) != 0.0
        return max(turns)

    assert longest(1_600) < 1.2 * longest(400)


def test_whoever_cannot_be_asked_about_costs_other_nodes_nothing() -> None:
    def lines(nodes: int) -> int:
        evictions = known(*(pod(f"p{number}", f"n{number}") for number in range(nodes)))
        for number in range(nodes):
            evictions.put_node(f"n{number}", [A, B] if number else [A], 1.0)
        for due in take(evictions, 1.0):
            evictions.departures.postpone(due, 60.0, f"{due.pod.name}: no answer")
        assert str(evictions.unasked("n1")) == (
            "1 pod is held because the eviction policy cannot be asked: p1: no answer"
        )
        count = lines_run(lambda: evictions.unasked("n1")).total()
        evictions.put_node("n1", [B], 2.0)
        evictions.finish(2.0)
        assert evictions.unasked("n1") is not None, "it still cannot be asked, for the taint that is left"
        evictions.put_node("n1", [], 2.0)
        evictions.finish(2.0)
        assert evictions.unasked("n1") is None
        assert evictions.departures.unasked_pods == nodes - 1
        evictions.drop_pod(ObjectRef.of(pod("p0", "n0")))
        assert evictions.unasked("n0") is None
        return count

    assert lines(100) == lines(10)
