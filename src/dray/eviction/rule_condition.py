"""The condition EvictionInProgress of a DeviceTaintRule, for people and for `kubectl wait` (5055-101..107)."""

from __future__ import annotations

from msgspec.structs import replace

from dray.api.meta import Condition
from dray.api.resource import DeviceTaintRule
from dray.api.resource.taint import EFFECT_NO_EXECUTE, EFFECT_NO_SCHEDULE
from dray.api.times import Time
from dray.eviction.planner import Planner
from dray.eviction.preview import Preview, preview
from dray.eviction.tally import Progress

EVICTION_IN_PROGRESS = "EvictionInProgress"
REASON_PENDING = "PodsPendingEviction"
REASON_COMPLETED = "Completed"
REASON_NOT_STARTED = "NotStarted"
REASON_NO_EFFECT = "NoEffect"
REASON_OTHER_EFFECT = "OtherEffect"


def plan_condition(planner: Planner, rule: DeviceTaintRule, now: Time) -> Condition | None:
    """The condition that a rule should have; None if the one that it has may stay."""
    known = find_condition(rule)
    status, reason, message = "False", REASON_OTHER_EFFECT, "Eviction only happens for the NoExecute effect."
    progress = planner.progress(rule.metadata.name)
    if rule.spec.taint.effect == EFFECT_NO_EXECUTE:
        status, reason, message = _progress(progress)
    elif rule.spec.taint.effect != EFFECT_NO_SCHEDULE:
        # Said once for each change to the spec, also across restarts (5055-104).
        if known is not None and known.reason == REASON_NO_EFFECT and _is_current(known, rule):
            return None
        reason, message = REASON_NO_EFFECT, describe_preview(preview(planner, rule))
    if progress.evicted:
        message += f" {_count(progress.evicted, 'pod')} evicted since starting the controller."
    condition = Condition(
        type=EVICTION_IN_PROGRESS,
        status=status,
        reason=reason,
        message=message.strip(),
        observed_generation=rule.metadata.generation,
        last_transition_time=now,
    )
    if known is not None and replace(known, last_transition_time=now) == condition:
        return None
    return condition


def with_condition(rule: DeviceTaintRule, condition: Condition) -> DeviceTaintRule:
    """The rule with the condition set; those of others stay as they are (5055-35)."""
    types = [known.type for known in rule.status.conditions]
    if condition.type in types:
        conditions = tuple(condition if known.type == condition.type else known for known in rule.status.conditions)
    else:
        conditions = (*rule.status.conditions, condition)
    return replace(rule, status=replace(rule.status, conditions=conditions))


def find_condition(rule: DeviceTaintRule) -> Condition | None:
    """The condition that a rule has, if any."""
    return next((known for known in rule.status.conditions if known.type == EVICTION_IN_PROGRESS), None)


def describe_preview(found: Preview) -> str:
    """What would happen, in one line."""
    return (
        f"{_count(found.published, 'published device')} selected. "
        f"{_count(len(found.allocated), 'allocated device')} selected. "
        f"{_count(len(found.pods), 'pod')} would be evicted in {_namespaces(found.namespaces)} "
        "if the effect was NoExecute. Changing the spec of the rule updates these numbers."
    )


def _progress(progress: Progress) -> tuple[str, str, str]:
    if progress.pending:
        verb = "needs" if progress.pending == 1 else "need"
        where = _namespaces(progress.namespaces)
        return "True", REASON_PENDING, f"{_count(progress.pending, 'pod')} {verb} to be evicted in {where}."
    if progress.evicted:
        return "False", REASON_COMPLETED, "0 pods need to be evicted."
    return "False", REASON_NOT_STARTED, "0 pods need to be evicted. 0 pods evicted since starting the controller."


def _is_current(known: Condition, rule: DeviceTaintRule) -> bool:
    return known.observed_generation == rule.metadata.generation


def _count(number: int, what: str) -> str:
    return f"1 {what}" if number == 1 else f"{number} {what}s"


def _namespaces(number: int) -> str:
    return "1 namespace" if number == 1 else f"{number} different namespaces"
