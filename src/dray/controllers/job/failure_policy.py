"""What a job's author wants to follow from the way in which a pod failed. Pure."""

from __future__ import annotations

from enum import Enum

from dray.api.generated.batch import Job, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule
from dray.api.generated.core import Pod


class Verdict(Enum):
    """What a failed pod means for its job."""

    COUNT = "Count"
    IGNORE = "Ignore"
    FAIL_JOB = "FailJob"


def judge(job: Job, pod: Pod) -> Verdict:
    """The action of the first rule that matches; a failure counts unless a rule says otherwise."""
    policy = job.spec.pod_failure_policy
    for rule in policy.rules if policy is not None else ():
        if _matches(rule, pod):
            return Verdict(rule.action) if rule.action in {one.value for one in Verdict} else Verdict.COUNT
    return Verdict.COUNT


def _matches(rule: PodFailurePolicyRule, pod: Pod) -> bool:
    if rule.on_exit_codes is not None:
        return _exited_so(rule.on_exit_codes, pod)
    known = {(one.type, one.status) for one in pod.status.conditions}
    return any((one.type, one.status or "True") in known for one in rule.on_pod_conditions)


def _exited_so(wanted: PodFailurePolicyOnExitCodesRequirement, pod: Pod) -> bool:
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        ended = status.state.terminated if status.state is not None else None
        if ended is None or ended.exit_code == 0 or wanted.container_name not in (None, status.name):
            continue
        if (ended.exit_code in wanted.values) is (wanted.operator == "In"):
            return True
    return False
