"""Jobs run to completion, whatever happens to their pods."""

import asyncio
from typing import Any

import pytest

from controller_world import Manifest, World, controller_world, manifest
from dray.api.generated.core import Pod


def run(story: Any, *more: str) -> None:
    async def main() -> None:
        async with controller_world("job-controller", *more) as world:
            await story(world)

    asyncio.run(main())


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


def test_a_job_runs_its_pods_and_completes() -> None:
    async def story(world: World) -> None:
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

    run(story)


@pytest.mark.parametrize("loss", ["deleted", "failed"])
def test_a_lost_pod_is_replaced(loss: str) -> None:
    async def story(world: World) -> None:
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

    run(story)


def test_a_success_counts_once_though_its_pod_is_deleted() -> None:
    async def story(world: World) -> None:
        await world.create(job(completions=2, parallelism=1))
        await world.settle()
        (pod,) = await active(world)
        await end(world, pod)
        await world.delete("pods", pod.metadata.name)
        await world.settle()
        assert (await world.get("jobs", "j")).status.succeeded == 1
        assert await world.get("pods", pod.metadata.name) is None
        assert len(await active(world)) == 1

    run(story)


def test_too_many_failures_end_the_job() -> None:
    async def story(world: World) -> None:
        await world.create(job(backoffLimit=1, parallelism=1))
        for _ in range(2):
            await world.settle(30)
            (pod,) = await active(world)
            await end(world, pod, "Failed")
        await world.settle()
        assert await conditions(world) == {"FailureTarget": "BackoffLimitExceeded", "Failed": "BackoffLimitExceeded"}
        assert await active(world) == []
        assert ("BackoffLimitExceeded", "Job has reached the specified backoff limit") in await world.events("j")

    run(story)


def test_tries_come_slower_with_each_failure() -> None:
    async def story(world: World) -> None:
        await world.create(job(backoffLimit=5))
        await world.settle()
        for pause in (10, 20, 40):
            (pod,) = await active(world)
            await end(world, pod, "Failed")
            await world.settle(pause - 2)
            assert await active(world) == []
            await world.settle(4)
            assert len(await active(world)) == 1

    run(story)


def test_a_deadline_ends_the_job() -> None:
    async def story(world: World) -> None:
        await world.create(job(activeDeadlineSeconds=60))
        await world.settle(30)
        assert len(await active(world)) == 1
        await world.settle(40)
        assert (await conditions(world))["Failed"] == "DeadlineExceeded"
        assert await active(world) == []

    run(story)


def test_a_suspended_job_has_no_pods() -> None:
    async def story(world: World) -> None:
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

    run(story)


def test_pods_that_are_too_many_are_no_failures() -> None:
    async def story(world: World) -> None:
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

    run(story)


def test_indexed_jobs_give_each_pod_an_index() -> None:
    async def story(world: World) -> None:
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

    run(story)


def test_a_failure_that_is_nobodys_fault_can_be_ignored() -> None:
    async def story(world: World) -> None:
        rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
        await world.create(job(backoffLimit=0, podFailurePolicy={"rules": [rule]}))
        await world.settle()
        (pod,) = await active(world)
        await end(world, pod, "Failed", conditions=[{"type": "DisruptionTarget", "status": "True"}])
        await world.settle(15)
        assert len(await active(world)) == 1
        assert (await world.get("jobs", "j")).status.failed == 0

    run(story)


@pytest.mark.parametrize("policy", ["Background", "Foreground", "Orphan"])
def test_the_pods_of_a_deleted_job_are_not_kept_by_its_finalizer(policy: str) -> None:
    async def story(world: World) -> None:
        await world.create(job(parallelism=2, completions=2))
        await world.settle()
        await world.delete("jobs", "j", propagation_policy=policy)
        await world.settle(5)
        assert await world.get("jobs", "j") is None
        left = await world.objects("pods")
        assert len(left) == (2 if policy == "Orphan" else 0)
        assert all(not pod.metadata.finalizers for pod in left)

    run(story, "garbage-collector-controller")


def test_what_is_not_supported_is_told() -> None:
    async def story(world: World) -> None:
        await world.create(job(completionMode="Indexed", completions=2, backoffLimitPerIndex=1))
        await world.settle()
        assert await world.objects("pods") == []
        ((reason, message),) = await world.events("j")
        assert reason == "UnsupportedFeature"
        assert "backoffLimitPerIndex" in message

    run(story)
