"""Jobs run to completion, whatever happens to their pods."""

import contextlib
import tracemalloc
from collections.abc import AsyncIterator
from typing import Any

import pytest

from controller_world import Manifest, World, controller_world, find_kind, manifest
from dray.api.generated.core import Pod


@contextlib.asynccontextmanager
async def job_world(*more: str) -> AsyncIterator[World]:
    async with controller_world("job-controller", *more) as world:
        yield world


def job(**spec: Any) -> Manifest:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}}
    return manifest("batch/v1", "Job", "j", spec={"template": template, **spec})


async def active(world: World) -> list[Pod]:
    return [
        one
        for one in await world.objects("pods")
        if one.status.phase not in ("Succeeded", "Failed") and one.metadata.deletion_timestamp is None
    ]


async def end(world: World, pod: Pod, phase: str = "Succeeded", **status: Any) -> None:
    await world.patch("pods", pod.metadata.name, {"status": {"phase": phase, **status}}, "status")


async def conditions(world: World) -> dict[str, str]:
    stored = await world.get("jobs", "j")
    return {one.type: one.reason for one in stored.status.conditions if one.status == "True"}


async def test_a_job_runs_its_pods_and_completes() -> None:
    async with job_world() as world:
        await world.create(job(completions=3, parallelism=2))
        await world.settle()
        first = await active(world)
        assert len(first) == 2
        await end(world, first[0])
        await world.settle()
        assert len(await active(world)) == 2
        for pod in await active(world):
            await end(world, pod)
        await world.settle()
        stored = await world.get("jobs", "j")
        assert (stored.status.succeeded, stored.status.failed, stored.status.active) == (3, 0, 0)
        assert stored.status.completion_time is not None
        assert stored.status.uncounted_terminated_pods is None
        assert set(await conditions(world)) == {"SuccessCriteriaMet", "Complete"}
        assert all(not pod.metadata.finalizers for pod in await world.objects("pods"))


@pytest.mark.parametrize("loss", ["deleted", "failed"])
async def test_a_lost_pod_is_replaced(loss: str) -> None:
    async with job_world() as world:
        await world.create(job())
        await world.settle()
        (lost,) = await active(world)
        if loss == "deleted":
            await world.delete("pods", lost.metadata.name)
        else:
            await end(world, lost, "Failed")
        await world.settle(15)
        (replacement,) = await active(world)
        assert replacement.metadata.uid != lost.metadata.uid
        await end(world, replacement)
        await world.settle()
        stored = await world.get("jobs", "j")
        assert (stored.status.succeeded, stored.status.failed) == (1, 1)
        assert "Complete" in await conditions(world)


async def test_a_success_counts_once_though_its_pod_is_deleted() -> None:
    async with job_world() as world:
        await world.create(job(completions=2, parallelism=1))
        await world.settle()
        (pod,) = await active(world)
        await end(world, pod)
        await world.delete("pods", pod.metadata.name)
        await world.settle()
        assert (await world.get("jobs", "j")).status.succeeded == 1
        assert await world.get("pods", pod.metadata.name) is None
        assert len(await active(world)) == 1


async def test_too_many_failures_end_the_job() -> None:
    async with job_world() as world:
        await world.create(job(backoffLimit=1, parallelism=1))
        for _ in range(2):
            await world.settle(30)
            (pod,) = await active(world)
            await end(world, pod, "Failed")
        await world.settle()
        assert await conditions(world) == {"FailureTarget": "BackoffLimitExceeded", "Failed": "BackoffLimitExceeded"}
        assert await active(world) == []
        assert ("BackoffLimitExceeded", "Job has reached the specified backoff limit") in await world.events("j")


async def test_tries_come_slower_with_each_failure() -> None:
    async with job_world() as world:
        await world.create(job(backoffLimit=5))
        await world.settle()
        for pause in (10, 20, 40):
            (pod,) = await active(world)
            await end(world, pod, "Failed")
            await world.settle(pause - 2)
            assert await active(world) == []
            await world.settle(4)
            assert len(await active(world)) == 1


async def test_a_deadline_ends_the_job() -> None:
    async with job_world() as world:
        await world.create(job(activeDeadlineSeconds=60))
        await world.settle(30)
        assert len(await active(world)) == 1
        await world.settle(40)
        assert (await conditions(world))["Failed"] == "DeadlineExceeded"
        assert await active(world) == []


async def test_a_suspended_job_has_no_pods() -> None:
    async with job_world() as world:
        await world.create(job(parallelism=2, completions=2, backoffLimit=0))
        await world.settle()
        await world.patch("jobs", "j", {"spec": {"suspend": True}})
        await world.settle()
        assert await active(world) == []
        assert (await world.get("jobs", "j")).status.failed == 0
        assert "Suspended" in await conditions(world)
        await world.patch("jobs", "j", {"spec": {"suspend": False}})
        await world.settle(60)
        assert len(await active(world)) == 2
        assert "Suspended" not in await conditions(world)
        told = {event.reason for event in await world.objects("events")}
        assert {"Suspended", "Resumed"} <= told


