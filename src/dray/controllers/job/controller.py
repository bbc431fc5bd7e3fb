"""The Job controller: watches Jobs and pods, and carries out the plan."""

from __future__ import annotations

import asyncio
from typing import ClassVar, NamedTuple

from msgspec.structs import replace

from dray.api.conditions import find_condition
from dray.api.generated.batch import Job
from dray.api.generated.core import Pod
from dray.api.kinds import JOBS, PODS
from dray.api.labels import LabelSelector
from dray.api.meta import OwnerReference
from dray.api.references import ObjectName, controller_of
from dray.api.status import ApiError
from dray.controllers.context import Context
from dray.controllers.expectations import LONGEST
from dray.controllers.job import index_failures, indexes
from dray.controllers.job.counting import TRACKING
from dray.controllers.job.plan import COMPLETE, FAILED, MAX_AT_ONCE, SUSPENDED, JobPlan, has, is_over, plan
from dray.controllers.job.success_policy import letters_of
from dray.controllers.pod_templates import pod_from
from dray.controllers.queue_controller import QueueController
from dray.controllers.selectors import Selectors
from dray.controllers.workload_controller import usable_selector
from dray.controllers.workload_pods import WorkloadPods, sort_out
from dray.process.clock import as_time
from dray.reconcile.effort import beside_loop

OURS = (None, "", "kubernetes.io/job-controller")
JOB = "job"
STRAY = "stray pod"
LETTERS = 500
"""Of success policies, which take about as long as one pod."""


def unsupported(job: Job) -> str:
    """What a job asks for that would be ignored, and so must keep it from running wrongly."""
    if job.spec.scheduling is not None:
        return "spec.scheduling is not supported by this job controller; the job is not started"
    return ""


class JobKey(NamedTuple):
    """A job, or a pod that has lost its job."""

    kind: str
    namespace: str
    name: str


