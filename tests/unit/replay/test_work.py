"""Pods of a recording as work: what comes again, how long it runs, who replaces whom."""

from __future__ import annotations

from typing import Any

from dray.api.generated.core import Pod
from dray.replay.work import Stories, Work, find_work
from local_server import typed

START = 1000.0


def pod(
    name: str,
    *,
    owner: str = "",
    node: str = "",
    phase: str = "Pending",
    reason: str = "",
    deleting: bool = False,
    gated: bool = False,
    annotations: dict[str, str] | None = None,
) -> Pod:
    meta: dict[str, Any] = {"name": name, "namespace": "ml", "uid": name, "annotations": annotations or {}}
    if owner:
        meta["ownerReferences"] = [
            {"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": owner, "controller": True}
        ]
    if deleting:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec: dict[str, Any] = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
    if gated:
        spec["schedulingGates"] = [{"name": "wait"}]
    conditions = [{"type": "DisruptionTarget", "status": "True", "reason": reason}] if reason else []
    found = typed(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": meta,
            "spec": spec,
            "status": {"phase": phase, "conditions": conditions},
        }
    )
    assert isinstance(found, Pod)
    return found


def live(stories: Stories, name: str, at: float, runs: float | None = None, **more: Any) -> None:
    """A pod comes, is bound after 2 seconds, runs after 3 more, and ends by itself."""
    stories.see(pod(name, **more), at, is_first=False)
    stories.see(pod(name, node="n", **more), at + 2, is_first=False)
    stories.see(pod(name, node="n", phase="Running", **more), at + 5, is_first=False)
    if runs is not None:
        stories.see(pod(name, node="n", phase="Succeeded", **more), at + 5 + runs, is_first=False)


def evict(stories: Stories, name: str, at: float, reason: str, **more: Any) -> None:
    """A pod is evicted and gone four seconds later."""
    stories.see(pod(name, node="n", phase="Running", reason=reason, **more), at, is_first=False)
    stories.see(pod(name, node="n", phase="Running", reason=reason, deleting=True, **more), at, is_first=False)
    stories.miss(name, at + 4)


def work_of(stories: Stories) -> dict[str, Work]:
    return {one.pod.metadata.name: one for one in find_work(stories, START)}


def test_work_that_ends_by_itself_runs_as_long_again() -> None:
    stories = Stories()
    live(stories, "a", START + 10, runs=60)
    stories.see(pod("a", node="n", phase="Succeeded", deleting=True), START + 500, is_first=False)
    found = work_of(stories)["a"]
    assert (found.arrives, found.starts_in, found.runs_for, found.removed) == (START + 10, 3, 60, None)
    assert not found.node


def test_work_that_somebody_took_away_goes_at_that_time() -> None:
    stories = Stories()
    live(stories, "a", START + 10)
    stories.see(pod("a", node="n", phase="Running", deleting=True), START + 100, is_first=False)
    stories.see(pod("a", node="n", phase="Succeeded", deleting=True), START + 103, is_first=False)
    stories.miss("a", START + 104)
    found = work_of(stories)["a"]
    assert (found.removed, found.runs_for, found.stops_in) == (START + 100, None, 4)


def test_the_replacement_of_an_evicted_pod_is_the_same_work() -> None:
    stories = Stories()
    live(stories, "a", START, owner="job")
    evict(stories, "a", START + 50, "DeletionByDeviceTaintManager", owner="job")
    live(stories, "b", START + 51, runs=70, owner="job")
    live(stories, "other", START + 52, runs=5, owner="another-job")
    found = work_of(stories)
    assert set(found) == {"a", "other"}
    assert (found["a"].runs_for, found["a"].removed, found["a"].evicted) == (70, None, ())
    assert found["a"].is_replaced


def test_each_evicted_pod_has_one_replacement() -> None:
    stories = Stories()
    for name in ("a", "b", "c"):
        live(stories, name, START, owner="job")
    for name in ("a", "b"):
        evict(stories, name, START + 50, "DeletionByTaintManager", owner="job")
    for name in ("d", "e", "f"):
        live(stories, name, START + 60, owner="job")
    assert set(work_of(stories)) == {"a", "b", "c", "f"}


def test_an_eviction_that_somebody_asked_for_comes_again() -> None:
    stories = Stories()
    live(stories, "a", START, owner="job")
    evict(stories, "a", START + 50, "EvictionByEvictionAPI", owner="job")
    live(stories, "b", START + 51, owner="job")
    found = work_of(stories)["a"]
    assert (found.evicted, found.removed) == ((START + 50,), None)


def test_an_eviction_that_nobody_replaced_took_the_work_away() -> None:
    stories = Stories()
    live(stories, "a", START, owner="job")
    evict(stories, "a", START + 50, "EvictionByEvictionAPI", owner="job")
    found = work_of(stories)["a"]
    assert (found.evicted, found.removed) == ((), START + 50)


def test_a_pod_that_was_evicted_before_its_end_runs_as_long_as_is_usual() -> None:
    stories = Stories()
    for number, runs in enumerate((10, 20, 90)):
        live(stories, f"done-{number}", START, runs=runs, owner="job")
    live(stories, "a", START + 1, owner="job")
    evict(stories, "a", START + 50, "DeletionByDeviceTaintManager", owner="job")
    live(stories, "alone", START)
    evict(stories, "alone", START + 50, "DeletionByDeviceTaintManager")
    found = work_of(stories)
    assert found["a"].runs_for == 20
    assert (found["alone"].runs_for, found["alone"].removed, found["alone"].is_replaced) == (None, None, False)


def test_pods_that_were_there_stay_where_they_were_and_run_on() -> None:
    stories = Stories()
    stories.see(pod("runs", node="n", phase="Running"), START, is_first=True)
    stories.see(pod("runs", node="n", phase="Succeeded"), START + 30, is_first=False)
    stories.see(pod("waits"), START, is_first=True)
    stories.see(pod("over", node="n", phase="Failed"), START, is_first=True)
    stories.see(pod("leaves", node="n", phase="Running", deleting=True), START, is_first=True)
    found = work_of(stories)
    assert set(found) == {"runs", "waits"}
    assert (found["runs"].node, found["runs"].runs_for, found["runs"].starts_in) == ("n", 30, 0)
    assert not found["waits"].node


def test_pods_of_a_node_itself_are_where_it_says() -> None:
    stories = Stories()
    mirrored = {"kubernetes.io/config.mirror": "x"}
    stories.see(pod("static", node="n", phase="Running", annotations=mirrored), START + 5, is_first=False)
    assert work_of(stories)["static"].node == "n"


def test_gates_that_somebody_takes_away_are_taken_away_again() -> None:
    stories = Stories()
    stories.see(pod("a", gated=True), START + 1, is_first=False)
    stories.see(pod("a"), START + 20, is_first=False)
    stories.see(pod("a", node="n"), START + 21, is_first=False)
    moments = [(moment, bool(one.spec.scheduling_gates)) for moment, one in work_of(stories)["a"].changes]
    assert moments == [(START + 20, False)]
