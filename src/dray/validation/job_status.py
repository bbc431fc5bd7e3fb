"""The status of a Job, which a controller of somebody else may write: what it says fits together and does not go back.

What is wrong already and stays as it was is let through, so that the rest of such a status can be written.
"""

from __future__ import annotations

from typing import Final

from dray.api.field import duplicate, invalid, required
from dray.api.generated.batch import Job, JobStatus
from dray.validation import check
from dray.validation.context import Context, Errors
from dray.validation.job_policies import read_intervals
from dray.validation.workload_status import validate_numbers

COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
FAILURE_TARGET: Final = "FailureTarget"
SUCCESS_CRITERIA_MET: Final = "SuccessCriteriaMet"
_CONDITIONS: Final = "status.conditions"
_OMITTED: Final = "<value omitted>"

_NOT_TOGETHER: Final = (
    (COMPLETE, FAILED),
    (COMPLETE, FAILURE_TARGET),
    (SUCCESS_CRITERIA_MET, FAILED),
    (SUCCESS_CRITERIA_MET, FAILURE_TARGET),
)
_NOT_WITHOUT: Final = ((FAILED, FAILURE_TARGET), (COMPLETE, SUCCESS_CRITERIA_MET))
_LASTING: Final = (FAILED, COMPLETE, FAILURE_TARGET, SUCCESS_CRITERIA_MET)


def _true(status: JobStatus) -> set[str]:
    """The types of the conditions that hold."""
    return {one.type for one in status.conditions if one.status == "True"}


def check_status(errors: Errors, new: Job, old: Job, _ctx: Context) -> None:
    """Everything about a new status; `old` has the one before."""
    validate_numbers(errors, new.status)
    _validate_uncounted(errors, new.status)
    now, before = _true(new.status), _true(old.status)
    _validate_conditions(errors, now, before)
    _validate_times(errors, new, old)
    if not {COMPLETE, FAILED}.isdisjoint(now):
        _validate_end(errors, new, old, is_new={COMPLETE, FAILED}.isdisjoint(before))
    _validate_counts(errors, new, old)
    _validate_indexes(errors, new, old)


def _validate_uncounted(errors: Errors, status: JobStatus) -> None:
    pods = status.uncounted_terminated_pods
    if pods is None:
        return
    seen: set[str] = set()
    for field, uids in (("succeeded", pods.succeeded), ("failed", pods.failed)):
        for index, uid in enumerate(uids):
            path = f"status.uncountedTerminatedPods.{field}[{index}]"
            if not uid:
                errors.append(invalid(path, uid, "must not be empty"))
            elif uid in seen:
                errors.append(duplicate(path, uid))
            seen.add(uid)


def _validate_conditions(errors: Errors, now: set[str], before: set[str]) -> None:
    changed = now ^ before
    for one, other in _NOT_TOGETHER:
        if one in now and other in now and changed & {one, other}:
            errors.append(invalid(_CONDITIONS, _OMITTED, f"cannot set {one}=True and {other}=true conditions"))
    for one, other in _NOT_WITHOUT:
        if one in now and other not in now and changed & {one, other}:
            told = f"cannot set {one}=True condition without the {other}=true condition"
            errors.append(invalid(_CONDITIONS, _OMITTED, told))
    for one in _LASTING:
        if one in before and one not in now:
            errors.append(invalid(_CONDITIONS, _OMITTED, f"cannot disable the terminal {one}=True condition"))


def _validate_times(errors: Errors, new: Job, old: Job) -> None:
    now, before = new.status, old.status
    start, end, path = now.start_time, now.completion_time, "status.completionTime"
    is_complete = COMPLETE in _true(now)
    ends_anew = end != before.completion_time or is_complete != (COMPLETE in _true(before))
    if ends_anew and end is not None and not is_complete:
        errors.append(invalid(path, end, "cannot set completionTime when there is no Complete=True condition"))
    if ends_anew and end is None and is_complete:
        errors.append(required(path, "completionTime is required for Complete jobs"))
    is_other = start != before.start_time or end != before.completion_time
    if is_other and start is not None and end is not None and end < start:
        errors.append(invalid(path, end, "must be equal to or after `startTime`"))
    if end is not None and before.completion_time is not None:
        check.immutable(errors, path, end, before.completion_time)
    if before.start_time not in (None, start) and not new.spec.suspend and not _resumes(now, before):
        errors.append(invalid("status.startTime", start, "field is immutable for unsuspended job once set"))


