"""The steps of a pod on a simulated node, as plain function calls."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from controller_world import pod as pod_manifest
from controller_world import typed
from dray.api.generated.core import Pod
from dray.api.quantity import Quantity
from dray.api.resource import ResourceClaim
from dray.api.times import Time
from dray.process.clock import as_time
from dray.simulation.behaviour import Behaviour, read_behaviour
from dray.simulation.pod_lifecycle import NOTHING, PodSurroundings, Step, plan

START = 1_750_000_000.0
STARTED = {"state": {"running": {"startedAt": str(as_time(START))}}}


def made(meta: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **spec: Any) -> Pod:
    manifest = pod_manifest("p", meta={"uid": "u1", **(meta or {})}, nodeName="node-1", **spec)
    result = typed({**manifest, "status": status or {"phase": "Pending"}})
    assert isinstance(result, Pod)
    return result


def running(restarts: int = 0, **spec: Any) -> Pod:
    container = {"name": "main", "image": "busybox", "imageID": "", "ready": True, "restartCount": restarts, **STARTED}
    return made(status={"phase": "Running", "containerStatuses": [container]}, **spec)


def step(pod: Pod, after: float = 0, claims: dict[str, ResourceClaim] | None = None, **behaviour: Any) -> Step:
    def find(_namespace: str, name: str) -> ResourceClaim | None:
        return (claims or {}).get(name)

    now = START + after
    return plan(pod, PodSurroundings("172.16.0.1", "10.0.0.1", Behaviour(**behaviour), find), now, as_time(now))


def test_a_pod_without_claims_runs_at_once() -> None:
    status = step(made()).status
    assert status is not None
    assert (status.phase, status.pod_ip, status.host_ip) == ("Running", "10.0.0.1", "172.16.0.1")
    assert all(one.ready for one in status.container_statuses)
    assert {one.type: one.status for one in status.conditions}["Ready"] == "True"


def test_conditions_of_others_stay() -> None:
    scheduled = {"type": "PodScheduled", "status": "True"}
    status = step(made(status={"phase": "Pending", "conditions": [scheduled]})).status
    assert status is not None
    assert {one.type for one in status.conditions} >= {"PodScheduled", "Ready", "Initialized"}


def test_a_pod_that_was_declared_not_ready_in_silence_is_ready_again() -> None:
    conditions = [{"type": "ContainersReady", "status": "True"}, {"type": "Ready", "status": "False"}]
    status = step(made(status={"phase": "Running", "conditions": conditions})).status
    assert status is not None
    assert {one.type: one.status for one in status.conditions}["Ready"] == "True"
    conditions[1]["status"] = "True"
    assert step(made(status={"phase": "Running", "conditions": conditions})) == NOTHING


def test_a_pod_that_runs_is_scheduled_whatever_a_scheduler_said_late() -> None:
    ready = [{"type": "ContainersReady", "status": "True"}, {"type": "Ready", "status": "True"}]
    late = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    status = step(made(status={"phase": "Running", "conditions": [*ready, late]})).status
    assert status is not None
    assert {one.type: (one.status, one.reason) for one in status.conditions}["PodScheduled"] == ("True", "")


def test_a_host_network_pod_has_the_address_of_its_node() -> None:
    status = step(made(hostNetwork=True)).status
    assert status is not None
    assert status.pod_ip == "172.16.0.1"


def test_init_containers_have_ended_before_and_sidecars_run() -> None:
    init = [{"name": "first", "image": "i"}, {"name": "side", "image": "i", "restartPolicy": "Always"}]
    status = step(made(initContainers=init)).status
    assert status is not None
    first, side = status.init_container_statuses
    assert first.state.terminated is not None
    assert side.state.running is not None


def test_running_containers_say_what_they_have_and_follow_a_resize() -> None:
    side = {"name": "side", "image": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}
    main = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]}}
    first = made(initContainers=[side], containers=[main])
    status = step(first).status
    assert status is not None
    [entry] = status.container_statuses
    assert entry.resources is not None
    assert (entry.resources.requests, entry.resources.claims) == ({"cpu": Quantity.parse("1")}, ())
    there = replace(first, status=status)
    assert step(there).status is None, "nothing is asked for that they do not have"
    for each in (side, main):
        each["resources"] = {"requests": {"cpu": "2"}}
    asked = replace(there, spec=made(initContainers=[side], containers=[main]).spec)
    followed = step(asked).status
    assert followed is not None
    for entry in (*followed.init_container_statuses, *followed.container_statuses):
        assert entry.resources is not None
        assert entry.resources.requests == entry.allocated_resources == {"cpu": Quantity.parse("2")}
    assert step(replace(asked, status=followed)).status is None, "once"


def test_starting_takes_as_long_as_it_is_said_to() -> None:
    first = step(made(), start=5)
    assert first.status is not None
    assert (first.status.phase, first.again_in) == ("Pending", 5)
    waiting = first.status.container_statuses[0].state.waiting
    assert waiting is not None
    assert waiting.reason == "ContainerCreating"
    begun = made(status={"phase": "Pending", "startTime": str(as_time(START))})
    assert step(begun, after=2, start=5) == Step(again_in=3)
    late = step(begun, after=5, start=5).status
    assert late is not None
    assert late.phase == "Running"


CLAIM_CASES: dict[str, tuple[dict[str, str | None], dict[str, Any] | None, str]] = {
    "not made yet": ({}, None, "no ResourceClaim has been made from its template yet"),
    "gone": ({"c": "c-1"}, None, "there is no ResourceClaim c-1"),
    "not allocated": ({"c": "c-1"}, {}, "is not allocated"),
    "reserved for another": (
        {"c": "c-1"},
        {"allocation": {}, "reservedFor": [{"resource": "pods", "name": "p", "uid": "other"}]},
        "is not reserved for this pod",
    ),
    "ready": ({"c": "c-1"}, {"allocation": {}, "reservedFor": [{"resource": "pods", "name": "p", "uid": "u1"}]}, ""),
    "none needed": ({"c": None}, None, ""),
}


@pytest.mark.req("4381-131")
@pytest.mark.parametrize("case", CLAIM_CASES)
def test_a_pod_starts_only_with_claims_that_are_allocated_and_reserved_for_it(case: str) -> None:
    names, claim_status, problem = CLAIM_CASES[case]
    statuses = [{"name": name, **({"resourceClaimName": claim} if claim else {})} for name, claim in names.items()]
    pod = made(
        status={"phase": "Pending", "resourceClaimStatuses": statuses},
        resourceClaims=[{"name": "c", "resourceClaimTemplateName": "t"}],
    )
    claims = {}
    if claim_status is not None:
        meta = {"name": "c-1", "namespace": "default"}
        claims["c-1"] = typed(
            {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": meta, "status": claim_status}
        )
    found = step(pod, claims=claims)
    assert problem in found.warning
    assert (found.status is None) == bool(problem)
    if names.get("c"):
        extended = made(status={"phase": "Pending", "extendedResourceClaimStatus": {"resourceClaimName": "c-1"}})
        found = step(extended, claims=claims)
        assert problem in found.warning
        assert (found.status is None) == bool(problem)


@pytest.mark.parametrize(
    ("code", "policy", "phase"),
    [
        (0, "Never", "Succeeded"),
        (3, "Never", "Failed"),
        (0, "OnFailure", "Succeeded"),
    ],
)
def test_a_pod_ends_with_its_exit_code(code: int, policy: str, phase: str) -> None:
    pod = running(restartPolicy=policy)
    assert step(pod, after=4, run=10, exit_code=code) == Step(again_in=6)
    status = step(pod, after=10, run=10, exit_code=code).status
    assert status is not None
    assert status.phase == phase
    done = status.container_statuses[0].state.terminated
    assert done is not None
    assert done.exit_code == code
    assert {one.type: one.status for one in status.conditions}["Ready"] == "False"


def test_without_a_time_a_pod_runs_for_ever() -> None:
    assert step(running(restartPolicy="Never"), after=1e6) is NOTHING


@pytest.mark.parametrize(("code", "policy"), [(0, "Always"), (1, "Always"), (1, "OnFailure")])
def test_containers_are_restarted_first_at_once_and_then_later(code: int, policy: str) -> None:
    first = step(running(restartPolicy=policy), after=10, run=10, exit_code=code).status
    assert first is not None
    assert (first.phase, first.container_statuses[0].restart_count) == ("Running", 1)
    again = step(running(restarts=2, restartPolicy=policy), after=10, run=10, exit_code=code)
    assert again.again_in == 20
    assert again.status is not None
    waiting = again.status.container_statuses[0].state.waiting
    assert waiting is not None
    assert waiting.reason == "CrashLoopBackOff"


def test_a_container_that_waits_for_its_restart_gets_it_when_the_time_has_come() -> None:
    ended = {"terminated": {"exitCode": 1, "finishedAt": str(as_time(START))}}
    container = {
        "name": "main",
        "image": "busybox",
        "imageID": "",
        "ready": False,
        "restartCount": 1,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": ended,
    }
    pod = made(status={"phase": "Running", "containerStatuses": [container]})
    assert step(pod, after=4, run=1, exit_code=1) == Step(again_in=6)
    status = step(pod, after=10, run=1, exit_code=1).status
    assert status is not None
    assert status.container_statuses[0].state.running is not None
    assert status.container_statuses[0].restart_count == 2


def test_a_pod_past_its_deadline_has_failed() -> None:
    pod = made(status={"phase": "Running", "startTime": str(as_time(START))}, activeDeadlineSeconds=30)
    assert step(pod, after=10).again_in == 20
    status = step(pod, after=30).status
    assert status is not None
    assert (status.phase, status.reason) == ("Failed", "DeadlineExceeded")


def deleted(grace: int, status: dict[str, Any], finalizers: tuple[str, ...] = ()) -> Pod:
    meta = {
        "deletionTimestamp": str(Time(as_time(START + grace))),
        "deletionGracePeriodSeconds": grace,
        "finalizers": list(finalizers),
    }
    return made(meta, status)


def test_a_deleted_pod_stops_in_its_grace_period_and_is_removed() -> None:
    pod = deleted(30, {"phase": "Running"})
    assert step(pod, after=1, stop=5) == Step(again_in=4)
    found = step(pod, after=5, stop=5)
    assert found.remove
    assert found.status is not None
    assert found.status.phase == "Succeeded"


def test_a_pod_that_does_not_stop_in_time_is_killed() -> None:
    found = step(deleted(10, {"phase": "Running"}), after=10, stop=60)
    assert found.remove
    assert found.status is not None
    done = found.status.container_statuses[0].state.terminated
    assert done is not None
    assert (found.status.phase, done.exit_code) == ("Failed", 137)


def test_a_pod_that_never_started_has_failed() -> None:
    found = step(deleted(30, {"phase": "Pending"}))
    assert found.remove
    assert found.status is not None
    assert found.status.phase == "Failed"


def test_a_pod_that_only_waits_for_finalizers_is_left_alone() -> None:
    assert step(deleted(0, {"phase": "Succeeded"}, ("example.com/wait",))) is NOTHING
    assert step(deleted(30, {"phase": "Succeeded"}, ("example.com/wait",))).remove


@pytest.mark.parametrize(
    ("pod", "node", "expected"),
    [
        ({}, {}, Behaviour()),
        ({"dray.dev/run-seconds": "2.5"}, {"dray.dev/run-seconds": "9"}, Behaviour(run=2.5)),
        ({}, {"dray.dev/start-seconds": "3", "dray.dev/exit-code": "7"}, Behaviour(start=3, exit_code=7)),
    ],
)
def test_annotations_of_the_pod_win_over_those_of_the_node(
    pod: dict[str, str], node: dict[str, str], expected: Behaviour
) -> None:
    assert read_behaviour(pod, node) == expected


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf", ""])
def test_an_annotation_that_cannot_be_meant_is_told(text: str) -> None:
    found = read_behaviour({"dray.dev/run-seconds": text}, {})
    assert found.run is None
    assert "dray.dev/run-seconds must be a number" in found.problem


@pytest.mark.parametrize("text", ["1.5", "256"])
def test_an_exit_code_is_a_small_whole_number(text: str) -> None:
    found = read_behaviour({"dray.dev/exit-code": text}, {})
    assert found.exit_code == 0
    assert "dray.dev/exit-code must be a whole number" in found.problem
