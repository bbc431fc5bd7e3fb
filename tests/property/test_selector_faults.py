"""A selector that fails on one node keeps a claim from all of them, and everybody who is asked says so."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dray
from dray.snapshot import Snapshot
from dray.snapshot.pod_explanation import explain_pod
from dray.what_if.difference import compare
from scale_up_objects import node, waiting
from snapshot_objects import DRIVER, Manifest, claim, device_class, held, resource_slice

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
HERE = f'device.attributes["{DRIVER}"]'
SELECTORS = [
    "true",
    f"{HERE}.a",
    f"{HERE}.b == 1",
    f"!{HERE}.a",
    f"{HERE}.a && {HERE}.b == 1",
    f"{HERE}.a || {HERE}.b == 1",
    f'"a" in {HERE} && {HERE}.a',
    f'device.driver == "other.example.com" && {HERE}.none',
    f"1 / {HERE}.b == 1",
]
ATTRIBUTES = st.fixed_dictionaries(
    {}, optional={"a": st.booleans().map(lambda it: {"bool": it}), "b": st.integers(0, 1).map(lambda it: {"int": it})}
)


@st.composite
def clusters(draw: st.DrawFn) -> list[Manifest]:
    """Some nodes with few devices, of which claims hold some, and a pending claim of a pod that waits."""
    objects: list[Manifest] = [device_class(draw(st.sampled_from(["true", *SELECTORS])))]
    for number in range(draw(st.integers(1, 4))):
        name = f"node-{number}"
        names = [f"gpu-{one}" for one in range(draw(st.integers(0, 3)))]
        objects += [node(name), resource_slice(name, *({"name": one, "attributes": draw(ATTRIBUTES)} for one in names))]
        objects += [held(claim(f"{name}-{one}"), name, one, pods=("user",)) for one in names if draw(st.booleans())]
    wanted = claim("x", count=draw(st.integers(1, 2)), selector=draw(st.sampled_from(SELECTORS)))
    if draw(st.booleans()):
        exactly = wanted["spec"]["devices"]["requests"][0]["exactly"]
        exactly["allocationMode"] = "All"
        del exactly["count"]
    return [*objects, wanted, waiting("p", claim="x")]


def brute_force(snapshot: Snapshot) -> tuple[str, str | None]:
    """What the rule says: an error on any node is one of the claim; else the first node that fits is taken."""
    outcomes = [snapshot.allocate("ml/x", node=name) for name in snapshot.nodes()]
    if any(outcome.status == "error" for outcome in outcomes):
        return "error", None
    fitting = [outcome.node for outcome in outcomes if outcome.status == "allocated"]
    return ("allocated", fitting[0]) if fitting else ("unsatisfiable", None)


@pytest.mark.req("4381-84", "SVS-51")
@settings(max_examples=150, deadline=None)
@given(clusters())
def test_allocate_explain_what_if_and_scheduler_agree(objects: list[Manifest]) -> None:
    check(dray.load(*objects))


@pytest.mark.req("4381-84", "SVS-51")
@settings(max_examples=75, deadline=None)
@given(clusters(), clusters(), st.randoms())
def test_they_agree_however_the_cluster_came_about(before: list[Manifest], after: list[Manifest], random: Any) -> None:
    """What was found out about devices is forgotten when they change."""
    snapshot = dray.load(*before)
    snapshot.allocate("ml/x")
    changes = list(after)
    random.shuffle(changes)
    for obj in changes:
        snapshot = snapshot.with_objects(obj)
        snapshot.allocate("ml/x")
    check(snapshot)


def check(snapshot: Snapshot) -> None:
    status, where = brute_force(snapshot)
    outcome = snapshot.allocate("ml/x")
    assert (outcome.status, outcome.node) == (status, where)

    explained = snapshot.explain("ml/x")
    (report,) = explained.report.claims
    assert bool(report.error) is (status == "error")
    assert ("cannot be judged" in str(explained)) is (status == "error")
    assert (" fits on " in str(explained)) is (status == "allocated")

    pod = explain_pod(snapshot, "ml/p")
    assert (pod.status, pod.node) == (("fits", where) if where else ("pending", ""))
    assert ("CEL runtime error" in pod.message) is (status == "error")

    changes = compare(snapshot.without("resourceclaim/ml/x"), snapshot, NOW).pending
    assert "ml/x" in {change.claim for change in changes}
    for change in changes:  # the claim, and perhaps its pod
        assert (change.fits, change.node) == (status == "allocated", where)
