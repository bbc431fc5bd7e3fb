"""Nodes that say how many pods may leave a second: planned without a server, on ticks that the test counts."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from dray.api.generated.core import Pod, PodSpec, PodStatus, Taint, Toleration
from dray.api.meta import ObjectMeta
from dray.api.references import ObjectRef
from dray.eviction.node_planner import NodePlanner
from dray.eviction.settings import Limit

A, B = (Taint(key=f"example.com/{name}", effect="NoExecute") for name in "ab")
BURST = 10


def rates(text: str) -> dict[str, str]:
    return {"dray.dev/evictions-per-second": text}


def pods(count: int, node: str = "n1", *tolerations: Toleration) -> list[Pod]:
    return [
        Pod(
            metadata=ObjectMeta(name=f"{node}-{number:03}", namespace="ns", uid=f"uid-{node}-{number}"),
            spec=PodSpec(node_name=node, tolerations=tolerations),
            status=PodStatus(phase="Running"),
        )
        for number in range(count)
    ]


def known(residents: Iterable[Pod], limit: Limit | None = None) -> NodePlanner:
    evictions = NodePlanner(limit)
    for one in residents:
        evictions.put_pod(one, 0.0)
    return evictions


def play(evictions: NodePlanner, start: float, end: float) -> list[float]:
    """When each pod is taken, and gone, between two ticks."""
    taken, tick = [], start
    while tick <= end:
        evictions.finish(tick)
        for due in evictions.take(tick):
            evictions.drop_pod(due.pod)
            taken.append(tick)
        wait = evictions.wait(tick)
        if wait is None:
            break
        tick += wait
    return taken


@pytest.mark.parametrize("rate", [1, 4, 100])
def test_ten_leave_at_once_and_then_so_many_a_second(rate: int) -> None:
    evictions = known(pods(30))
    evictions.put_node("n1", [A], 5.0, rates(f"example.com/a:NoExecute={rate}"))
    taken = play(evictions, 5.0, 100.0)
    assert taken == pytest.approx([5.0] * BURST + [5.0 + number / rate for number in range(1, 21)], abs=0.02)
    assert len(evictions.departures) == 0
    assert evictions.wait(100.0) is None


@pytest.mark.req("3902-24")
def test_without_a_rate_all_leave_at_once() -> None:
    evictions = known(pods(300))
    evictions.put_node("n1", [A], 5.0, rates("example.com/b:NoExecute=1"))
    assert play(evictions, 5.0, 5.0) == [5.0] * 300


def test_a_pod_that_must_leave_for_two_taints_leaves_for_the_faster_one() -> None:
    slow = "example.com/a:NoExecute=1"
    evictions = known(pods(30))
    evictions.put_node("n1", [A, B], 0.0, rates(f"{slow},example.com/b:NoExecute=10"))
    assert play(evictions, 0.0, 100.0)[-1] == pytest.approx(1.0, abs=0.1)
    patient = Toleration(key=B.key, operator="Exists", toleration_seconds=5)
    evictions = known(pods(30, "n1", patient))
    evictions.put_node("n1", [A, B], 0.0, rates(slow))
    taken = play(evictions, 0.0, 100.0)
    assert taken == pytest.approx([0.0] * BURST + [1, 2, 3, 4] + [5] * 16)


def test_each_node_has_its_own_rate_and_nodes_of_a_group_have_one_together() -> None:
    own = known([*pods(20, "n1"), *pods(20, "n2")])
    for node in ("n1", "n2"):
        own.put_node(node, [A], 0.0, rates("example.com/a:NoExecute=5"))
    assert play(own, 0.0, 100.0) == pytest.approx(sorted([0.0] * 20 + [n / 5 for n in range(1, 11)] * 2), abs=0.02)
    together = known([*pods(20, "n1"), *pods(20, "n2")])
    for node in ("n1", "n2"):
        together.put_node(node, [A], 0.0, rates("example.com/a:NoExecute=5@rack"))
    assert play(together, 0.0, 100.0) == pytest.approx([0.0] * BURST + [n / 5 for n in range(1, 31)], abs=0.02)


def test_if_a_group_disagrees_the_slowest_rate_holds() -> None:
    evictions = known([*pods(15, "n1"), *pods(15, "n2")])
    evictions.put_node("n1", [A], 0.0, rates("example.com/a:NoExecute=10@rack"))
    evictions.put_node("n2", [A], 0.0, rates("example.com/a:NoExecute=1@rack"))
    assert play(evictions, 0.0, 5.0) == pytest.approx([0.0] * BURST + [1, 2, 3, 4, 5])
    evictions.put_node("n2", [A], 5.0, rates("example.com/a:NoExecute=10@rack"))
    assert play(evictions, 5.0, 100.0) == pytest.approx([5 + n / 10 for n in range(1, 16)], abs=0.02)
    evictions.put_node("n2", [], 10.0)
    evictions.put_node("n1", [], 10.0)
    assert len(evictions.departures) == 0


@pytest.mark.req("implied-9", "5055-80")
def test_a_changed_rate_acts_at_once_and_is_no_new_start() -> None:
    evictions = known(pods(30))
    evictions.put_node("n1", [A], 0.0, rates("example.com/a:NoExecute=1"))
    assert play(evictions, 0.0, 3.0) == pytest.approx([0.0] * BURST + [1, 2, 3])
    evictions.put_node("n1", [A], 3.5, rates("example.com/a:NoExecute=100"))
    faster = play(evictions, 3.5, 100.0)
    assert len(faster) == 17
    assert faster[0] >= 3.5
    assert faster[-1] == pytest.approx(3.5 + 17 / 100, abs=0.03)


@pytest.mark.req("3902-16", "implied-4")
def test_who_waits_for_the_rate_stays_when_the_taint_goes() -> None:
    evictions = known(pods(30))
    evictions.put_node("n1", [A], 0.0, rates("example.com/a:NoExecute=1"))
    assert len(play(evictions, 0.0, 2.0)) == 12
    evictions.put_node("n1", [], 2.5, rates("example.com/a:NoExecute=1"))
    assert len(evictions.plan(2.5)) == 18
    assert play(evictions, 2.5, 1000.0) == []


def test_an_annotation_that_cannot_be_read_means_the_default_rate() -> None:
    evictions = known(pods(30))
    evictions.put_node("n1", [A], 0.0, rates("example.com/a=1,example.com/b:NoExecute=1"))
    assert play(evictions, 0.0, 100.0)[-1] == pytest.approx(2.0, abs=0.02)


@pytest.mark.req("implied-9")
def test_a_huge_rate_is_no_limit_that_anybody_notices() -> None:
    evictions = known(pods(300))
    evictions.put_node("n1", [A], 0.0, rates(f"example.com/a:NoExecute={10**17}"))
    assert play(evictions, 0.0, 10.0)[-1] < 0.05


def test_who_is_put_off_gives_its_place_to_another() -> None:
    evictions = known(pods(13))
    evictions.put_node("n1", [A], 0.0, rates("example.com/a:NoExecute=1"))
    evictions.finish(0.0)
    first = evictions.take(0.0)
    assert len(first) == BURST
    evictions.departures.postpone(first[0], 50.0)
    assert len(evictions.take(0.0)) == 1
    assert [round(tick) for tick in play(evictions, 0.5, 100.0)] == [1, 2, 50]


@pytest.mark.req("implied-5")
def test_a_pod_of_the_same_name_does_not_inherit_the_turn() -> None:
    evictions = known(pods(12))
    evictions.put_node("n1", [A], 0.0, rates("example.com/a:NoExecute=1"))
    evictions.finish(0.0)
    assert len(evictions.take(0.0)) == BURST
    last = pods(12)[-1]
    evictions.drop_pod(ObjectRef.of(last))
    tolerant = replace(last.spec, tolerations=(Toleration(operator="Exists"),))
    evictions.put_pod(replace(last, metadata=replace(last.metadata, uid="another"), spec=tolerant), 0.5)
    assert [due.pod.name for tick in (1.0, 2.0, 60.0) for due in evictions.take(tick)] == ["n1-010"]


def test_the_guard_holds_before_any_rate_counts() -> None:
    evictions = known(pods(30), Limit(count=20))
    told = rates("example.com/a:NoExecute=10")
    evictions.put_node("n1", [A], 0.0, told)
    assert play(evictions, 0.0, 100.0) == []
    evictions.put_node("n1", [A], 100.0, {**told, "dray.dev/confirm-evictions": "example.com/a"})
    assert play(evictions, 100.0, 200.0)[-1] == pytest.approx(102.0, abs=0.02)
