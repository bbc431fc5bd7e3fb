"""Job and CronJob: pods that run to completion."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from dray.api import labels
from dray.api.conditions import is_true
from dray.api.cron_schedule import ScheduleError, parse_schedule, time_zone
from dray.api.field import invalid, not_supported, required
from dray.api.generated.batch import CronJob, Job, JobSpec, PodFailurePolicyRule
from dray.api.generated.core import Affinity, Container, PodSpec
from dray.api.meta import LabelSelector
from dray.api.times import Time
from dray.api.well_known import JOB_NAME
from dray.validation import check, names
from dray.validation.context import Context, Errors
from dray.validation.job_policies import FEWER, MANY, validate_policies
from dray.validation.job_status import check_status
from dray.validation.label_selectors import validate_label_selector
from dray.validation.metadata import with_metadata
from dray.validation.pod_warnings import owner_warnings, template_warnings
from dray.validation.rules import Rules
from dray.validation.workloads import default_template, validate_selector, validate_template

BACKOFF_LIMIT: Final = 6
_LONGEST_CRON_JOB: Final = 52
_LONGEST_MANAGER: Final = 63
_INT32_MAX: Final = 2**31 - 1
_MODES: Final = ("Indexed", "NonIndexed")
_UID_LABEL: Final = "batch.kubernetes.io/controller-uid"
_OLD_LABELS: Final = {"controller-uid": _UID_LABEL, "job-name": JOB_NAME}


def _default_spec(spec: JobSpec) -> JobSpec:
    completions, parallelism = spec.completions, spec.parallelism
    if completions is None and parallelism is None:
        completions = 1
    backoff = spec.backoff_limit
    if backoff is None:
        backoff = BACKOFF_LIMIT if spec.backoff_limit_per_index is None else _INT32_MAX
    policy = spec.pod_failure_policy
    if policy is not None:
        policy = replace(policy, rules=tuple([_default_rule(rule) for rule in policy.rules]))
    replacement = "Failed" if spec.pod_failure_policy is not None else "TerminatingOrFailed"
    return replace(
        spec,
        completions=completions,
        parallelism=1 if parallelism is None else parallelism,
        backoff_limit=backoff,
        completion_mode=spec.completion_mode or "NonIndexed",
        suspend=bool(spec.suspend),
        pod_failure_policy=policy,
        pod_replacement_policy=spec.pod_replacement_policy or replacement,
        manual_selector=bool(spec.manual_selector),
        template=default_template(spec.template),
    )


def _default_rule(rule: PodFailurePolicyRule) -> PodFailurePolicyRule:
    patterns = tuple([replace(one, status=one.status or "True") for one in rule.on_pod_conditions])
    return replace(rule, on_pod_conditions=patterns)


def _default(obj: Job, _now: Time) -> Job:
    if not obj.metadata.labels:
        obj = with_metadata(obj, labels=obj.spec.template.metadata.labels)
    return replace(obj, spec=_default_spec(obj.spec))


def _own_labels(job: Job) -> dict[str, str]:
    """What the pods of a job have in common with those of no other."""
    values = {_UID_LABEL: job.metadata.uid, JOB_NAME: job.metadata.name}
    return values | {old_name: values[name] for old_name, name in _OLD_LABELS.items()}


def _change(new: Job, old: Job | None, _ctx: Context) -> Job:
    """A new job finds its pods by labels with its own UID, unless its author takes care of the selector."""
    if old is not None or new.spec.manual_selector:
        return new
    labels = _own_labels(new) | new.spec.template.metadata.labels
    if new.metadata.labels is new.spec.template.metadata.labels:
        new = with_metadata(new, labels=labels)  # they are those of its pods
    template = replace(new.spec.template, metadata=replace(new.spec.template.metadata, labels=labels))
    selector = new.spec.selector or LabelSelector()
    selector = replace(selector, match_labels={_UID_LABEL: new.metadata.uid, **selector.match_labels})
    return replace(new, spec=replace(new.spec, template=template, selector=selector))


def _check(errors: Errors, new: Job, old: Job | None, _ctx: Context) -> None:
    _validate_spec(errors, new.spec, "spec")
    if new.spec.selector is None:
        errors.append(required("spec.selector"))
        where = "spec.template.metadata.labels"
        errors.append(invalid(where, new.spec.template.metadata.labels, "must match the selector"))
    else:
        validate_selector(errors, new.spec.selector, new.spec.template, may_be_empty=True)
    if old is not None:
        _check_update(errors, new, old)
    else:
        _check_found_by(errors, new)
        _check_name(errors, new)


def _check_found_by(errors: Errors, job: Job) -> None:
    """The labels that a job gives its pods are not somebody else's, unless its author takes care of the selector."""
    selector = job.spec.selector
    if job.spec.manual_selector or selector is None:
        return
    own, given = _own_labels(job), job.spec.template.metadata.labels
    for name, value in own.items():
        if given.get(name) != value:
            told = f"must be '{value}'"
            errors.append(invalid(f"spec.template.metadata.labels[{name}]", given.get(name, ""), told))
    problems: Errors = []
    validate_label_selector(problems, selector, "spec.selector")
    if not problems and not labels.LabelSelector.of(selector).matches(own):
        errors.append(invalid("spec.selector", selector, "`selector` not auto-generated"))


