"""DeviceTaintRule: a taint, and which devices get it (KEP-5055)."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dray.api.resource import DeviceTaintRule, DeviceTaintSelector
from dray.api.resource.rule_annotations import annotation_problems
from dray.api.resource.taint import RULE_CONDITIONS
from dray.api.times import Time
from dray.validation import check
from dray.validation.conditions import validate_conditions
from dray.validation.context import Context, Errors
from dray.validation.device_criteria import validate_criteria
from dray.validation.device_taints import timed, validate_taint
from dray.validation.rules import Rules


def _default(obj: DeviceTaintRule, now: Time) -> DeviceTaintRule:
    """The taint gets the time at which it was added (5055-15, 5055-40)."""
    if obj.spec.taint.time_added is not None:
        return obj
    return replace(obj, spec=replace(obj.spec, taint=timed((obj.spec.taint,), now)[0]))


def _change(new: DeviceTaintRule, old: DeviceTaintRule | None, ctx: Context) -> DeviceTaintRule:
    """A changed effect starts anew, so that tolerations last as long as they say (5055-150, SVS-09)."""
    if old is None:
        return new
    taint, before = new.spec.taint, old.spec.taint
    if taint.effect == before.effect or taint.time_added != before.time_added:
        return new
    return replace(new, spec=replace(new.spec, taint=replace(taint, time_added=ctx.now)))


def _check_status(errors: Errors, new: DeviceTaintRule, _old: DeviceTaintRule, _ctx: Context) -> None:
    """At most 8 conditions, each type once (5055-34)."""
    validate_conditions(errors, new.status.conditions, "status.conditions")
    check.fits(errors, "status.conditions", new.status.conditions, RULE_CONDITIONS)


def _check(errors: Errors, new: DeviceTaintRule, old: DeviceTaintRule | None, _ctx: Context) -> None:
    if new.spec.device_selector is not None:
        before = old.spec.device_selector if old is not None else None
        validate_criteria(errors, new.spec.device_selector, before, "spec.deviceSelector")
    validate_taint(errors, new.spec.taint, "spec.taint", old=old.spec.taint if old is not None else None)


def _warnings(obj: DeviceTaintRule) -> list[str]:
    """An empty selector takes every device (5055-67), which is rarely what was meant."""
    warnings = annotation_problems(obj)
    if obj.spec.device_selector == DeviceTaintSelector():
        warnings.append("spec.deviceSelector: empty, so the rule selects every device in the cluster")
    return warnings


RULES: Final = {
    "DeviceTaintRule": Rules(
        namespaced=False,
        has_generation=True,
        has_status=True,
        default=_default,
        change=_change,
        check=_check,
        check_status=_check_status,
        warnings=_warnings,
    )
}
