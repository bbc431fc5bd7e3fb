"""What a job needs: pods to make or delete, and what its status says. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from msgspec.structs import replace

from dray.api.generated.batch import Job, JobCondition, JobStatus
from dray.api.generated.core import Pod
from dray.api.times import Time
from dray.controllers.job import indexes
from dray.controllers.job.counting import Tally, count, is_indexed
from dray.controllers.job.failure_policy import tell_reason
from dray.controllers.pod_states import is_ready

MAX_AT_ONCE = 500
COMPLETE, FAILED, SUSPENDED = "Complete", "Failed", "Suspended"
SUCCESS_MET, FAILURE_TARGET = "SuccessCriteriaMet", "FailureTarget"


class JobPlan(NamedTuple):
    """What to do: store the status, drop finalizers, delete pods, make pods (each for an index, or for none)."""

    status: JobStatus
    release: tuple[Pod, ...] = ()
    delete: tuple[Pod, ...] = ()
    retire: tuple[Pod, ...] = ()
    """To be deleted because they are too many just now, which is no failure of theirs: they are not counted."""
    create: tuple[int | None, ...] = ()
    deadline: Time | None = None
    """When to look again at the latest."""


class _Outcome(NamedTuple):
    type: str
    reason: str
    message: str


def has(status: JobStatus, type_: str) -> bool:
    """Whether a condition holds."""
    return any(one.type == type_ and one.status == "True" for one in status.conditions)


def is_over(job: Job) -> bool:
    """Whether a job has succeeded or failed for good."""
    return has(job.status, COMPLETE) or has(job.status, FAILED)


def plan(job: Job, pods: Sequence[Pod], now: Time) -> JobPlan:
    """What to do about a job."""
    tally = count(job, pods)
    if is_over(job) or job.metadata.deletion_timestamp is not None:
        return JobPlan(job.status, tally.release)
    status = _counted(job, tally, now)
    outcome = _outcome(job, tally, status, now)
    if outcome is not None:
        return _finish(status, tally, outcome, now)
    if job.spec.suspend:
        status = with_condition(status, _Outcome(SUSPENDED, "JobSuspended", "Job suspended"), now)
        return JobPlan(replace(status, start_time=None), tally.release, retire=tally.active)
    if has(status, SUSPENDED):
        status = with_condition(status, _Outcome(SUSPENDED, "JobResumed", "Job resumed"), now, "False")
    retire, create = _balance(job, tally)
    return JobPlan(status, tally.release, retire=retire, create=create, deadline=_deadline(job, status))


def _counted(job: Job, tally: Tally, now: Time) -> JobStatus:
    status = job.status
    start = status.start_time
    if start is None and not job.spec.suspend:
        start = now
    return replace(
        status,
        start_time=start,
        active=len(tally.active),
        ready=sum(map(is_ready, tally.active)),
        terminating=len(tally.terminating),
        succeeded=tally.succeeded,
        failed=tally.failed,
        completed_indexes=indexes.render(tally.completed),
        uncounted_terminated_pods=tally.uncounted,
    )


def _deadline(job: Job, status: JobStatus) -> Time | None:
    seconds = job.spec.active_deadline_seconds
    if seconds is None or status.start_time is None:
        return None
    return Time.of(status.start_time.datetime() + timedelta(seconds=seconds))


def _outcome(job: Job, tally: Tally, status: JobStatus, now: Time) -> _Outcome | None:
    """How the job ends, if it does. A failure that was decided on before stays."""
    decided = next((one for one in status.conditions if one.type == FAILURE_TARGET and one.status == "True"), None)
    if decided is not None:
        return _Outcome(FAILED, decided.reason, decided.message)
    if tally.fatal is not None:
        return _Outcome(FAILED, "PodFailurePolicy", tell_reason(job, tally.fatal))
    if tally.total_failed > (6 if job.spec.backoff_limit is None else job.spec.backoff_limit):
        return _Outcome(FAILED, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    deadline = _deadline(job, status)
    if deadline is not None and now >= deadline and not job.spec.suspend:
        return _Outcome(FAILED, "DeadlineExceeded", "Job was active longer than specified deadline")
    if _has_succeeded(job, tally):
        return _Outcome(COMPLETE, "CompletionsReached", "Reached expected number of succeeded pods")
    return None


def _has_succeeded(job: Job, tally: Tally) -> bool:
    completions = job.spec.completions
    if completions is None:
        return tally.total_succeeded > 0 and not tally.active and not tally.terminating
    return tally.total_succeeded >= completions


def _finish(status: JobStatus, tally: Tally, outcome: _Outcome, now: Time) -> JobPlan:
    """Says how it ends; that it has ended is said only when all pods are, and are counted."""
    ended = outcome.type == COMPLETE
    intermediate = SUCCESS_MET if ended else FAILURE_TARGET
    status = with_condition(status, outcome._replace(type=intermediate), now)
    if not tally.active and not tally.terminating and not tally.uncounted:
        status = with_condition(status, outcome, now)
        if ended:
            status = replace(status, completion_time=now)
    return JobPlan(status, tally.release, delete=tally.active)


def _balance(job: Job, tally: Tally) -> tuple[tuple[Pod, ...], tuple[int | None, ...]]:
    """Which pods are too many, and which are missing."""
    parallelism = 1 if job.spec.parallelism is None else job.spec.parallelism
    wanted = parallelism
    if job.spec.completions is not None:
        wanted = min(parallelism, job.spec.completions - tally.total_succeeded)
    elif tally.total_succeeded:
        wanted = min(parallelism, len(tally.active))  # a work queue that is done: nobody new starts
    active = sorted(tally.active, key=lambda pod: (not is_ready(pod), pod.metadata.creation_timestamp or ""))
    occupied = len(active)
    if job.spec.pod_replacement_policy == "Failed":
        occupied += len(tally.terminating)
    if len(active) > wanted:
        return tuple(active[wanted:]), ()
    number = min(max(wanted - occupied, 0), MAX_AT_ONCE)
    if not is_indexed(job):
        return (), (None,) * number
    taken = {*tally.completed, *(indexes.index_of(pod) for pod in tally.active)}
    free = indexes.missing(job.spec.completions or 0, {index for index in taken if index is not None})
    return (), tuple(index for index, _ in zip(free, range(number), strict=False))


def with_condition(status: JobStatus, outcome: _Outcome, now: Time, value: str = "True") -> JobStatus:
    """The status with a condition set; one that says the same already keeps its time."""
    if any(one.type == outcome.type and one.status == value for one in status.conditions):
        return status
    told = JobCondition(
        type=outcome.type,
        status=value,
        reason=outcome.reason,
        message=outcome.message,
        last_probe_time=now,
        last_transition_time=now,
    )
    others = tuple(one for one in status.conditions if one.type != outcome.type)
    return replace(status, conditions=(*others, told))