async def test_pods_that_are_too_many_are_no_failures() -> None:
    async with job_world() as world:
        await world.create(job(parallelism=3, completions=3, backoffLimit=0))
        await world.settle()
        await world.patch("jobs", "j", {"spec": {"parallelism": 1}})
        await world.settle()
        (left,) = await active(world)
        assert (await world.get("jobs", "j")).status.failed == 0
        assert await conditions(world) == {}
        await end(world, left, "Failed")
        await world.settle()
        assert await conditions(world) == {"FailureTarget": "BackoffLimitExceeded", "Failed": "BackoffLimitExceeded"}


async def test_indexed_jobs_give_each_pod_an_index() -> None:
    async with job_world() as world:
        await world.create(job(completionMode="Indexed", completions=3, parallelism=2))
        await world.settle()
        label = "batch.kubernetes.io/job-completion-index"
        running = {pod.metadata.annotations[label]: pod for pod in await active(world)}
        assert set(running) == {"0", "1"}
        assert running["1"].spec.hostname == "j-1"
        await end(world, running["1"])
        await world.settle()
        assert (await world.get("jobs", "j")).status.completed_indexes == "1"
        running = {pod.metadata.annotations[label]: pod for pod in await active(world)}
        assert set(running) == {"0", "2"}
        for pod in running.values():
            await end(world, pod)
        await world.settle()
        stored = await world.get("jobs", "j")
        assert (stored.status.completed_indexes, stored.status.succeeded) == ("0-2", 3)
        assert "Complete" in await conditions(world)


async def test_a_failure_that_is_nobodys_fault_can_be_ignored() -> None:
    async with job_world() as world:
        rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
        await world.create(job(backoffLimit=0, podFailurePolicy={"rules": [rule]}))
        await world.settle()
        (pod,) = await active(world)
        await end(world, pod, "Failed", conditions=[{"type": "DisruptionTarget", "status": "True"}])
        await world.settle(15)
        assert len(await active(world)) == 1
        assert (await world.get("jobs", "j")).status.failed == 0


@pytest.mark.parametrize("policy", ["Background", "Foreground", "Orphan"])
async def test_the_pods_of_a_deleted_job_are_not_kept_by_its_finalizer(policy: str) -> None:
    async with job_world("garbage-collector-controller") as world:
        await world.create(job(parallelism=2, completions=2))
        await world.settle()
        await world.delete("jobs", "j", propagation_policy=policy)
        await world.settle(5)
        assert await world.get("jobs", "j") is None
        left = await world.objects("pods")
        assert len(left) == (2 if policy == "Orphan" else 0)
        assert all(not pod.metadata.finalizers for pod in left)


def index_of(pod: Pod) -> int:
    return int(pod.metadata.annotations["batch.kubernetes.io/job-completion-index"])


async def test_each_index_has_its_own_limit_of_failures() -> None:
    async with job_world() as world:
        await world.create(job(completionMode="Indexed", completions=2, parallelism=2, backoffLimitPerIndex=1))
        await world.settle()
        for tries in range(2):
            (pod,) = [one for one in await active(world) if index_of(one) == 0]
            assert pod.metadata.annotations["batch.kubernetes.io/job-index-failure-count"] == str(tries)
            await end(world, pod, "Failed")
            await world.settle(25)
        stored = await world.get("jobs", "j")
        assert (stored.status.failed_indexes, stored.status.failed) == ("0", 2)
        assert await conditions(world) == {}  # the other index goes on
        (other,) = await active(world)
        await end(world, other)
        await world.settle()
        assert await conditions(world) == {"FailureTarget": "FailedIndexes", "Failed": "FailedIndexes"}
        stored = await world.get("jobs", "j")
        assert (stored.status.completed_indexes, stored.status.failed_indexes) == ("1", "0")
        assert all(not pod.metadata.finalizers for pod in await world.objects("pods"))


