"""Finished jobs go away after `ttlSecondsAfterFinished`, with their pods; jobs without one stay."""

from __future__ import annotations

from typing import ClassVar

from dray.api.generated.batch import Job
from dray.api.kinds import JOBS
from dray.api.references import ObjectName
from dray.client.calls import delete_exactly, find
from dray.controllers.context import Context
from dray.controllers.queue_controller import QueueController

FINISHED = ("Complete", "Failed")


def goes_at(job: Job) -> float | None:
    """When a job has to go, in seconds since 1970; None if it does not end so."""
    seconds = job.spec.ttl_seconds_after_finished
    if seconds is None or job.metadata.deletion_timestamp is not None:
        return None
    for condition in job.status.conditions:
        if condition.type in FINISHED and condition.status == "True" and condition.last_transition_time is not None:
            return condition.last_transition_time.datetime().timestamp() + seconds
    return None


class TtlAfterFinishedController(QueueController[ObjectName]):
    """Looks at a job when it changes, and again when its time is over."""

    name: ClassVar[str] = "ttl-after-finished-controller"

    def __init__(self, context: Context) -> None:
        self._jobs = context.informers.of(JOBS, Job)
        super().__init__(context, self._jobs)
        self._jobs.on_change(self._on_job)

    def _on_job(self, _old: Job | None, new: Job | None) -> None:
        if new is not None and goes_at(new) is not None:
            self.queue.add(ObjectName.of(new))

    async def reconcile(self, key: ObjectName) -> float | None:
        """Deletes a job whose time is over, as it is stored now: somebody may have given it more."""
        job = await find(self._client, JOBS, *key, Job)
        moment = goes_at(job) if job is not None else None
        if job is None or moment is None:
            return None
        left = moment - self._clock.now()
        if left > 0:
            return left
        # In the foreground, so that the job stays until its pods are gone.
        await delete_exactly(self._client, JOBS, job, propagation="Foreground")
        return None
