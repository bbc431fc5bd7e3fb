"""A drain as a value: who leaves next, at which pace, and what they wait for."""

from __future__ import annotations

import pytest

import builders
from dray.api.generated.core import Node, NodeSpec, Pod, PodSpec, Taint, Toleration
from dray.api.references import ObjectRef
from dray.api.times import Time
from dray.eviction.drain import Drain, DrainTerms, is_paused, last_leaves


def pod(name: str, owner: str = "", *, is_ready: bool = True) -> Pod:
    owners = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}]
    meta = {"uid": name, "ownerReferences": owners if owner else []}
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": str(is_ready)}]}
    return builders.typed(builders.pod(name, namespace="ml", node="node-1", meta=meta, status=status), Pod)


def test_a_rate_is_a_rate_from_the_first_pod_on() -> None:
    pods = [pod(f"p-{number:02}") for number in range(20)]
    drain, now = Drain(DrainTerms(rate=2)), 100.0
    left: list[tuple[str, float]] = []
    while len(left) < len(pods):
        found = drain.next([(one, 0.0) for one in pods], now)
        if found is not None:
            drain.left(found, now)
            left.append((found.metadata.name, now - 100.0))
            continue
        now += 0.25
    assert [name for name, _ in left] == [one.metadata.name for one in pods]
    assert [when for _, when in left] == [number / 2 for number in range(20)]


def test_who_is_not_due_or_was_refused_lets_others_go_first() -> None:
    first, second, third = pod("a"), pod("b"), pod("c")
    drain = Drain(DrainTerms())
    due = [(first, 10.0), (second, 20.0), (third, 500.0)]
    assert drain.next(due, 15.0) is first
    drain.refused(first, "budget ml/api allows none", 30.0)
    assert drain.next(due, 30.0) is second
    drain.left(second, 30.0)
    assert drain.next(due, 30.5) is None
    assert drain.refusals == {ObjectRef.of(first): "budget ml/api allows none"}
    assert drain.next(due, 31.5) is first
    drain.left(first, 31.5)
    assert not drain.refusals
    assert drain.next(due, 499.0) is None
    assert drain.next(due, 500.0) is third


def test_the_next_one_leaves_when_the_last_one_is_replaced() -> None:
    old = [pod("a", "web"), pod("b", "web")]
    other = pod("z", "db")
    drain = Drain(DrainTerms(wait_for_replacements=True))
    for one in (*old, other):
        drain.put(one)
    due = [(one, 0.0) for one in (*old, other)]
    assert drain.next(due, 1.0) is old[0]
    drain.left(old[0], 1.0)
    assert drain.next(due, 2.0) is other  # of another controller
    drain.left(other, 2.0)
    assert drain.next(due, 3.0) is None
    assert drain.replacing == {ObjectRef.of(old[1])}
    drain.drop(old[0])
    drain.put(pod("a-new", "web", is_ready=False))
    assert drain.next(due[1:], 4.0) is None
    drain.put(pod("a-new", "web"))
    assert drain.next(due[1:], 5.0) is old[1]


def test_after_the_deadline_nobody_waits() -> None:
    stuck = pod("a")
    drain = Drain(DrainTerms(deadline=60.0, wait_for_replacements=True))
    assert not drain.is_over(1000.0), "nothing is over that has not begun"
    assert drain.next([(stuck, 0.0)], 1000.0) is stuck
    drain.refused(stuck, "no", 1059.9)
    assert drain.next([(stuck, 0.0)], 1059.95) is None
    assert not drain.is_over(1059.95)
    assert drain.next([(stuck, 0.0)], 1060.0) is stuck
    assert drain.is_over(1060.0)
    drain.left(stuck, 1060.0)
    assert drain.forced == {ObjectRef.of(stuck)}


def test_paused() -> None:
    assert is_paused({"dray.dev/drain-paused": "true"})
    assert not is_paused({"dray.dev/drain-paused": "false"})
    assert not is_paused({})


@pytest.mark.parametrize(
    ("seconds", "other", "last"),
    [
        ((300, 60), None, "2026-06-01T12:05:00Z"),
        ((300, 60), 30, "2026-06-01T12:00:30Z"),
        ((0,), None, "2026-06-01T12:00:00Z"),
        ((2**62,), None, None),
        ((), None, None),
    ],
)
def test_the_last_pod_leaves_when_its_toleration_ends(
    seconds: tuple[int, ...], other: int | None, last: str | None
) -> None:
    """A pod with several taints leaves for the first that ends it."""
    added = Time("2026-06-01T12:00:00Z")
    keys = ("a", "b") if other is not None else ("a",)
    node = Node(spec=NodeSpec(taints=tuple(Taint(key=key, effect="NoExecute", time_added=added) for key in keys)))

    def stays(first: int) -> Pod:
        limits = zip(keys, (first, other), strict=False)
        tolerations = (Toleration(key=key, operator="Exists", toleration_seconds=limit) for key, limit in limits)
        return Pod(spec=PodSpec(tolerations=tuple(tolerations)))

    pods = [stays(one) for one in seconds]
    found = last_leaves(node, pods)
    assert (None if found is None else Time.of(found)) == last
    unknown = Node(spec=NodeSpec(taints=(Taint(key="a", effect="NoExecute"),)))
    assert last_leaves(unknown, pods) is None
