"""What a job needs: pods to make or delete, and what its status says. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from dray.api.conditions import find_condition, is_true, with_condition
from dray.api.generated.batch import Job, JobCondition, JobStatus
from dray.api.generated.core import Pod
from dray.api.pods import is_ready
from dray.api.times import Time
from dray.controllers.job import index_failures, indexes
from dray.controllers.job.counting import Tally, count, is_indexed
from dray.controllers.job.failure_policy import tell_reason
from dray.controllers.job.success_policy import matched_rule

MAX_AT_ONCE = 500
BACKOFF_LIMIT = 6
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
    predecessors: Mapping[int, Pod] = {}
    """By index, the failed pod whose count the next one carries on."""
    deadline: Time | None = None
    """When to look again at the latest."""


class _Outcome(NamedTuple):
    type: str
    reason: str
    message: str


def has(status: JobStatus, type_: str) -> bool:
    """Whether a condition holds."""
    return is_true(status.conditions, type_)


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
        status = _told(status, _Outcome(SUSPENDED, "JobSuspended", "Job suspended"), now)
        return JobPlan(replace(status, start_time=None), tally.release, retire=tally.active)
    if has(status, SUSPENDED):
        status = _told(status, _Outcome(SUSPENDED, "JobResumed", "Job resumed"), now, "False")
    retire, create = _balance(job, tally, now)
    waiting = {pod.metadata.uid for pod in tally.predecessors.values()}
    return JobPlan(
        status,
        tuple(pod for pod in tally.release if pod.metadata.uid not in waiting),
        retire=retire,
        create=create,
        predecessors=tally.predecessors,
        deadline=_look_again(job, status, tally, now),
    )


def _look_again(job: Job, status: JobStatus, tally: Tally, now: Time) -> Time | None:
    """When something is due without any event: the deadline, or the next try of an index that failed."""
    tries = (index_failures.ready_at(pod) for pod in tally.predecessors.values())
    times = (_deadline(job, status), *(at for at in tries if at > now))
    return min((at for at in times if at is not None), default=None)


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
        failed_indexes=None if tally.failed_indexes is None else indexes.render(tally.failed_indexes),
        uncounted_terminated_pods=tally.uncounted,
    )


def _deadline(job: Job, status: JobStatus) -> Time | None:
    seconds = job.spec.active_deadline_seconds
    if seconds is None or status.start_time is None:
        return None
    return status.start_time.after(seconds)


def _outcome(job: Job, tally: Tally, status: JobStatus, now: Time) -> _Outcome | None:
    """How the job ends, if it does. What was decided on before stays."""
    met = find_condition(status.conditions, SUCCESS_MET)
    if met is not None and met.status == "True":
        return _Outcome(COMPLETE, met.reason, met.message)
    decided = find_condition(status.conditions, FAILURE_TARGET)
    if decided is not None and decided.status == "True":
        return _Outcome(FAILED, decided.reason, decided.message)
    if tally.fatal is not None:
        return _Outcome(FAILED, "PodFailurePolicy", tell_reason(job, tally.fatal))
    if _is_past_limit(job, tally):
        return _Outcome(FAILED, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    deadline = _deadline(job, status)
    if deadline is not None and now >= deadline and not job.spec.suspend:
        return _Outcome(FAILED, "DeadlineExceeded", "Job was active longer than specified deadline")
    return _failed_by_index(job, tally) or _succeeded(job, tally)


def _is_past_limit(job: Job, tally: Tally) -> bool:
    """Whether too many pods failed, or containers that are started again in their pods did."""
    limit = BACKOFF_LIMIT if job.spec.backoff_limit is None else job.spec.backoff_limit
    if tally.total_failed > limit:
        return True
    if job.spec.template.spec.restart_policy != "OnFailure":
        return False
    restarts = sum(
        status.restart_count
        for pod in tally.active
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)
    )
    return restarts >= max(limit, 1)


def _failed_by_index(job: Job, tally: Tally) -> _Outcome | None:
    if not tally.failed_indexes:
        return None
    failed, most = len(tally.failed_indexes), job.spec.max_failed_indexes
    if most is not None and failed > most:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return _Outcome(FAILED, "MaxFailedIndexesExceeded", message)
    if failed + len(tally.completed) >= (job.spec.completions or 0):
        return _Outcome(FAILED, "FailedIndexes", "Job has failed indexes")
    return None


def _succeeded(job: Job, tally: Tally) -> _Outcome | None:
    rule = matched_rule(job, tally.completed)
    if rule is not None:
        return _Outcome(COMPLETE, "SuccessPolicy", f"Matched rules at index {rule}")
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
    status = _told(status, outcome._replace(type=intermediate), now)
    if not tally.active and not tally.terminating and not tally.uncounted:
        status = _told(status, outcome, now)
        if ended:
            status = replace(status, completion_time=now)
    return JobPlan(status, tally.release, delete=tally.active)


def _balance(job: Job, tally: Tally, now: Time) -> tuple[tuple[Pod, ...], tuple[int | None, ...]]:
    """Which pods are too many, and which are missing."""
    parallelism = 1 if job.spec.parallelism is None else job.spec.parallelism
    wanted = parallelism
    if job.spec.completions is not None:
        wanted = min(parallelism, job.spec.completions - tally.total_succeeded - len(tally.failed_indexes or ()))
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
    return (), tuple(index for index, _ in zip(_free_indexes(job, tally, now), range(number), strict=False))


def _free_indexes(job: Job, tally: Tally, now: Time) -> Iterator[int]:
    """Indexes that may get a pod now, lowest first."""
    occupied = [*tally.active]
    if job.spec.pod_replacement_policy == "Failed":
        occupied += tally.terminating
    taken = {index for pod in occupied if (index := indexes.index_of(pod)) is not None}
    taken.update(tally.completed, tally.failed_indexes or ())
    taken.update(index for index, pod in tally.predecessors.items() if index_failures.ready_at(pod) > now)
    return indexes.missing(job.spec.completions or 0, taken)


def _told(status: JobStatus, outcome: _Outcome, now: Time, value: str = "True") -> JobStatus:
    """The status with a condition set; one that says the same already keeps its time."""
    known = find_condition(status.conditions, outcome.type)
    if known is not None and known.status == value:
        return status
    told = JobCondition(
        type=outcome.type,
        status=value,
        reason=outcome.reason,
        message=outcome.message,
        last_probe_time=now,
        last_transition_time=now,
    )
    return replace(status, conditions=with_condition(status.conditions, told))
