"""The conditions of a DeviceTaintRule, for people and for `kubectl wait`.

EvictionInProgress tells how far it is (5055-101..107). Where there is something to say, EvictionHeld tells that so many
evictions need to be confirmed, and EvictionPolicyFailed that pods stay because nobody can be asked how they leave.
"""

from __future__ import annotations

from msgspec.structs import replace

from dray.api.conditions import find_condition
from dray.api.meta import Condition
from dray.api.resource import DeviceTaintRule
from dray.api.resource.taint import EFFECT_NO_EXECUTE, EFFECT_NO_SCHEDULE
from dray.api.times import Time
from dray.eviction.confirmations import CONFIRM_ANNOTATION, is_confirmed
from dray.eviction.device_planner import DevicePlanner
from dray.eviction.guard import Hold
from dray.eviction.preview import Preview, preview
from dray.eviction.tally import Progress

EVICTION_IN_PROGRESS = "EvictionInProgress"
REASON_PENDING = "PodsPendingEviction"
REASON_COMPLETED = "Completed"
REASON_NOT_STARTED = "NotStarted"
REASON_NO_EFFECT = "NoEffect"
REASON_OTHER_EFFECT = "OtherEffect"

EVICTION_HELD = "EvictionHeld"
REASON_TOO_MANY = "TooManyPods"
REASON_EMPTY_SELECTOR = "EmptySelector"
REASON_CONFIRMED = "Confirmed"
REASON_NOT_HELD = "NotHeld"

POLICY_FAILED = "EvictionPolicyFailed"
REASON_UNASKED = "PolicyCannotBeAsked"
REASON_ASKED = "PolicyCanBeAsked"


def plan_condition(planner: DevicePlanner, rule: DeviceTaintRule, now: Time) -> Condition | None:
    """The condition EvictionInProgress that a rule should have; None if the one that it has may stay."""
    known = find_condition(rule.status.conditions, EVICTION_IN_PROGRESS)
    status, reason, message = "False", REASON_OTHER_EFFECT, "Eviction only happens for the NoExecute effect."
    progress = planner.progress(rule.metadata.name)
    if rule.spec.taint.effect == EFFECT_NO_EXECUTE:
        status, reason, message = _progress(progress)
    elif rule.spec.taint.effect != EFFECT_NO_SCHEDULE:
        # Said once for each change to the spec, also across restarts (5055-104).
        if known is not None and known.reason == REASON_NO_EFFECT and _is_current(known, rule):
            return None
        reason, message = REASON_NO_EFFECT, describe_preview(preview(planner, rule))
    message += _exceptions(progress, planner.hold_of(rule))
    if progress.evicted:
        message += f" {_count(progress.evicted, 'pod')} evicted since starting the controller."
    return _news(known, _condition(rule, EVICTION_IN_PROGRESS, (status, reason, message.strip()), now))


def plan_held_condition(planner: DevicePlanner, rule: DeviceTaintRule, now: Time) -> Condition | None:
    """The condition EvictionHeld that a rule should have; None if there is nothing new to say about it."""
    known = find_condition(rule.status.conditions, EVICTION_HELD)
    hold = planner.hold_of(rule)
    if hold is not None:
        name, generation = rule.metadata.name, rule.metadata.generation
        command = f"kubectl annotate --overwrite devicetaintrule {name} {CONFIRM_ANNOTATION}={generation}"
        reason = REASON_EMPTY_SELECTOR if hold.is_sweeping else REASON_TOO_MANY
        text = ("True", reason, f"{hold}. To confirm: {command}")
    elif known is None:
        return None
    elif planner.departures.guard is not None and is_confirmed(rule):
        text = ("False", REASON_CONFIRMED, "Somebody confirmed the evictions.")
    else:
        text = ("False", REASON_NOT_HELD, "No evictions are held.")
    return _news(known, _condition(rule, EVICTION_HELD, text, now))


def plan_policy_condition(planner: DevicePlanner, rule: DeviceTaintRule, now: Time) -> Condition | None:
    """The condition EvictionPolicyFailed that a rule should have; None if there is nothing new to say about it."""
    known = find_condition(rule.status.conditions, POLICY_FAILED)
    unasked = planner.unasked(rule)
    if unasked is None and known is None:
        return None
    said = ("False", REASON_ASKED, "No pod is held by a policy that fails.")
    text = said if unasked is None else ("True", REASON_UNASKED, str(unasked))
    return _news(known, _condition(rule, POLICY_FAILED, text, now))


def plan_conditions(planner: DevicePlanner, rule: DeviceTaintRule, now: Time) -> list[Condition]:
    """What is to be said about a rule that its status does not say."""
    plans = (plan_condition, plan_held_condition, plan_policy_condition)
    return [news for plan in plans if (news := plan(planner, rule, now)) is not None]


def describe_preview(found: Preview) -> str:
    """What would happen, in one line."""
    return (
        f"{_count(found.published, 'published device')} selected. "
        f"{_count(len(found.allocated), 'allocated device')} selected. "
        f"{_count(len(found.pods), 'pod')} would be evicted in {_namespaces(found.namespaces)} "
        "if the effect was NoExecute. Changing the spec of the rule updates these numbers."
    )


def _condition(rule: DeviceTaintRule, type_: str, text: tuple[str, str, str], now: Time) -> Condition:
    status, reason, message = text
    return Condition(
        type=type_,
        status=status,
        reason=reason,
        message=message,
        observed_generation=rule.metadata.generation,
        last_transition_time=now,
    )


def _news(known: Condition | None, condition: Condition) -> Condition | None:
    """The condition, unless the known one says the same. The time is when the status changed, not the message."""
    if known is None or known.status != condition.status:
        return condition
    kept = replace(condition, last_transition_time=known.last_transition_time)
    return None if kept == known else kept


def _exceptions(progress: Progress, hold: Hold | None) -> str:
    """What keeps pods from leaving, if anything does."""
    said = "" if hold is None else " They are held until somebody confirms (see EvictionHeld)."
    if progress.waiting:
        said += f" {_count(progress.waiting, 'pod')} put off by the eviction policy."
    if progress.kept:
        said += f" {_count(progress.kept, 'pod')} kept by the eviction policy."
    return said


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
