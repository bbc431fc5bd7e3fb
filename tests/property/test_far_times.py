"""Whatever number of seconds somebody asks for, and whatever time a node writes: there is a moment, and work goes on.

A number of seconds has 64 bits in Kubernetes; the calendar ends with the year 9999. A pod with a grace period of a
trillion seconds could be neither deleted nor evicted.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

import builders
from controller_world import controller_world, manifest
from dray.api.generated.batch import CronJob, Job
from dray.api.generated.core import Node, Pod
from dray.api.generated.policy import PodDisruptionBudget
from dray.api.pods import available_at
from dray.api.times import Time
from dray.controllers.cron_job import plan as cron_jobs
from dray.controllers.job import plan as jobs
from dray.controllers.job.counting import TRACKING
from dray.controllers.job.indexes import INDEX
from dray.eviction import budget_status
from dray.eviction.drain import last_leaves

GREATEST = 2**63 - 1
MANY = [10**12, GREATEST]
END = "9999-12-31T23:59:59Z"
NOW = Time("2026-01-01T00:00:00Z")
TEMPLATE = {"template": {"spec": {"restartPolicy": "Never", "containers": [builders.container()]}}}


@pytest.mark.parametrize("seconds", MANY)
async def test_a_pod_is_deleted_and_evicted_whatever_grace_it_asks_for(seconds: int) -> None:
    async with controller_world("taint-eviction-controller") as world:
        await world.create(manifest("v1", "Node", "node-1"))
        for name in ("deleted", "evicted", "asked"):
            own = seconds if name != "asked" else 30
            await world.create(builders.pod(name, nodeName="node-1", terminationGracePeriodSeconds=own))
        await world.delete("pods", "deleted")
        await world.delete("pods", "asked", grace_period_seconds=seconds)
        await world.patch("nodes", "node-1", {"spec": {"taints": [builders.taint("k", "NoExecute")]}})
        await world.settle(5)
        for name in ("deleted", "evicted", "asked"):
            meta = (await world.get("pods", name)).metadata
            assert (meta.deletion_timestamp, meta.deletion_grace_period_seconds) == (END, seconds)
        await world.delete("pods", "deleted", grace_period_seconds=1)
        assert (await world.get("pods", "deleted")).metadata.deletion_timestamp < END


@pytest.mark.parametrize("seconds", MANY)
def test_deadlines_that_never_come(seconds: int) -> None:
    job: Job = builders.typed(manifest("batch/v1", "Job", "j", spec={**TEMPLATE, "activeDeadlineSeconds": seconds}))
    assert jobs.plan(job, [], NOW).deadline == END
    spec = {"schedule": "* * * * *", "jobTemplate": {"spec": TEMPLATE}, "startingDeadlineSeconds": seconds}
    cron: CronJob = builders.typed(manifest("batch/v1", "CronJob", "c", meta={"creationTimestamp": NOW}, spec=spec))
    assert cron_jobs.plan(cron, [], NOW.datetime() + dt.timedelta(seconds=90)).create is not None


@pytest.mark.parametrize("last", [END, "9999-12-01T00:00:00Z", "0001-01-01T00:00:00Z"])
@pytest.mark.parametrize("zone", [None, "America/New_York", "Asia/Kolkata"])
@pytest.mark.parametrize("schedule", ["* * * * *", "@every 1s", "0 0 30 2 *", "0 0 1 1 *"])
def test_a_schedule_that_was_last_served_at_the_ends_of_the_calendar(
    schedule: str, zone: str | None, last: str
) -> None:
    spec = {"schedule": schedule, "jobTemplate": {"spec": TEMPLATE}, "timeZone": zone}
    made = manifest("batch/v1", "CronJob", "c", spec=spec, status={"lastScheduleTime": last})
    cron: CronJob = builders.typed(made)
    assert (cron_jobs.plan(cron, [], NOW.datetime()).again is None) is (schedule == "0 0 30 2 *")


def test_what_nodes_and_others_write_of_the_last_day_there_is() -> None:
    """Whoever writes the status of a pod, or a taint, keeps nobody from working with others."""
    pod = _pod(conditions=[{"type": "Ready", "status": "True", "lastTransitionTime": END}])
    assert available_at(pod, 2**31 - 1) == END

    ended = {"terminated": {"exitCode": 1, "finishedAt": END}}
    status = {"name": "main", "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": ended}
    failed = _pod(phase="Failed", containerStatuses=[status])
    spec = {**TEMPLATE, "completionMode": "Indexed", "completions": 1, "backoffLimitPerIndex": 3}
    job: Job = builders.typed(manifest("batch/v1", "Job", "j", spec=spec))
    assert jobs.plan(job, [failed], NOW).deadline == END

    budget: PodDisruptionBudget = builders.typed(
        manifest(
            "policy/v1",
            "PodDisruptionBudget",
            "b",
            spec={"minAvailable": 0, "selector": {}},
            status={"disruptedPods": {"p": END}},
        )
    )
    assert budget_status.plan(budget, [pod], lambda _namespace, _owner: 1, NOW).status is not None

    taint = {**builders.taint("k", "NoExecute"), "timeAdded": END}
    node: Node = builders.typed(manifest("v1", "Node", "n", spec={"taints": [taint]}))
    stays: Pod = builders.typed(builders.pod(tolerations=[builders.toleration("k", 3600)]))
    assert last_leaves(node, [stays]) == Time(END).datetime()


def _pod(**status: Any) -> Pod:
    meta = {"uid": "u", "finalizers": [TRACKING], "annotations": {INDEX: "0"}}
    made: Pod = builders.typed({**builders.pod("p", meta=meta), "status": status})
    return made