def _check_name(errors: Errors, job: Job) -> None:
    """The pods of an indexed job are hosts by its name and their index."""
    if job.spec.completion_mode == "Indexed" and job.spec.completions:
        longest = f"{job.metadata.name}-{job.spec.completions - 1}"
        if names.dns_label(longest):
            told = f"will not able to create pod with invalid DNS label: {longest}"
            errors.append(invalid("metadata.name", job.metadata.name, told))


def _check_update(errors: Errors, new: Job, old: Job) -> None:
    """How pods are found, counted and judged stays; what they are like may change until they are first made."""
    now, before = new.spec, old.spec
    for field, value, known in (
        ("selector", now.selector, before.selector),
        ("completionMode", now.completion_mode, before.completion_mode),
        ("podFailurePolicy", now.pod_failure_policy, before.pod_failure_policy),
        ("backoffLimitPerIndex", now.backoff_limit_per_index, before.backoff_limit_per_index),
        ("managedBy", now.managed_by, before.managed_by),
        ("successPolicy", now.success_policy, before.success_policy),
    ):
        check.immutable(errors, f"spec.{field}", value, known)
    if now.completion_mode != "Indexed":
        check.immutable(errors, "spec.completions", now.completions, before.completions)
    elif now.completions not in (None, before.completions, now.parallelism):
        told = "can only be modified in tandem with spec.parallelism"
        errors.append(invalid("spec.completions", now.completions, told))
    if before.suspend and _is_at_rest(old):
        check.immutable(
            errors, "spec.template.spec", now.template.spec, _with_changeable(before.template.spec, now.template.spec)
        )
    else:
        check.immutable(errors, "spec.template", now.template, before.template)


def _is_at_rest(job: Job) -> bool:
    """Whether a suspended job has no pods: it never had any, or the last of them are gone."""
    told = is_true(job.status.conditions, "Suspended")
    return (job.status.start_time is None or told) and not job.status.active


def _with_changeable(known: PodSpec, new: PodSpec) -> PodSpec:
    """The spec of a job's pods with what may change while it rests: where they may go, and what they need."""
    known_affinity, affinity = known.affinity or Affinity(), new.affinity or Affinity()
    mixed = replace(known_affinity, node_affinity=affinity.node_affinity)
    return replace(
        known,
        affinity=new.affinity if mixed == affinity else known.affinity,
        node_selector=new.node_selector,
        tolerations=new.tolerations,
        scheduling_gates=new.scheduling_gates,
        containers=_with_resources(known.containers, new.containers),
        init_containers=_with_resources(known.init_containers, new.init_containers),
    )


def _with_resources(known: tuple[Container, ...], new: tuple[Container, ...]) -> tuple[Container, ...]:
    if len(known) != len(new):
        return known
    return tuple(
        replace(one, resources=other.resources) if one.name == other.name else one
        for one, other in zip(known, new, strict=True)
    )


def _validate_spec(errors: Errors, spec: JobSpec, path: str) -> None:
    for field, value in (
        ("parallelism", spec.parallelism),
        ("completions", spec.completions),
        ("activeDeadlineSeconds", spec.active_deadline_seconds),
        ("backoffLimit", spec.backoff_limit),
        ("ttlSecondsAfterFinished", spec.ttl_seconds_after_finished),
        ("backoffLimitPerIndex", spec.backoff_limit_per_index),
        ("maxFailedIndexes", spec.max_failed_indexes),
    ):
        if value is not None:
            check.not_negative(errors, f"{path}.{field}", value)
    if spec.completion_mode is not None:
        check.one_of(errors, f"{path}.completionMode", spec.completion_mode, _MODES)
    if spec.completion_mode == "Indexed" and spec.completions is None:
        errors.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if spec.managed_by is not None:
        check.required_name(errors, f"{path}.managedBy", spec.managed_by, names.domain_path)
        check.length(errors, f"{path}.managedBy", spec.managed_by, _LONGEST_MANAGER)
    validate_policies(errors, spec, path)
    validate_template(errors, spec.template, f"{path}.template")
    policy = spec.template.spec.restart_policy
    if policy == "Always":
        # The default for pods makes no sense here, so whoever leaves it out is told to decide.
        errors.append(required(f"{path}.template.spec.restartPolicy", 'must be "OnFailure" or "Never"'))


