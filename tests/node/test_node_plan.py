"""Which containers start when, and what the pod's status says of it."""

from __future__ import annotations

from typing import Any

import pytest

import builders
from dray.api.generated.core import Pod
from dray.api.pods import FAILED
from dray.api.quantity import Quantity
from dray.node import pod_status
from dray.node.pod_plan import Ended, PodPlan, View, plan
from dray.node.pod_status import End
from dray.node.room import Room

NOW = 1_000.0
RUNNING = View(running_since=900.0)


def ended(code: int | None, *, at: float = 990.0, since: float = 980.0, restarts: int = 0) -> View:
    return View(restarts=restarts, ended=Ended(code, since, at))


def pod(policy: str = "Always", containers: str = "main", init: tuple[dict[str, Any], ...] = ()) -> Pod:
    listed = [builders.container(name) for name in containers.split()]
    first = [builders.container(**one) for one in init]
    return builders.typed(builders.pod(restartPolicy=policy, containers=listed, initContainers=first), Pod)


INIT = {"name": "init"}
SIDECAR = {"name": "side", "restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("given", "views", "wanted"),
    [
        (pod(), {}, PodPlan(("main",))),
        (pod(containers="a b"), {"a": RUNNING}, PodPlan(("b",))),
        (pod(), {"main": RUNNING}, PodPlan()),
        # Ended containers, by policy.
        (pod("Always"), {"main": ended(0)}, PodPlan(("main",))),
        (pod("Always"), {"main": ended(0, restarts=1)}, PodPlan(("main",))),
        (pod("Always"), {"main": ended(1, at=999.0, restarts=1)}, PodPlan((), 9.0)),
        (pod("Always"), {"main": ended(1, at=999.0, restarts=3)}, PodPlan((), 39.0)),
        (pod("Always"), {"main": ended(1, at=999.0, restarts=50)}, PodPlan((), 299.0)),
        (pod("Always"), {"main": ended(1, at=999.0, since=100.0, restarts=9)}, PodPlan(("main",))),
        (pod("OnFailure"), {"main": ended(0)}, PodPlan(outcome="Succeeded")),
        (pod("OnFailure"), {"main": ended(1)}, PodPlan(("main",))),
        (pod("OnFailure"), {"main": ended(None)}, PodPlan(("main",))),
        (pod("Never"), {"main": ended(0)}, PodPlan(outcome="Succeeded")),
        (pod("Never"), {"main": ended(1)}, PodPlan(outcome="Failed")),
        (pod("Never"), {"main": ended(None)}, PodPlan(outcome="Failed")),
        (pod("Never", "a b"), {"a": ended(1), "b": RUNNING}, PodPlan()),
        (pod("Never", "a b"), {"a": ended(0), "b": ended(2)}, PodPlan(outcome="Failed")),
        # Init containers, one after the other.
        (pod(init=(INIT, {"name": "second"})), {}, PodPlan(("init",))),
        (pod(init=(INIT,)), {"init": RUNNING}, PodPlan()),
        (pod(init=(INIT,)), {"init": ended(0)}, PodPlan(("main",))),
        (pod(init=(INIT,)), {"init": ended(1)}, PodPlan(("init",))),
        (pod("Never", init=(INIT,)), {"init": ended(1)}, PodPlan(outcome="Failed")),
        (pod("OnFailure", init=(INIT,)), {"init": ended(1, at=999.0, restarts=1)}, PodPlan((), 9.0)),
        # Sidecars.
        (pod(init=(SIDECAR, INIT)), {}, PodPlan(("side",))),
        (pod(init=(SIDECAR, INIT)), {"side": RUNNING}, PodPlan(("init",))),
        (pod("Never", init=(SIDECAR,)), {"side": ended(1), "main": RUNNING}, PodPlan(("side",))),
        (pod("Never", init=(SIDECAR,)), {"side": RUNNING, "main": ended(0)}, PodPlan(outcome="Succeeded")),
        # Starts that failed.
        (pod(), {"main": View(start_failures=1, failed_at=999.5)}, PodPlan((), 0.5)),
        (pod(), {"main": View(start_failures=3, failed_at=999.0)}, PodPlan((), 3.0)),
        (pod(), {"main": View(start_failures=1, failed_at=990.0)}, PodPlan(("main",))),
        # The clock was set back since.
        (pod(), {"main": ended(1, at=NOW + 36_000, restarts=3)}, PodPlan(("main",))),
        (pod(), {"main": View(start_failures=3, failed_at=NOW + 36_000)}, PodPlan(("main",))),
    ],
)
def test_plans(given: Pod, views: dict[str, View], wanted: PodPlan) -> None:
    assert plan(given.spec, views, NOW) == wanted


