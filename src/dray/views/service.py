"""What is out of service: the rules that taint devices, how far they are, and what they wait for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from dray.allocator import Inventory
from dray.api.conditions import find_condition
from dray.api.resource import DeviceTaintRule
from dray.api.resource.rule_annotations import EXPIRES_AT
from dray.api.taints import taint_text
from dray.eviction.confirmations import is_confirmed
from dray.eviction.rule_condition import EVICTION_HELD, EVICTION_IN_PROGRESS
from dray.tracker.view import EffectiveDevice
from dray.views.device import Document


class RuleRow(Document, frozen=True, kw_only=True):
    """A DeviceTaintRule."""

    name: str
    taint: str
    effect: str
    rate: int | None
    devices: int
    in_use: int
    """How many of them claims hold now: what conditions tell may be seconds old."""
    since: str | None
    until: str | None
    in_progress: bool
    progress: str
    held: str
    """Why nobody leaves until somebody confirms it; empty if nobody has to."""


class Reach(NamedTuple):
    """The devices of a rule in numbers."""

    devices: int
    in_use: int

    @classmethod
    def of(cls, devices: Sequence[EffectiveDevice], inventory: Inventory) -> Reach:
        """Devices that a rule selects."""
        return cls(len(devices), sum(inventory.holding(one.id) is not None for one in devices))


def rule_rows(rules: Iterable[DeviceTaintRule], reach: Callable[[str], Reach]) -> list[RuleRow]:
    """All rules, those that evict first; `reach` says what a rule of some name selects."""
    rows = [_row(rule, reach(rule.metadata.name)) for rule in rules]
    return sorted(rows, key=lambda row: (not row.held, not row.in_progress, row.name))


def _row(rule: DeviceTaintRule, reach: Reach) -> RuleRow:
    taint = rule.spec.taint
    progress = find_condition(rule.status.conditions, EVICTION_IN_PROGRESS)
    held = find_condition(rule.status.conditions, EVICTION_HELD)
    is_held = held is not None and held.status == "True"
    was_confirmed = is_held and is_confirmed(rule)
    told = progress.message if progress is not None else ""
    return RuleRow(
        name=rule.metadata.name,
        taint=taint_text(taint),
        effect=taint.effect,
        rate=taint.evictions_per_second,
        devices=reach.devices,
        in_use=reach.in_use,
        since=str(taint.time_added) if taint.time_added else None,
        until=rule.metadata.annotations.get(EXPIRES_AT),
        in_progress=progress is not None and progress.status == "True",
        progress="Confirmed: its pods leave." if was_confirmed else told,
        held=held.message if held is not None and is_held and not was_confirmed else "",
    )