def _default_cron_job(obj: CronJob, _now: Time) -> CronJob:
    spec = obj.spec
    succeeded, failed = spec.successful_jobs_history_limit, spec.failed_jobs_history_limit
    template = replace(spec.job_template, spec=replace(spec.job_template.spec, template=_template_of(spec)))
    return replace(
        obj,
        spec=replace(
            spec,
            concurrency_policy=spec.concurrency_policy or "Allow",
            suspend=bool(spec.suspend),
            successful_jobs_history_limit=3 if succeeded is None else succeeded,
            failed_jobs_history_limit=1 if failed is None else failed,
            job_template=template,
        ),
    )


def _template_of(spec: Any) -> Any:
    return default_template(spec.job_template.spec.template)


def _check_cron_job(errors: Errors, new: CronJob, old: CronJob | None, _ctx: Context) -> None:
    spec = new.spec
    if old is None and len(new.metadata.name) > _LONGEST_CRON_JOB:
        # The jobs' names are longer by the time that they are for, and may have 63 characters.
        errors.append(
            invalid("metadata.name", new.metadata.name, f"must be no more than {_LONGEST_CRON_JOB} characters")
        )
    _validate_schedule(errors, spec.schedule, had_zone=old is not None and "TZ" in old.spec.schedule)
    if spec.time_zone is not None and (old is None or old.spec.time_zone != spec.time_zone):
        _validate_time_zone(errors, spec.time_zone)
    for field, value in (
        ("startingDeadlineSeconds", spec.starting_deadline_seconds),
        ("successfulJobsHistoryLimit", spec.successful_jobs_history_limit),
        ("failedJobsHistoryLimit", spec.failed_jobs_history_limit),
    ):
        if value is not None:
            check.not_negative(errors, f"spec.{field}", value)
    check.required_one_of(errors, "spec.concurrencyPolicy", new.spec.concurrency_policy, ("Allow", "Forbid", "Replace"))
    job, path = new.spec.job_template.spec, "spec.jobTemplate.spec"
    _validate_spec(errors, job, path)
    if job.selector is not None:
        errors.append(invalid(f"{path}.selector", job.selector, "`selector` will be auto-generated"))
    if job.manual_selector:
        errors.append(not_supported(f"{path}.manualSelector", job.manual_selector, ("nil", "false")))


def _validate_schedule(errors: Errors, schedule: str, *, had_zone: bool) -> None:
    if not schedule:
        errors.append(required("spec.schedule"))
        return
    try:
        parse_schedule(schedule)
    except ScheduleError as error:
        errors.append(invalid("spec.schedule", schedule, str(error)))
    if "TZ" in schedule and not had_zone:
        told = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        errors.append(invalid("spec.schedule", schedule, told))


def _validate_time_zone(errors: Errors, zone: str) -> None:
    if not zone:
        errors.append(invalid("spec.timeZone", zone, "timeZone must be nil or non-empty string"))
        return
    try:
        time_zone(zone)
    except ScheduleError as error:
        errors.append(invalid("spec.timeZone", zone, str(error)))


def _spec_warnings(spec: JobSpec, path: str) -> list[str]:
    found = template_warnings(spec.template, f"{path}.template")
    if spec.completion_mode == "Indexed" and (spec.completions or 0) > MANY and (spec.parallelism or 0) > FEWER:
        told = (
            "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, "
            "Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        )
        found.insert(0, f"{path}: {told}")
    return found


def _warnings(obj: Job) -> list[str]:
    return [*owner_warnings(obj.metadata.name), *_spec_warnings(obj.spec, "spec")]


def _cron_job_warnings(obj: CronJob) -> list[str]:
    return [*owner_warnings(obj.metadata.name), *_spec_warnings(obj.spec.job_template.spec, "spec.jobTemplate.spec")]


RULES: Final = {
    "Job": Rules(
        has_generation=True,
        has_status=True,
        status_guards_metadata=False,
        default=_default,
        warnings=_warnings,
        change=_change,
        check=_check,
        check_status=check_status,
    ),
    "CronJob": Rules(
        has_generation=True,
        has_status=True,
        status_guards_metadata=False,
        default=_default_cron_job,
        warnings=_cron_job_warnings,
        check=_check_cron_job,
    ),
}
