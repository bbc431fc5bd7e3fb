"""The status of workloads: numbers that fit together, and jobs that do not come back to life."""

from __future__ import annotations

from typing import Any

import pytest

SELECTOR = {"matchLabels": {"app": "a"}}
PODS: dict[str, Any] = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
META = {"name": "x", "namespace": "default"}
START, LATER = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"


def workload(kind: str, **status: Any) -> dict[str, Any]:
    spec = {"selector": SELECTOR, "template": PODS}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": META, "spec": spec, "status": status}


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [
        ("Deployment", {"replicas": 2, "updatedReplicas": 2, "readyReplicas": 1, "availableReplicas": 1}, set()),
        ("Deployment", {"unavailableReplicas": -1}, {"unavailableReplicas"}),
        ("Deployment", {"updatedReplicas": 1}, {"updatedReplicas"}),
        ("ReplicaSet", {"replicas": 2, "readyReplicas": 1, "availableReplicas": 2}, {"availableReplicas"}),
        ("ReplicaSet", {"fullyLabeledReplicas": 1}, {"fullyLabeledReplicas"}),
        ("StatefulSet", {"currentReplicas": 1}, {"currentReplicas"}),
        ("StatefulSet", {"observedGeneration": -1}, {"observedGeneration"}),
        ("DaemonSet", {"numberReady": 3, "desiredNumberScheduled": 1}, set()),
        ("DaemonSet", {"numberMisscheduled": -1}, {"numberMisscheduled"}),
    ],
)
def test_numbers(verdict: Any, kind: str, status: dict[str, int], expected: set[str]) -> None:
    judged = verdict(workload(kind, **status), workload(kind))
    assert judged == {("Invalid", f"status.{field}") for field in expected}


@pytest.mark.parametrize("kind", ["Deployment", "DaemonSet", "StatefulSet"])
def test_collisions_are_never_uncounted(verdict: Any, kind: str) -> None:
    had = workload(kind, collisionCount=2)
    assert verdict(workload(kind, collisionCount=3), had) == set()
    assert verdict(workload(kind, collisionCount=1), had) == {("Invalid", "status.collisionCount")}
    assert verdict(workload(kind), had) == {("Invalid", "status.collisionCount")}


def job(status: dict[str, Any], *conditions: str, **spec: Any) -> dict[str, Any]:
    full = {
        "selector": SELECTOR,
        "manualSelector": True,
        "template": {**PODS, "spec": {**PODS["spec"], "restartPolicy": "Never"}},
        "completionMode": "Indexed",
        "completions": 4,
        "backoffLimitPerIndex": 1,
        **spec,
    }
    told = [{"type": one, "status": "True"} for one in conditions]
    both = {"status": {**status, "conditions": told}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": META, "spec": full, **both}


RUNNING = {"active": 2, "startTime": START}
DONE = {"startTime": START, "completionTime": LATER, "succeeded": 4}
COMPLETE = ("SuccessCriteriaMet", "Complete")
FAILED = ("FailureTarget", "Failed")


@pytest.mark.parametrize(
    ("status", "conditions", "expected"),
    [
        ({**RUNNING, "ready": 2, "completedIndexes": "0,2-3", "failedIndexes": "1"}, (), set()),
        ({**RUNNING, "ready": 3}, (), {("Invalid", "ready")}),
        ({**RUNNING, "terminating": -1}, (), {("Invalid", "terminating")}),
        ({**RUNNING, "failed": 0}, (), {("Invalid", "failed")}),
        ({**RUNNING, "startTime": LATER}, (), {("Invalid", "startTime")}),
        ({**RUNNING, "completedIndexes": "2,1"}, (), {("Invalid", "completedIndexes")}),
        ({**RUNNING, "completedIndexes": "0-2", "failedIndexes": "2-3"}, (), {("Invalid", "failedIndexes")}),
        ({**RUNNING, "completionTime": LATER}, (), {("Invalid", "completionTime")}),
        (
            {**RUNNING, "uncountedTerminatedPods": {"succeeded": ["a", "a", ""]}},
            (),
            {
                ("Duplicate", "uncountedTerminatedPods.succeeded[1]"),
                ("Invalid", "uncountedTerminatedPods.succeeded[2]"),
            },
        ),
        (DONE, COMPLETE, set()),
        ({**DONE, "active": 1}, COMPLETE, {("Invalid", "active")}),
        ({**DONE, "terminating": 1}, COMPLETE, {("Invalid", "terminating")}),
        ({**DONE, "completionTime": None}, COMPLETE, {("Required", "completionTime")}),
        (DONE, ("Complete",), {("Invalid", "conditions")}),
        ({"startTime": START}, FAILED, set()),
        ({"startTime": START}, ("Failed",), {("Invalid", "conditions")}),
        ({"startTime": START}, (*FAILED, "SuccessCriteriaMet"), {("Invalid", "conditions")}),
    ],
)
def test_a_job(
    verdict: Any, status: dict[str, Any], conditions: tuple[str, ...], expected: set[tuple[str, str]]
) -> None:
    old = job({**RUNNING, "failed": 1})
    judged = verdict(job({"failed": 1, **status}, *conditions), old)
    assert judged == {(reason, f"status.{field}") for reason, field in expected}


def test_a_job_that_is_over_stays_so(verdict: Any) -> None:
    over = job(DONE, *COMPLETE)
    assert ("Invalid", "status.conditions") in verdict(job(DONE), over)
    assert verdict(job({**DONE, "completionTime": "2026-01-02T00:00:00Z"}, *COMPLETE), over) == {
        ("Invalid", "status.completionTime")
    }


def test_what_was_wrong_before_is_let_through(verdict: Any) -> None:
    odd = {**RUNNING, "ready": 3, "completedIndexes": "7"}
    assert verdict(job({**odd, "succeeded": 1}), job(odd)) == set()


def test_indexes_of_jobs_without_them(verdict: Any) -> None:
    plain = {"completionMode": "NonIndexed", "backoffLimitPerIndex": None}
    judged = verdict(job({**RUNNING, "completedIndexes": "1", "failedIndexes": ""}, **plain), job(RUNNING, **plain))
    assert judged == {("Invalid", "status.completedIndexes"), ("Invalid", "status.failedIndexes")}