def _resumes(now: JobStatus, before: JobStatus) -> bool:
    is_on = any(one.type == "Suspended" and one.status == "False" for one in now.conditions)
    return is_on and "Suspended" in _true(before)


def _validate_end(errors: Errors, new: Job, old: Job, *, is_new: bool) -> None:
    """A job that is over has nothing more to do."""
    now, before = new.status, old.status
    if now.active > 0 and (is_new or now.active != before.active):
        errors.append(invalid("status.active", now.active, "active>0 is invalid for finished job"))
    never_ran = bool(new.spec.suspend) and new.spec.completions == 0
    if now.start_time is None and (is_new or before.start_time is not None) and not never_ran:
        errors.append(required("status.startTime", "startTime is required for finished job"))
    pods = now.uncounted_terminated_pods
    if pods is not None and (pods.failed or pods.succeeded) and (is_new or pods != before.uncounted_terminated_pods):
        errors.append(invalid("status.uncountedTerminatedPods", _OMITTED, "must be empty for finished job"))
    if (now.terminating or 0) > 0 and (is_new or now.terminating != before.terminating):
        errors.append(invalid("status.terminating", now.terminating, "terminating>0 is invalid for finished job"))


def _validate_counts(errors: Errors, new: Job, old: Job) -> None:
    """Counters only grow, unless an indexed job is made smaller."""
    now, before, spec = new.status, old.status, new.spec
    if now.failed < before.failed:
        errors.append(invalid("status.failed", now.failed, "cannot decrease the failed counter"))
    shrinks = spec.completion_mode == "Indexed" and spec.completions == spec.parallelism
    if now.succeeded < before.succeeded and not shrinks:
        errors.append(invalid("status.succeeded", now.succeeded, "cannot decrease the succeeded counter"))
    is_other = now.ready != before.ready or now.active != before.active
    if is_other and now.ready is not None and now.ready > now.active:
        errors.append(invalid("status.ready", now.ready, "cannot set more ready pods than active"))


def _validate_indexes(errors: Errors, new: Job, old: Job) -> None:
    now, before, spec = new.status, old.status, new.spec
    done, failed = now.completed_indexes, now.failed_indexes
    is_other, fails_anew = done != before.completed_indexes, failed != before.failed_indexes
    if is_other and done and spec.completion_mode != "Indexed":
        told = "cannot set non-empty completedIndexes when non-indexed completion mode"
        errors.append(invalid("status.completedIndexes", done, told))
    if fails_anew and failed is not None and spec.backoff_limit_per_index is None:
        told = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        errors.append(invalid("status.failedIndexes", failed, told))
    if spec.completions is None or not (is_other or fails_anew):
        return
    completed = _intervals(errors if is_other else [], "completedIndexes", done, spec.completions)
    broken = _intervals(errors if fails_anew else [], "failedIndexes", failed or "", spec.completions)
    shared = _first_shared(completed, broken)
    if shared is not None:
        told = f"failedIndexes and completedIndexes overlap at index: {shared}"
        errors.append(invalid("status.failedIndexes", failed, told))


def _intervals(errors: Errors, field: str, text: str, completions: int) -> list[tuple[int, int]]:
    if not text:
        return []
    problem, found = read_intervals(text, completions)
    if problem:
        errors.append(invalid(f"status.{field}", text, f"error parsing {field}: {problem}"))
    return found


def _first_shared(some: list[tuple[int, int]], others: list[tuple[int, int]]) -> int | None:
    """The first index that is in intervals of both; both are in ascending order."""
    at = 0
    for first, last in some:
        while at < len(others) and others[at][1] < first:
            at += 1
        if at < len(others) and others[at][0] <= last:
            return max(first, others[at][0])
    return None
