"""What is out of service: the rules that taint devices, how far they are, and what they wait for."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dray.api.conditions import find_condition
from dray.api.resource import DeviceTaintRule
from dray.api.resource.rule_annotations import EXPIRES_AT
from dray.api.taints import taint_text
from dray.eviction.rule_condition import EVICTION_HELD, EVICTION_IN_PROGRESS
from dray.views.device import Document


class RuleRow(Document, frozen=True, kw_only=True):
    """A DeviceTaintRule."""

    name: str
    taint: str
    effect: str
    rate: int | None
    devices: int
    since: str | None
    until: str | None
    in_progress: bool
    progress: str
    held: str
    """Why nobody leaves until somebody confirms it; empty if nobody has to."""


def rule_rows(rules: Iterable[DeviceTaintRule], count: Callable[[str], int]) -> list[RuleRow]:
    """All rules, those that evict first; `count` says how many devices a rule selects."""
    rows = [_row(rule, count(rule.metadata.name)) for rule in rules]
    return sorted(rows, key=lambda row: (not row.held, not row.in_progress, row.name))


def _row(rule: DeviceTaintRule, devices: int) -> RuleRow:
    taint = rule.spec.taint
    progress = find_condition(rule.status.conditions, EVICTION_IN_PROGRESS)
    held = find_condition(rule.status.conditions, EVICTION_HELD)
    return RuleRow(
        name=rule.metadata.name,
        taint=taint_text(taint),
        effect=taint.effect,
        rate=taint.evictions_per_second,
        devices=devices,
        since=str(taint.time_added) if taint.time_added else None,
        until=rule.metadata.annotations.get(EXPIRES_AT),
        in_progress=progress is not None and progress.status == "True",
        progress=progress.message if progress is not None else "",
        held=held.message if held is not None and held.status == "True" else "",
    )
