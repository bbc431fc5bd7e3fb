"""What a job's author may say about failures and successes: limits per index, failure and success policies."""

from __future__ import annotations

import re
from typing import Final

from dray.api.field import invalid, required
from dray.api.generated.batch import JobSpec, PodFailurePolicyRule, SuccessPolicyRule
from dray.api.pods import containers_of
from dray.validation import check, names
from dray.validation.context import Errors

MOST_RULES: Final = 20
MANY: Final = 100_000
"""Completions beyond which indexes are not kept track of one by one; never that many at once, or failed."""
FEWER: Final = 10_000
"""How many at once, or failed, beside that many completions."""
MOST_EXIT_CODES: Final = 255
MOST_CONDITIONS: Final = 20
_INDEXED: Final = "requires indexed completion mode"
_ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS: Final = ("In", "NotIn")
_STATUSES: Final = ("False", "True", "Unknown")
_INTERVALS: Final = re.compile(r"[0-9]{1,9}+(?:-[0-9]{1,9}+)?+(?:,[0-9]{1,9}+(?:-[0-9]{1,9}+)?+)*+")


def validate_policies(errors: Errors, spec: JobSpec, path: str) -> None:
    """Everything about failures and successes beyond the plain limits."""
    _validate_limits(errors, spec, path)
    if spec.pod_failure_policy is not None:
        _validate_failure_policy(errors, spec, path)
    if spec.success_policy is not None:
        _validate_success_policy(errors, spec, path)
    replacement = spec.pod_replacement_policy
    if replacement is not None:
        allowed = ("Failed",) if spec.pod_failure_policy is not None else ("Failed", "TerminatingOrFailed")
        check.one_of(errors, f"{path}.podReplacementPolicy", replacement, allowed)


def _validate_limits(errors: Errors, spec: JobSpec, path: str) -> None:
    failed, per_index = spec.max_failed_indexes, spec.backoff_limit_per_index
    if failed is not None and per_index is None:
        errors.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if spec.completion_mode == "Indexed":
        _validate_indexed(errors, spec, path)
        return
    for field, value in (("backoffLimitPerIndex", per_index), ("maxFailedIndexes", failed)):
        if value is not None:
            errors.append(invalid(f"{path}.{field}", value, _INDEXED))


