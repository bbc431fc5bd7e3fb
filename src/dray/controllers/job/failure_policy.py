"""What a job's author wants to follow from the way in which a pod failed. Pure."""

from __future__ import annotations

from enum import Enum

from dray.api.generated.batch import Job, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule
from dray.api.generated.core import Pod
from dray.api.references import full_name


class FailureEffect(Enum):
    """What a failed pod means for its job."""

    COUNT = "Count"
    IGNORE = "Ignore"
    FAIL_JOB = "FailJob"
    FAIL_INDEX = "FailIndex"


def judge(job: Job, pod: Pod) -> FailureEffect:
    """The action of the first rule that matches; a failure counts unless a rule says otherwise."""
    rule, _ = _first_match(job, pod)
    known = {one.value for one in FailureEffect}
    return FailureEffect(rule.action) if rule is not None and rule.action in known else FailureEffect.COUNT


def tell_reason(job: Job, pod: Pod) -> str:
    """How a pod failed and which rule is about it; empty if none is."""
    return _first_match(job, pod)[1]


def _first_match(job: Job, pod: Pod) -> tuple[PodFailurePolicyRule | None, str]:
    policy = job.spec.pod_failure_policy
    for index, rule in enumerate(policy.rules if policy is not None else ()):
        how = _match(rule, pod)
        if how:
            return rule, f"{how} matching {rule.action} rule at index {index}"
    return None, ""


def _match(rule: PodFailurePolicyRule, pod: Pod) -> str:
    """In which way a rule matches a pod; empty if it does not."""
    place = full_name(pod)
    if rule.on_exit_codes is not None:
        found = _exit(rule.on_exit_codes, pod)
        return f"Container {found[0]} for pod {place} failed with exit code {found[1]}" if found else ""
    known = {(one.type, one.status) for one in pod.status.conditions}
    for wanted in rule.on_pod_conditions:
        if (wanted.type, wanted.status or "True") in known:
            return f"Pod {place} has condition {wanted.type}"
    return ""


def _exit(wanted: PodFailurePolicyOnExitCodesRequirement, pod: Pod) -> tuple[str, int] | None:
    """The container that ended in the way that a rule is about, and its exit code."""
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        ended = status.state.terminated if status.state is not None else None
        if ended is None or ended.exit_code == 0 or wanted.container_name not in (None, status.name):
            continue
        if (ended.exit_code in wanted.values) is (wanted.operator == "In"):
            return status.name, ended.exit_code
    return None
