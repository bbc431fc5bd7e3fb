"""Which pods the pod garbage collector removes, and shares of numbers."""

from typing import Any

import pytest

from controller_world import node, typed
from controller_world import pod as pod_manifest
from dray.api.generated.core import Node, Pod
from dray.api.nodes import OUT_OF_SERVICE
from dray.api.shares import resolve
from dray.controllers.pod_garbage_collector import plan_finished, plan_node, plan_pod


def pod(
    name: str, *, created: str = "2026-06-01T12:00:00Z", deleted: bool = False, reason: str = "", **spec: Any
) -> Pod:
    meta = {"creationTimestamp": created, **({"deletionTimestamp": created} if deleted else {})}
    made: Pod = typed({**pod_manifest(name, meta=meta, **spec), "status": {"reason": reason}})
    return made


def machine(*, tainted: bool, ready: bool) -> Node:
    taints = [{"key": OUT_OF_SERVICE, "effect": "NoExecute"}] if tainted else []
    status = {"conditions": [{"type": "Ready", "status": "True" if ready else "Unknown"}]}
    made: Node = typed({**node(taints=taints), "status": status})
    return made


@pytest.mark.req("4381-142")
@pytest.mark.parametrize(
    ("subject", "removed"),
    [
        (None, ["runs", "stuck"]),
        (machine(tainted=True, ready=False), ["stuck"]),
        (machine(tainted=True, ready=True), []),
        (machine(tainted=False, ready=False), []),
    ],
)
def test_nodes(subject: Node | None, removed: list[str]) -> None:
    pods = [pod("runs", nodeName="node-1"), pod("stuck", deleted=True, nodeName="node-1")]
    assert [one.pod.metadata.name for one in plan_node(subject, pods)] == removed


def test_pods_that_were_never_scheduled() -> None:
    assert plan_pod(pod("p")) == []
    assert plan_pod(pod("p", deleted=True, nodeName="n")) == []
    assert [one.reason for one in plan_pod(pod("p", deleted=True))] == ["unscheduled"]


def test_finished_pods_beyond_the_threshold_go_oldest_first() -> None:
    pods = [pod(f"p{day}", created=f"2026-06-0{day}T00:00:00Z") for day in (3, 1, 2)]
    pods.append(pod("evicted", created="2026-06-09T00:00:00Z", reason="Evicted"))
    assert [one.pod.metadata.name for one in plan_finished(pods, 2)] == ["evicted", "p1"]
    assert plan_finished(pods, 4) == []


@pytest.mark.parametrize(
    ("value", "up", "expected"),
    [
        (None, True, 0),
        (3, True, 3),
        ("25%", True, 3),
        ("25%", False, 2),
        ("100%", False, 10),
        ("x", True, 0),
        ("5", True, 0),
    ],
)
def test_shares(value: int | str | None, up: bool, expected: int) -> None:
    assert resolve(value, 10, up=up) == expected
