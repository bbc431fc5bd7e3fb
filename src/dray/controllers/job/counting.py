"""What finished pods add up to, exactly once each, however often pods and controllers come and go. Pure.

pod finished, has the finalizer ─▶ its uid is in `uncountedTerminatedPods` ─▶ finalizer dropped
                                                                                 │
                        uid removed from there, counter + 1, in one write  ◀─────┘
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dray.api.generated.batch import Job, UncountedTerminatedPods
from dray.api.generated.core import Pod
from dray.api.pods import is_finished
from dray.controllers.job import index_failures, indexes
from dray.controllers.job.failure_policy import FailureEffect, judge

TRACKING = "batch.kubernetes.io/job-tracking"


class Tally(NamedTuple):
    """The pods of a job, counted."""

    succeeded: int
    failed: int
    uncounted: UncountedTerminatedPods | None
    completed: frozenset[int]
    """Indexes that are done, of an Indexed job."""
    active: tuple[Pod, ...]
    terminating: tuple[Pod, ...]
    """Being deleted, and not finished as far as anybody knows."""
    release: tuple[Pod, ...]
    """Pods whose finalizer may be dropped once the tally is stored."""
    fatal: Pod | None = None
    """A pod whose failure means that the job failed."""
    failed_indexes: frozenset[int] | None = None
    """Indexes that failed for good; None if failures are not counted by index."""
    predecessors: Mapping[int, Pod] = {}
    """By index, the failed pod whose successor is to carry its count; it is not let go of before."""

    @property
    def total_succeeded(self) -> int:
        """With those that are still being counted."""
        return self.succeeded + (len(self.uncounted.succeeded) if self.uncounted else 0)

    @property
    def total_failed(self) -> int:
        """With those that are still being counted."""
        return self.failed + (len(self.uncounted.failed) if self.uncounted else 0)


def is_indexed(job: Job) -> bool:
    """Whether each completion has an index."""
    return job.spec.completion_mode == "Indexed"


def has_failed(job: Job, pod: Pod) -> bool:
    """Whether a pod counts as failed. A pod that is being deleted does, unless the job wants to wait for its end."""
    if is_finished(pod):
        return pod.status.phase == "Failed"
    waits = job.spec.pod_replacement_policy == "Failed" and pod.spec.node_name
    return pod.metadata.deletion_timestamp is not None and not waits


def count(job: Job, pods: Sequence[Pod]) -> Tally:
    """Adds up the pods of a job and what its status says already."""
    held = {pod.metadata.uid: pod for pod in pods if TRACKING in pod.metadata.finalizers}
    before = job.status.uncounted_terminated_pods or UncountedTerminatedPods()
    succeeded = {uid: None for uid in before.succeeded if uid in held}
    failed = {uid: None for uid in before.failed if uid in held}
    counted_succeeded = job.status.succeeded + len(before.succeeded) - len(succeeded)
    counted_failed = job.status.failed + len(before.failed) - len(failed)
    completed = indexes.parse(job.status.completed_indexes) if is_indexed(job) else set()
    release: list[Pod] = []
    failures: list[Pod] = []
    fatal = None
    for uid, pod in held.items():
        if pod.status.phase == "Succeeded" and uid in failed:  # it counted when it was to go, and ended well after all
            release.append(pod)
            failures.append(pod)
        elif pod.status.phase == "Succeeded":
            release.append(pod)
            index = indexes.index_of(pod)
            if not is_indexed(job):
                succeeded[uid] = None
            elif index is not None and index < (job.spec.completions or 0):
                completed.add(index)
        elif has_failed(job, pod):
            release.append(pod)
            failures.append(pod)
            verdict = judge(job, pod)
            if verdict is not FailureEffect.IGNORE:
                failed[uid] = None
            if verdict is FailureEffect.FAIL_JOB:
                fatal = pod
    uncounted = UncountedTerminatedPods(succeeded=tuple(succeeded), failed=tuple(failed))
    running = [pod for pod in pods if not is_finished(pod)]
    failed_indexes = _failed_indexes(job, failures)
    settled = {*completed, *(failed_indexes or ())}
    return Tally(
        succeeded=len(completed) if is_indexed(job) else counted_succeeded,
        failed=counted_failed,
        uncounted=uncounted if succeeded or failed else None,
        completed=frozenset(completed),
        active=tuple(pod for pod in running if pod.metadata.deletion_timestamp is None),
        terminating=tuple(pod for pod in running if pod.metadata.deletion_timestamp is not None),
        release=tuple(release),
        fatal=fatal,
        failed_indexes=failed_indexes,
        predecessors={} if failed_indexes is None else index_failures.predecessors(failures, pods, settled),
    )


def _failed_indexes(job: Job, failures: Sequence[Pod]) -> frozenset[int] | None:
    """The indexes that failed for good, before or now."""
    if not is_indexed(job) or not index_failures.counts_by_index(job):
        return None
    found = indexes.parse(job.status.failed_indexes or "")
    used_up = {indexes.index_of(pod) for pod in failures if index_failures.has_used_up(job, pod)}
    found.update(index for index in used_up if index is not None and index < (job.spec.completions or 0))
    return frozenset(found)