class JobController(QueueController[JobKey]):
    """Makes pods until a job is done."""

    name: ClassVar[str] = "job-controller"

    def __init__(self, context: Context) -> None:
        self._jobs = context.informers.of(JOBS, Job)
        super().__init__(context, self._jobs, context.informers.of(PODS, Pod))
        self._recorder = context.recorder(self.name)
        self._pauses: dict[str, tuple[int, float]] = {}
        self._pods = WorkloadPods(context, self._recorder, self._on_owned)
        self._selectors = Selectors(_selector_of, self._on_selected, self._clock)
        self._jobs.on_change(self._selectors.follow)
        self._jobs.on_change(self._on_job)
        self._pods.informer.on_change(self._on_pod)

    def _on_job(self, old: Job | None, new: Job | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._pods.forget(old.metadata.uid)
            self._pauses.pop(old.metadata.uid, None)
            for pod in self._pods.owned(old):
                self.queue.add(JobKey(STRAY, pod.metadata.namespace, pod.metadata.name))
        if new is not None:
            self.queue.add(_key(new))

    def _on_owned(self, namespace: str, owner: OwnerReference) -> None:
        if owner.kind == "Job":
            self.queue.add(JobKey(JOB, namespace, owner.name))

    def _on_pod(self, _old: Pod | None, new: Pod | None) -> None:
        if new is None:
            return
        if self._is_stray(new):
            self.queue.add(JobKey(STRAY, new.metadata.namespace, new.metadata.name))
        if not self._jobs.is_empty and controller_of(new) is None:
            self._selectors.tell(new.metadata.namespace, new.metadata.labels)

    def _on_selected(self, name: ObjectName) -> None:
        self.queue.add(JobKey(JOB, name.namespace, name.name))

    async def run(self) -> None:
        """Works until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._selectors.run())
            group.create_task(super().run())

    def _is_stray(self, pod: Pod) -> bool:
        """Whether our finalizer keeps a pod although its job is gone, or it was let go of."""
        if TRACKING not in pod.metadata.finalizers:
            return False
        owner = controller_of(pod)
        if owner is None or owner.kind != "Job":
            return True
        job = self._jobs.get(pod.metadata.namespace, owner.name)
        return job is None or job.metadata.uid != owner.uid

    async def reconcile(self, key: JobKey) -> float | None:
        """Looks at one job, or at one pod without a job."""
        if key.kind == STRAY:
            pod = self._pods.informer.get(key.namespace, key.name)
            if pod is not None and self._is_stray(pod):
                await self._release(pod)
            return None
        job = self._jobs.get(key.namespace, key.name)
        if job is None or job.spec.managed_by not in OURS:
            return None
        return await self._reconcile_job(job)

    async def _reconcile_job(self, job: Job) -> float | None:
        why = unsupported(job)
        if why:
            await self._recorder.warning(job, "UnsupportedFeature", why)
            return None
        now = as_time(self._clock.now())
        settled = self._pods.expectations.are_met(job.metadata.uid)
        pods = await self._pods_of(job)
        todo = await beside_loop(len(pods) + letters_of(job) // LETTERS, plan, job, pods, now)
        self._note_failures(job, todo)
        pause = max(self._pause(job), self._pods.pause(job, pods) if todo.create else 0.0)
        await self._carry_out(job, todo if settled and pause <= 0 else todo._replace(create=()))
        waits = [LONGEST] if not settled else []
        if pause > 0:
            waits.append(pause)
        if todo.deadline is not None:
            waits.append(max(now.seconds_until(todo.deadline), 0.1))
        return min(waits, default=None)

    async def _pods_of(self, job: Job) -> list[Pod]:
        """The pods of a job, after it has adopted those that fit and released those that do not any more."""
        selector = usable_selector(job.spec.selector)
        owned = self._pods.owned(job)
        if selector is None or is_over(job):
            return owned
        orphans = self._pods.orphans(job.metadata.namespace)
        count = len(owned) + len(orphans)
        kept, adopted, released = await beside_loop(count, sort_out, job, selector, owned, orphans)
        await self._pods.adopt(job, adopted, TRACKING)
        await self._pods.release(job, released)
        return kept  # what was adopted comes with its finalizer, as news

    async def _carry_out(self, job: Job, todo: JobPlan) -> None:
        if todo.status != job.status:
            stored = await self._client.update(replace(job, status=todo.status), subresource="status")
            await self._announce(job, stored)
        retire = todo.retire[:MAX_AT_ONCE]
        for pod in (*todo.release[:MAX_AT_ONCE], *retire):
            await self._release(pod)
        await self._pods.delete(job, (*todo.delete[:MAX_AT_ONCE], *retire))
        pod = pod_from(job, job.spec.template, (TRACKING,))
        wanted = [pod if index is None else _indexed(job, pod, index, todo) for index in todo.create]
        failure = await self._pods.create(job, wanted)
        if failure is not None:
            raise failure

    def _note_failures(self, job: Job, todo: JobPlan) -> None:
        """After each failure the next try waits longer; the plan sees to that if each index is by itself."""
        if index_failures.counts_by_index(job):
            return
        uncounted = todo.status.uncounted_terminated_pods
        failed = todo.status.failed + (len(uncounted.failed) if uncounted is not None else 0)
        known, _ = self._pauses.get(job.metadata.uid, (job.status.failed, 0.0))
        if failed > known:
            self._pauses[job.metadata.uid] = (
                failed,
                self._clock.monotonic() + index_failures.REPLACEMENT.after(failed),
            )

    def _pause(self, job: Job) -> float:
        _, until = self._pauses.get(job.metadata.uid, (0, 0.0))
        return until - self._clock.monotonic()

    async def _announce(self, old: Job, new: Job) -> None:
        if has(new.status, SUSPENDED) and not has(old.status, SUSPENDED):
            await self._recorder.normal(new, "Suspended", "Job suspended")
        if has(old.status, SUSPENDED) and not has(new.status, SUSPENDED):
            await self._recorder.normal(new, "Resumed", "Job resumed")
        if has(new.status, COMPLETE) and not has(old.status, COMPLETE):
            await self._recorder.normal(new, "Completed", "Job completed")
        if has(new.status, FAILED) and not has(old.status, FAILED):
            told = find_condition(new.status.conditions, FAILED)
            assert told is not None
            await self._recorder.warning(new, told.reason, told.message)

    async def _release(self, pod: Pod) -> None:
        """Drops our finalizer: what the pod counts for is stored."""
        meta = pod.metadata
        left = [name for name in meta.finalizers if name != TRACKING]
        change = {"uid": meta.uid, "resourceVersion": meta.resource_version, "finalizers": left or None}
        try:
            await self._client.patch(PODS, meta.namespace, meta.name, {"metadata": change})
        except ApiError as error:
            if error.code != 404:
                raise


def _indexed(job: Job, pod: Pod, index: int, todo: JobPlan) -> Pod:
    """The pod for an index."""
    given = indexes.give(pod, index)
    if not index_failures.counts_by_index(job):
        return given
    return index_failures.successor(job, given, index, todo.predecessors)


def _key(job: Job) -> JobKey:
    return JobKey(JOB, job.metadata.namespace, job.metadata.name)


def _selector_of(job: Job) -> LabelSelector | None:
    return usable_selector(job.spec.selector)