def test_a_failed_container_waits_in_the_status() -> None:
    given = pod()
    view = ended(1, at=999.0, restarts=1)
    status = pod_status.status(given, {"main": view}, "10.0.0.1", NOW, {})
    [container] = status.container_statuses
    assert container.state.waiting is not None
    assert container.state.waiting.reason == "CrashLoopBackOff"
    assert container.last_state.terminated is not None
    assert (status.phase, container.restart_count, container.ready) == ("Running", 1, False)


@pytest.mark.parametrize(
    ("views", "phase", "ready"),
    [
        ({}, "Pending", "False"),
        ({"init": RUNNING}, "Pending", "False"),
        ({"init": ended(0)}, "Pending", "False"),
        ({"init": ended(0), "main": RUNNING}, "Running", "True"),
        ({"init": ended(0), "main": ended(1)}, "Running", "False"),
    ],
)
def test_phases_and_readiness(views: dict[str, View], phase: str, ready: str) -> None:
    status = pod_status.status(pod(init=(INIT,)), views, "10.0.0.1", NOW, {})
    conditions = {one.type: one.status for one in status.conditions}
    assert (status.phase, conditions["Ready"], conditions["ContainersReady"]) == (phase, ready, ready)


def test_times_of_conditions_change_only_with_their_status() -> None:
    given = pod()
    first = pod_status.status(given, {"main": RUNNING}, "10.0.0.1", NOW, {})
    again = pod_status.status(
        Pod(spec=given.spec, status=first, metadata=given.metadata), {"main": RUNNING}, "10.0.0.1", NOW + 60, {}
    )
    assert again == first


def test_what_nobody_saw_end_is_told_so() -> None:
    status = pod_status.final_status(pod(), {"main": ended(None)}, "10.0.0.1", NOW, {}, End(FAILED))
    done = status.container_statuses[0].state.terminated
    assert done is not None
    assert (done.exit_code, done.reason, status.phase) == (137, "ContainerStatusUnknown", "Failed")


def sized(uid: str, *, gpus: str = "", started: bool = False, **requests: str) -> Pod:
    requests |= {"example.com/gpu": gpus} if gpus else {}
    containers = [builders.container(resources={"requests": requests})]
    status = {"startTime": "2026-01-01T00:00:00Z"} if started else {}
    return builders.typed(builders.pod(meta={"uid": uid}, containers=containers, status=status), Pod)


def test_there_is_room_for_what_the_machine_has_and_no_more() -> None:
    room = Room({name: Quantity.parse(text) for name, text in {"cpu": "2", "memory": "1Gi", "pods": "3"}.items()})
    assert room.enter(sized("a", cpu="1500m")) is None
    assert room.enter(sized("a", cpu="1500m")) is None, "who has a place keeps it"
    too_much = room.enter(sized("b", cpu="600m"))
    assert too_much is not None
    assert (too_much.phase, too_much.reason) == (FAILED, "OutOfcpu")
    assert too_much.message.endswith("cpu, requested: 600, used: 1500, capacity: 2000")
    assert room.enter(sized("a", cpu="1")) is None, "it has become smaller"
    assert room.enter(sized("b", cpu="1", memory="1Gi")) is None
    memory = room.enter(sized("c", memory="1"))
    assert memory is not None
    assert memory.reason == "OutOfmemory"
    assert room.enter(sized("c", gpus="5")) is None, "the scheduler gives it claims for that"
    full = room.enter(sized("d"))
    assert full is not None
    assert full.reason == "OutOfpods"
    assert room.enter(sized("e", started=True, cpu="9")) is None, "it ran before the agent was restarted"
    for uid in ("a", "b", "c", "d", "e"):
        room.leave(uid)
    assert room.enter(sized("f", cpu="2", memory="1Gi")) is None
