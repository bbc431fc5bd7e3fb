"""Which job a cron job makes now, which it deletes, and what its status says. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from dray.api.conditions import is_true
from dray.api.cron_schedule import Schedule, ScheduleError, parse_schedule, time_zone
from dray.api.generated.batch import CronJob, CronJobStatus, Job
from dray.api.meta import ObjectMeta
from dray.api.references import object_reference
from dray.api.times import Time, later
from dray.controllers.job.plan import COMPLETE, FAILED
from dray.controllers.pod_templates import reference_to

SCHEDULED_AT: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
MANY: Final = 100
"""So many missed times mean that a clock or a deadline is wrong."""
LATE: Final = 0.1
"""Seconds after a time of the schedule at which it is looked at, so that it surely has come."""


class Note(NamedTuple):
    """An event to write."""

    type: str
    reason: str
    message: str


class CronJobPlan(NamedTuple):
    """What to do: write events, delete jobs, make a job, store the status; and after how many seconds to look again."""

    status: CronJobStatus
    notes: tuple[Note, ...] = ()
    delete: tuple[Job, ...] = ()
    create: Job | None = None
    scheduled: Time | None = None
    """For which time of the schedule a job is made."""
    again: float | None = None


class _Due(NamedTuple):
    """The latest time of the schedule that has come and not been served, and whether many have been missed."""

    at: dt.datetime | None
    many: bool


def outcome_of(job: Job) -> str:
    """`Complete` or `Failed`; empty if the job is not over."""
    return next((type_ for type_ in (COMPLETE, FAILED) if is_true(job.status.conditions, type_)), "")


def plan(cron_job: CronJob, jobs: Sequence[Job], now: dt.datetime) -> CronJobPlan:
    """What to do about a cron job, given all jobs that it made."""
    status, notes = _observe(cron_job, jobs)
    if cron_job.metadata.deletion_timestamp is not None:
        return CronJobPlan(status, tuple(notes))
    surplus = _surplus(cron_job, jobs)
    todo = CronJobPlan(status, tuple(notes), surplus)
    if cron_job.spec.suspend:
        return todo
    try:
        schedule, zone = parse_schedule(cron_job.spec.schedule), time_zone(cron_job.spec.time_zone)
    except ScheduleError as error:
        return _with(todo, Note("Warning", "UnparseableSchedule", f"{cron_job.spec.schedule!r}: {error}"))
    todo = todo._replace(again=_seconds_to_next(schedule, zone, now))
    due = find_due(cron_job, schedule, zone, now)
    if due.many:
        text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
        todo = _with(todo, Note("Warning", "TooManyMissedTimes", text))
    return todo if due.at is None else _start(cron_job, jobs, todo, due.at.astimezone(zone))


def seconds_to_next(cron_job: CronJob, now: dt.datetime) -> float | None:
    """After how many seconds the schedule has its next time; None if it has none, or is none."""
    try:
        return _seconds_to_next(parse_schedule(cron_job.spec.schedule), time_zone(cron_job.spec.time_zone), now)
    except ScheduleError:
        return None


def _seconds_to_next(schedule: Schedule, zone: dt.tzinfo, now: dt.datetime) -> float | None:
    upcoming = schedule.next_after(now, zone)
    return None if upcoming is None else (upcoming - now).total_seconds() + LATE


def _with(todo: CronJobPlan, note: Note) -> CronJobPlan:
    return todo._replace(notes=(*todo.notes, note))


def _observe(cron_job: CronJob, jobs: Iterable[Job]) -> tuple[CronJobStatus, list[Note]]:
    """The status with active jobs that are over, or gone, taken out."""
    notes: list[Note] = []
    by_uid = {job.metadata.uid: job for job in jobs}
    active = []
    for reference in cron_job.status.active:
        job = by_uid.get(reference.uid)
        outcome = outcome_of(job) if job is not None else ""
        if job is None:
            notes.append(Note("Normal", "MissingJob", f"Active job went missing: {reference.name}"))
        elif outcome:
            text = f"Saw completed job: {reference.name}, condition: {outcome}"
            notes.append(Note("Normal", "SawCompletedJob", text))
        else:
            active.append(reference)
    times = [job.status.completion_time for job in by_uid.values() if outcome_of(job) == COMPLETE]
    known = cron_job.status.last_successful_time
    latest = max((at for at in (*times, known) if at is not None), default=None)
    return replace(cron_job.status, active=tuple(active), last_successful_time=latest), notes


def _surplus(cron_job: CronJob, jobs: Sequence[Job]) -> tuple[Job, ...]:
    """The oldest jobs that are over, beyond those that are kept to look at."""
    found: list[Job] = []
    limits = (
        (COMPLETE, cron_job.spec.successful_jobs_history_limit),
        (FAILED, cron_job.spec.failed_jobs_history_limit),
    )
    for outcome, limit in limits:
        over = sorted((job for job in jobs if outcome_of(job) == outcome), key=_age)
        if limit is not None:
            found += over[: max(len(over) - limit, 0)]
    return tuple(job for job in found if job.metadata.deletion_timestamp is None)


def _age(job: Job) -> tuple[bool, str, str]:
    return job.status.start_time is None, job.status.start_time or "", job.metadata.name


def find_due(cron_job: CronJob, schedule: Schedule, zone: dt.tzinfo, now: dt.datetime) -> _Due:
    """Which time of the schedule is to be served now: the latest since the last one, and within the deadline."""
    since = cron_job.status.last_schedule_time or cron_job.metadata.creation_timestamp
    earliest = since.datetime() if since else now
    deadline = cron_job.spec.starting_deadline_seconds
    if deadline is not None:
        earliest = max(earliest, later(now, -deadline))
    first = schedule.next_after(earliest, zone)
    if first is None or first > now:
        return _Due(None, many=False)
    missed, latest = 1, first
    while missed <= MANY:
        following = schedule.next_after(latest, zone)
        if following is None or following > now:
            return _Due(latest, many=False)
        missed, latest = missed + 1, following
    return _Due(_latest(schedule, zone, latest, now), many=True)


def _latest(schedule: Schedule, zone: dt.tzinfo, known: dt.datetime, now: dt.datetime) -> dt.datetime:
    """The latest time of a schedule up to now: looked for in the last minutes first, then in twice as many, and on."""
    window = dt.timedelta(minutes=2)
    found = None
    while found is None or found > now:
        if now - window <= known:
            found = known
            break
        found = schedule.next_after(now - window, zone)
        window *= 2
    while (following := schedule.next_after(found, zone)) is not None and following <= now:
        found = following
    return found


def _start(cron_job: CronJob, jobs: Sequence[Job], todo: CronJobPlan, at: dt.datetime) -> CronJobPlan:
    """Makes the job for a time, unless those that run forbid it."""
    scheduled = Time.of(at)
    if cron_job.status.last_schedule_time == scheduled:
        return todo
    job = job_for(cron_job, at)
    made = next((one for one in jobs if one.metadata.name == job.metadata.name), None)
    if made is not None:
        return todo._replace(status=started(todo.status, made, scheduled))
    active = {reference.uid for reference in todo.status.active}
    if cron_job.spec.concurrency_policy == "Forbid" and active:
        text = "Not starting job because prior execution is running and concurrency policy is Forbid"
        return _with(todo, Note("Normal", "JobAlreadyActive", text))
    if cron_job.spec.concurrency_policy == "Replace":
        replaced = tuple(one for one in jobs if one.metadata.uid in active)
        todo = todo._replace(delete=(*todo.delete, *replaced), status=replace(todo.status, active=()))
    return todo._replace(create=job, scheduled=scheduled)


def job_for(cron_job: CronJob, at: dt.datetime) -> Job:
    """The job for a time, which its name tells: the same time never gets two."""
    template = cron_job.spec.job_template
    meta = cron_job.metadata
    stamp = at.isoformat(timespec="seconds").replace("+00:00", "Z")
    return Job(
        kind="Job",
        api_version="batch/v1",
        metadata=ObjectMeta(
            name=f"{meta.name}-{int(at.timestamp()) // 60}",
            namespace=meta.namespace,
            labels=template.metadata.labels,
            annotations={**template.metadata.annotations, SCHEDULED_AT: stamp},
            owner_references=(reference_to(cron_job),),
        ),
        spec=template.spec,
    )


def started(status: CronJobStatus, job: Job, scheduled: Time) -> CronJobStatus:
    """The status after a job was made for a time."""
    reference = object_reference(job)
    known = tuple(one for one in status.active if one.uid != reference.uid)
    active = known if outcome_of(job) else (*known, reference)
    return replace(status, active=active, last_schedule_time=scheduled)
