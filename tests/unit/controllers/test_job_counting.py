"""Indexes, and what finished pods add up to."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_world import manifest, pod, typed
from dray.api.generated.batch import Job
from dray.api.generated.core import Pod
from dray.controllers.job.counting import TRACKING, count
from dray.controllers.job.failure_policy import FailureEffect, judge, tell_reason
from dray.controllers.job.indexes import missing, parse, render


@given(st.sets(st.integers(0, 200)))
def test_indexes_survive_being_written(indexes: set[int]) -> None:
    assert parse(render(indexes)) == indexes


@pytest.mark.parametrize(
    ("indexes", "text"), [([], ""), ([3], "3"), ([1, 2], "1,2"), ([0, 1, 2, 4], "0-2,4"), ([7, 5, 6, 0], "0,5-7")]
)
def test_indexes_are_written_as_kubernetes_does(indexes: list[int], text: str) -> None:
    assert render(indexes) == text


@pytest.mark.parametrize("text", ["x", "1-", "-1", "2-x", "1-99999999999", ",,"])
def test_nonsense_in_indexes_is_left_out(text: str) -> None:
    assert len(parse(text)) <= 1


def test_the_lowest_missing_index_comes_first() -> None:
    assert list(missing(5, {0, 3})) == [1, 2, 4]


def job(status: dict[str, Any] | None = None, **spec: Any) -> Job:
    made: Job = typed(manifest("batch/v1", "Job", "j", spec=spec, status=status or {}))
    return made


def ended(uid: str, phase: str, *, held: bool = True, **status: Any) -> Pod:
    made = pod(uid, meta={"uid": uid, "finalizers": [TRACKING] if held else []})
    found: Pod = typed({**made, "status": {"phase": phase, **status}})
    return found


@pytest.mark.parametrize(
    ("status", "pods", "counted", "uncounted"),
    [
        pytest.param({}, [ended("a", "Running")], (0, 0), None, id="running"),
        pytest.param({}, [ended("a", "Succeeded"), ended("b", "Failed")], (0, 0), (("a",), ("b",)), id="just ended"),
        pytest.param(
            {"uncountedTerminatedPods": {"succeeded": ["a"]}},
            [ended("a", "Succeeded")],
            (0, 0),
            (("a",), ()),
            id="noted, not released",
        ),
        pytest.param(
            {"uncountedTerminatedPods": {"succeeded": ["a"]}},
            [ended("a", "Succeeded", held=False)],
            (1, 0),
            None,
            id="released: counted",
        ),
        pytest.param({"uncountedTerminatedPods": {"failed": ["a"]}}, [], (0, 1), None, id="gone: counted"),
        pytest.param(
            {"uncountedTerminatedPods": {"failed": ["a"]}},
            [ended("a", "Succeeded")],
            (0, 0),
            ((), ("a",)),
            id="failed when it was to go, and ended well",
        ),
        pytest.param({"succeeded": 1}, [ended("a", "Succeeded", held=False)], (1, 0), None, id="counted before"),
    ],
)
def test_each_pod_counts_once(
    status: dict[str, Any], pods: list[Pod], counted: tuple[int, int], uncounted: tuple[Any, Any] | None
) -> None:
    tally = count(job(status, completions=5), pods)
    assert list(tally.release) == [one for one in pods if one.metadata.finalizers and one.status.phase != "Running"]
    assert (tally.succeeded, tally.failed) == counted
    left = tally.uncounted
    assert (None if left is None else (left.succeeded, left.failed)) == uncounted


EXIT_42 = {"containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 42}}}]}
LOST = {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}


@pytest.mark.parametrize(
    ("rule", "status", "verdict"),
    [
        ({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}, EXIT_42, FailureEffect.FAIL_JOB),
        ({"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [42]}}, EXIT_42, FailureEffect.COUNT),
        ({"action": "Ignore", "onExitCodes": {"operator": "NotIn", "values": [1]}}, EXIT_42, FailureEffect.IGNORE),
        (
            {"action": "Ignore", "onExitCodes": {"containerName": "other", "operator": "In", "values": [42]}},
            EXIT_42,
            FailureEffect.COUNT,
        ),
        (
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            LOST,
            FailureEffect.IGNORE,
        ),
        ({"action": "Ignore", "onPodConditions": [{"type": "Other", "status": "True"}]}, LOST, FailureEffect.COUNT),
        ({"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}}, EXIT_42, FailureEffect.FAIL_INDEX),
    ],
)
def test_failure_policy(rule: dict[str, Any], status: dict[str, Any], verdict: FailureEffect) -> None:
    assert judge(job(podFailurePolicy={"rules": [rule]}), ended("a", "Failed", **status)) is verdict


@pytest.mark.parametrize(
    ("rule", "status", "told"),
    [
        (
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
            EXIT_42,
            "Container main for pod default/a failed with exit code 42 matching FailJob rule at index 1",
        ),
        (
            {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            LOST,
            "Pod default/a has condition DisruptionTarget matching FailJob rule at index 1",
        ),
        ({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}, EXIT_42, ""),
    ],
)
def test_which_rule_ends_the_job_is_told(rule: dict[str, Any], status: dict[str, Any], told: str) -> None:
    unrelated = {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [7]}}
    assert tell_reason(job(podFailurePolicy={"rules": [unrelated, rule]}), ended("a", "Failed", **status)) == told