@pytest.mark.parametrize("most", [None, 0])
async def test_a_rule_can_give_up_an_index_at_once_and_too_many_of_them_end_the_job(most: int | None) -> None:
    rule = {"action": "FailIndex", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    spec = {"completionMode": "Indexed", "completions": 3, "parallelism": 3, "backoffLimitPerIndex": 5}
    limit = {} if most is None else {"maxFailedIndexes": most}
    async with job_world() as world:
        await world.create(job(**spec, **limit, podFailurePolicy={"rules": [rule]}))
        await world.settle()
        (pod,) = [one for one in await active(world) if index_of(one) == 1]
        await end(world, pod, "Failed", conditions=[{"type": "DisruptionTarget", "status": "True"}])
        await world.settle(2)
        assert (await world.get("jobs", "j")).status.failed_indexes == "1"
        expected = {} if most is None else {"FailureTarget": "MaxFailedIndexesExceeded"}
        assert (await conditions(world)).items() >= expected.items()
        assert len(await active(world)) == (2 if most is None else 0)


@pytest.mark.parametrize(
    ("rules", "matched"),
    [
        ([{"succeededIndexes": "0,2"}], 0),
        ([{"succeededIndexes": "1-2", "succeededCount": 1}], 0),
        ([{"succeededCount": 3}, {"succeededCount": 2}], 1),
        ([{"succeededIndexes": "0-1"}], None),
        ([{"succeededIndexes": "1,3"}, {"succeededIndexes": "1-3", "succeededCount": 1}], 1),
    ],
)
async def test_a_job_can_succeed_before_all_its_indexes_did(rules: list[Manifest], matched: int | None) -> None:
    async with job_world() as world:
        policy = {"rules": rules}
        await world.create(job(completionMode="Indexed", completions=4, parallelism=4, successPolicy=policy))
        await world.settle()
        for pod in await active(world):
            if index_of(pod) in (0, 2):
                await end(world, pod)
        await world.settle(2)
        found = await conditions(world)
        if matched is None:
            assert (found, len(await active(world))) == ({}, 2)
            return
        assert found == {"SuccessCriteriaMet": "SuccessPolicy", "Complete": "SuccessPolicy"}
        assert await active(world) == []
        (met,) = [c for c in (await world.get("jobs", "j")).status.conditions if c.type == "SuccessCriteriaMet"]
        assert met.message == f"Matched rules at index {matched}"


async def test_a_rule_about_all_the_indexes_there_can_be_takes_no_memory() -> None:
    everything = ",".join(f"{first}-{first + 499_999}" for first in range(0, 999_000_000, 1_000_000))
    async with job_world() as world:
        rules = [{"succeededIndexes": everything}, {"succeededIndexes": "0-999999998", "succeededCount": 1}]
        spec = {"completions": 10**9, "parallelism": 2, "successPolicy": {"rules": rules}}
        await world.create(job(completionMode="Indexed", **spec))
        await world.settle()
        tracemalloc.start()
        try:
            await end(world, (await active(world))[0])
            await world.settle(2)
            assert tracemalloc.get_traced_memory()[1] < 64 * 1024 * 1024
        finally:
            tracemalloc.stop()
        assert (await conditions(world))["SuccessCriteriaMet"] == "SuccessPolicy"


async def test_containers_that_are_started_again_and_again_end_the_job() -> None:
    template = {"spec": {"restartPolicy": "OnFailure", "containers": [{"name": "main", "image": "busybox"}]}}
    async with job_world() as world:
        await world.create(job(template=template, backoffLimit=2))
        await world.settle()
        (pod,) = await active(world)
        again = {"name": "main", "restartCount": 2, "ready": False, "image": "busybox", "imageID": ""}
        await end(world, pod, "Running", containerStatuses=[again])
        await world.settle(2)
        assert (await conditions(world))["FailureTarget"] == "BackoffLimitExceeded"


async def test_a_job_adopts_pods_that_fit_and_releases_those_that_do_not() -> None:
    async with job_world() as world:
        await world.create(job(completions=2, parallelism=2))
        await world.settle()
        lost, relabelled = await active(world)
        await world.patch("pods", lost.metadata.name, {"metadata": {"ownerReferences": None}})
        await world.settle()
        found = await world.get("pods", lost.metadata.name)
        assert [one.kind for one in found.metadata.owner_references] == ["Job"]
        assert found.metadata.finalizers == ("batch.kubernetes.io/job-tracking",)
        labels = dict.fromkeys(relabelled.metadata.labels)
        await world.patch("pods", relabelled.metadata.name, {"metadata": {"labels": labels}})
        await world.settle()
        released = await world.get("pods", relabelled.metadata.name)
        assert (released.metadata.owner_references, released.metadata.finalizers) == ((), ())
        assert len([one for one in await active(world) if one.metadata.owner_references]) == 2


async def test_what_is_not_supported_is_told() -> None:
    async with job_world() as world:
        await world.create(job(scheduling={}))
        await world.settle()
        assert await world.objects("pods") == []
        ((reason, message),) = await world.events("j")
        assert reason == "UnsupportedFeature"
        assert "spec.scheduling" in message


async def pass_time(world: World, seconds: int) -> None:
    """Second by second: there is much to do."""
    for _ in range(seconds):
        await world.settle()


async def test_of_a_job_without_end_there_are_fewer_and_fewer_new_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dray.controllers.job.plan.MAX_AT_ONCE", 20)
    monkeypatch.setattr("dray.controllers.workload_pods.MANY_WAITING", 20)
    async with job_world() as world:
        await world.create(job(parallelism=2**31 - 1))
        await pass_time(world, 20)
        first = await active(world)
        await pass_time(world, 20)
        second = await active(world)
        assert 40 < len(first) < len(second) < 1.5 * len(first) < 400
        for pod in second:
            body = {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "node-1"}}
            await world.admin.post(find_kind("pods"), "default", pod.metadata.name, "binding", body)
        await pass_time(world, 20)
        assert len(await active(world)) > len(second) + 20  # what waits has got its place: there is room for more


async def test_a_large_job_that_fails_deletes_some_pods_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dray.controllers.job.controller.MAX_AT_ONCE", 10)
    async with job_world() as world:
        await world.create(job(parallelism=45, backoffLimit=0))
        await world.settle()
        await end(world, (await active(world))[0], "Failed")
        await pass_time(world, 20)
        assert not await active(world)
        assert "Failed" in await conditions(world)