def _validate_indexed(errors: Errors, spec: JobSpec, path: str) -> None:
    """How many indexes may be under way or fail, so that their numbers fit into a status."""
    completions, failed, at_once = spec.completions or 0, spec.max_failed_indexes, spec.parallelism or 0
    if at_once > MANY:
        errors.append(invalid(f"{path}.parallelism", at_once, f"must be less than or equal to {MANY}"))
    if failed is not None and spec.completions is not None and failed > spec.completions:
        errors.append(invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions"))
    if failed is not None and failed > MANY:
        errors.append(invalid(f"{path}.maxFailedIndexes", failed, f"must be less than or equal to {MANY}"))
    if completions <= MANY or spec.backoff_limit_per_index is None:
        return
    told = f"must be less than or equal to {FEWER} when completions are above {MANY}"
    if failed is None:
        errors.append(required(f"{path}.maxFailedIndexes", f"must be specified when completions is above {MANY}"))
    elif failed > FEWER:
        errors.append(invalid(f"{path}.maxFailedIndexes", failed, told))
    if at_once > FEWER:
        errors.append(invalid(f"{path}.parallelism", at_once, told))


def _validate_failure_policy(errors: Errors, spec: JobSpec, path: str) -> None:
    policy, pod = spec.pod_failure_policy, spec.template.spec
    assert policy is not None
    if pod.restart_policy not in ("", "Always", "Never"):
        told = 'only "Never" is supported when podFailurePolicy is specified'
        errors.append(invalid(f"{path}.template.spec.restartPolicy", pod.restart_policy, told))
    where = f"{path}.podFailurePolicy.rules"
    if not check.fits(errors, where, policy.rules, MOST_RULES):
        return
    known = {one.name for one in containers_of(pod)}
    for position, rule in enumerate(policy.rules):
        _validate_failure_rule(errors, rule, f"{where}[{position}]", known)
        if rule.action == "FailIndex" and spec.backoff_limit_per_index is None:
            told = "requires the backoffLimitPerIndex to be set"
            errors.append(invalid(f"{where}[{position}].action", rule.action, told))


def _validate_failure_rule(errors: Errors, rule: PodFailurePolicyRule, path: str, containers: set[str]) -> None:
    check.required_one_of(errors, f"{path}.action", rule.action, _ACTIONS)
    codes = rule.on_exit_codes
    if codes is not None and rule.on_pod_conditions:
        errors.append(invalid(path, "", "specifying both OnExitCodes and OnPodConditions is not supported"))
    if codes is None and not rule.on_pod_conditions:
        errors.append(invalid(path, "", "specifying one of OnExitCodes and OnPodConditions is required"))
    if check.fits(errors, f"{path}.onPodConditions", rule.on_pod_conditions, MOST_CONDITIONS):
        for position, pattern in enumerate(rule.on_pod_conditions):
            where = f"{path}.onPodConditions[{position}]"
            check.name(errors, f"{where}.type", pattern.type, names.label_key)
            check.required_one_of(errors, f"{where}.status", pattern.status, _STATUSES)
    if codes is None:
        return
    where = f"{path}.onExitCodes"
    check.required_one_of(errors, f"{where}.operator", codes.operator, _OPERATORS)
    if codes.container_name is not None and codes.container_name not in containers:
        told = "must be one of the container or initContainer names in the pod template"
        errors.append(invalid(f"{where}.containerName", codes.container_name, told))
    if not codes.values:
        errors.append(invalid(f"{where}.values", list(codes.values), "at least one value is required"))
    if not check.fits(errors, f"{where}.values", codes.values, MOST_EXIT_CODES):
        return
    check.unique(errors, f"{where}.values", codes.values)
    if list(codes.values) != sorted(codes.values):
        errors.append(invalid(f"{where}.values", list(codes.values), "must be ordered"))
    if codes.operator == "In" and 0 in codes.values:
        place = f"{where}.values[{codes.values.index(0)}]"
        errors.append(invalid(place, 0, "must not be 0 for the In operator"))


def _validate_success_policy(errors: Errors, spec: JobSpec, path: str) -> None:
    policy = spec.success_policy
    assert policy is not None
    if spec.completion_mode != "Indexed":
        errors.append(invalid(f"{path}.successPolicy", "", _INDEXED))
        return
    where = f"{path}.successPolicy.rules"
    if not policy.rules:
        errors.append(required(where, "at least one rules must be specified when the successPolicy is specified"))
    if check.fits(errors, where, policy.rules, MOST_RULES):
        for position, rule in enumerate(policy.rules):
            _validate_success_rule(errors, rule, f"{where}[{position}]", spec.completions or 0)


def _validate_success_rule(errors: Errors, rule: SuccessPolicyRule, path: str, completions: int) -> None:
    count, text = rule.succeeded_count, rule.succeeded_indexes
    if count is None and text is None:
        errors.append(required(path, "at least one of succeededCount or succeededIndexes must be specified"))
    total = completions
    if text is not None:
        problem, intervals = read_intervals(text, completions)
        if problem:
            errors.append(invalid(f"{path}.succeededIndexes", text, f"error parsing succeededIndexes: {problem}"))
        total = sum(last - first + 1 for first, last in intervals)
    if count is not None:
        check.not_negative(errors, f"{path}.succeededCount", count)
        if count > total:
            of = "completions" if text is None else "indexes in the specified succeededIndexes field"
            told = f"must be less than or equal to {total} (the number of {'specified ' if text is None else ''}{of})"
            errors.append(invalid(f"{path}.succeededCount", count, told))


def read_intervals(text: str, completions: int) -> tuple[str, list[tuple[int, int]]]:
    """What is wrong with `0-2,4`, if anything, and its intervals, with their last index each."""
    if _INTERVALS.fullmatch(text) is None:
        return "write indexes and intervals in ascending order, such as 0-2,4", []
    found: list[tuple[int, int]] = []
    for part in text.split(","):
        first_text, _, last_text = part.partition("-")
        first, last = int(first_text), int(last_text or first_text)
        if (found and first <= found[-1][1]) or last < first or (last_text and last == first):
            return f"non-increasing order at {part}", []
        if last >= completions:
            return f"too large index {last}: there are {completions}", []
        found.append((first, last))
    return "", found
