"""A cron job makes jobs in time, one per time, and no more than it should."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from controller_world import Manifest, World, controller_world, manifest


@contextlib.asynccontextmanager
async def cron_world() -> AsyncIterator[World]:
    async with controller_world("cronjob-controller", "garbage-collector-controller") as world:
        yield world


def cron_job(schedule: str = "*/1 * * * *", **spec: Any) -> Manifest:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
    template = {"metadata": {"labels": {"by": "cron"}}, "spec": {"template": {"spec": pod}}}
    return manifest("batch/v1", "CronJob", "tick", spec={"schedule": schedule, "jobTemplate": template, **spec})


async def finish(world: World, name: str, outcome: str = "Complete") -> None:
    now = str(world.server.engine.clock())
    criterion = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}[outcome]
    conditions = [{"type": type_, "status": "True", "lastTransitionTime": now} for type_ in (criterion, outcome)]
    status: Manifest = {"startTime": now, "conditions": conditions}
    if outcome == "Complete":
        status["completionTime"] = now
    await world.patch("jobs", name, {"status": status}, "status")
    await world.settle()


async def names(world: World) -> list[str]:
    return [one.metadata.name for one in await world.objects("jobs")]


async def test_a_job_for_each_time_with_its_time_in_its_name() -> None:
    async with cron_world() as world:
        await world.create(cron_job())
        await world.settle(60)
        await world.settle(1)
        (job,) = await world.objects("jobs")
        scheduled = (await world.get("cronjobs", "tick")).status.last_schedule_time
        assert job.metadata.name == f"tick-{int(scheduled.datetime().timestamp()) // 60}"
        assert job.metadata.labels["by"] == "cron"
        assert job.metadata.annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"] == scheduled
        assert job.metadata.owner_references[0].kind == "CronJob"
        stored = await world.get("cronjobs", "tick")
        assert [one.name for one in stored.status.active] == [job.metadata.name]
        await finish(world, job.metadata.name)
        stored = await world.get("cronjobs", "tick")
        assert stored.status.active == ()
        assert stored.status.last_successful_time is not None
        reasons = sorted(reason for reason, _ in await world.events("tick"))
        assert reasons == ["SawCompletedJob", "SuccessfulCreate"]
        await world.settle(60)
        assert len(await names(world)) == 2


async def test_forbid_waits_replace_replaces_allow_adds() -> None:
    async with cron_world() as world:
        for policy, expected in (("Forbid", 1), ("Replace", 1), ("Allow", 2)):
            await world.create(cron_job(concurrencyPolicy=policy))
            await world.settle(61)
            before = await names(world)
            await world.settle(60)
            after = await names(world)
            assert len(after) == expected, policy
            assert (before == after) is (policy == "Forbid")
            active = (await world.get("cronjobs", "tick")).status.active
            assert [one.name for one in active] == after
            await world.delete("cronjobs", "tick")
            await world.settle(2)
            assert await names(world) == []


async def test_a_suspended_one_makes_nothing_and_old_ones_go() -> None:
    async with cron_world() as world:
        await world.create(cron_job(successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0))
        for outcome in ("Complete", "Failed", "Complete"):
            await world.settle(61)
            newest = (await names(world))[-1]
            await finish(world, newest, outcome)
        assert len(await names(world)) == 1
        await world.patch("cronjobs", "tick", {"spec": {"suspend": True}})
        await world.settle(300)
        assert len(await names(world)) == 1


async def test_who_was_away_for_long_makes_only_the_latest_job() -> None:
    async with cron_world() as world:
        await world.create(cron_job(suspend=True))
        await world.settle(3600 * 24)
        await world.patch("cronjobs", "tick", {"spec": {"suspend": False}})
        await world.settle(5)
        assert len(await names(world)) == 1
        assert "TooManyMissedTimes" in {reason for reason, _ in await world.events("tick")}


async def test_times_before_the_deadline_are_not_made_up_for() -> None:
    async with cron_world() as world:
        await world.create(cron_job("@hourly", suspend=True, startingDeadlineSeconds=10))
        await world.settle(3600 + 1800)
        await world.patch("cronjobs", "tick", {"spec": {"suspend": False}})
        await world.settle(5)
        assert await names(world) == []
        await world.settle(3600)
        assert len(await names(world)) == 1


async def test_the_times_of_a_new_schedule_were_not_missed() -> None:
    async with cron_world() as world:
        await world.create(cron_job("@yearly"))
        await world.settle(3600 * 24)
        await world.patch("cronjobs", "tick", {"spec": {"schedule": "@hourly"}})
        await world.settle(5)
        assert await names(world) == []
        await world.settle(3600)
        assert len(await names(world)) == 1
