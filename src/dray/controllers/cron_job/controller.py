"""The CronJob controller: watches cron jobs and their jobs, wakes up in time, and carries out the plan."""

from __future__ import annotations

import datetime as dt
from typing import ClassVar

from msgspec.structs import replace

from dray.api.generated.batch import CronJob, CronJobStatus, Job
from dray.api.kinds import CRON_JOBS, JOBS
from dray.api.references import ObjectName, controller_of
from dray.api.status import ApiError
from dray.api.times import Time
from dray.client.calls import delete_exactly
from dray.controllers.context import Context
from dray.controllers.cron_job.plan import plan, seconds_to_next, started
from dray.controllers.queue_controller import QueueController
from dray.controllers.workload_pods import BY_CONTROLLER, controller_uid


class CronJobController(QueueController[ObjectName]):
    """Makes jobs in time."""

    name: ClassVar[str] = "cronjob-controller"

    def __init__(self, context: Context) -> None:
        self._cron_jobs = context.informers.of(CRON_JOBS, CronJob)
        self._jobs = context.informers.of(JOBS, Job)
        super().__init__(context, self._cron_jobs, self._jobs)
        self._recorder = context.recorder(self.name)
        self._jobs.add_index(BY_CONTROLLER, controller_uid)
        self._cron_jobs.on_change(self._on_cron_job)
        self._jobs.on_change(self._on_job)

    def _on_cron_job(self, old: CronJob | None, new: CronJob | None) -> None:
        """Times of a new schedule that are past were not missed: it is looked at when its next one has come."""
        if new is None:
            return
        wait = None
        if old is not None and _times(old) != _times(new):
            wait = seconds_to_next(new, self._now())
        if wait is None:
            self.queue.add(ObjectName.of(new))
        else:
            self.queue.add_after(ObjectName.of(new), wait)

    def _now(self) -> dt.datetime:
        return dt.datetime.fromtimestamp(self._clock.now(), dt.UTC)

    def _on_job(self, old: Job | None, new: Job | None) -> None:
        for job in (old, new):
            owner = controller_of(job) if job is not None else None
            if job is not None and owner is not None and owner.kind == CRON_JOBS.kind:
                self.queue.add(ObjectName(job.metadata.namespace, owner.name))

    async def reconcile(self, key: ObjectName) -> float | None:
        """Looks at one cron job."""
        cron_job = self._cron_jobs.get(*key)
        if cron_job is None:
            return None
        jobs = self._jobs.by_index(BY_CONTROLLER, cron_job.metadata.uid)
        todo = plan(cron_job, jobs, self._now())
        for note in todo.notes:
            await self._recorder.record(cron_job, note.type, note.reason, note.message)
        for job in todo.delete:
            await delete_exactly(self._client, JOBS, job, propagation="Background")
            await self._recorder.normal(cron_job, "SuccessfulDelete", f"Deleted job {job.metadata.name}")
        status = todo.status
        if todo.create is not None and todo.scheduled is not None:
            status = await self._create(cron_job, status, todo.create, todo.scheduled)
        if status != cron_job.status:
            await self._client.update(replace(cron_job, status=status), subresource="status")
        return todo.again

    async def _create(self, cron_job: CronJob, status: CronJobStatus, wanted: Job, scheduled: Time) -> CronJobStatus:
        """Makes a job; the status then. A job of that name that is somebody else's stands for it."""
        try:
            made = await self._client.create(wanted)
        except ApiError as error:
            if error.reason == "AlreadyExists":
                found = await self._client.get(JOBS, wanted.metadata.namespace, wanted.metadata.name)
                owner = controller_of(found)
                if not isinstance(found, Job) or owner is None or owner.uid != cron_job.metadata.uid:
                    return status
                return started(status, found, scheduled)
            await self._recorder.warning(cron_job, "FailedCreate", f"Error creating job: {error}")
            raise
        self._jobs.put(made)
        await self._recorder.normal(cron_job, "SuccessfulCreate", f"Created job {made.metadata.name}")
        return started(status, made, scheduled)


def _times(cron_job: CronJob) -> tuple[str, str | None]:
    return cron_job.spec.schedule, cron_job.spec.time_zone
