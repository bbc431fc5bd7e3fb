"""Node taints that expire. Taints have no room for a time, so an annotation of the node has it: one entry per taint.

dray.dev/taints-expire-at: maintenance:NoExecute=2026-06-01T14:00:00Z,disk:NoSchedule=2026-06-02T00:00:00Z
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from dray.api.generated.core import Node, Taint
from dray.api.node_annotations import rations_without, write_entries
from dray.api.resource.rule_annotations import EVICTIONS_PER_SECOND
from dray.api.taints import TaintName
from dray.api.times import Time, TimeError
from dray.eviction.confirmations import CONFIRM_ANNOTATION, confirmations_without

TAINTS_EXPIRE_AT: Final = "dray.dev/taints-expire-at"


class ExpiryPlan(NamedTuple):
    """What a node should look like now, and when to look again."""

    taints: tuple[Taint, ...]
    annotations: Mapping[str, str | None]
    """Those that are to be other than they are; None if they are to go."""
    removed: tuple[TaintName, ...]
    next: Time | None


def read(node: Node) -> dict[TaintName, Time]:
    """Which taints of a node expire, and when. Raises TimeError with the entry that is wrong."""
    entries: dict[TaintName, Time] = {}
    for entry in filter(None, node.metadata.annotations.get(TAINTS_EXPIRE_AT, "").split(",")):
        name, equals, text = entry.strip().partition("=")
        key, colon, effect = name.rpartition(":")
        if not (equals and colon and key and effect):
            raise TimeError(f"{entry.strip()!r} is not KEY:EFFECT=TIME")
        entries[TaintName(key, effect)] = Time.parse(text)
    return entries


def plan(node: Node, now: Time) -> ExpiryPlan:
    """Takes away what has expired, and entries about taints that are gone. Raises TimeError."""
    present = {TaintName.of(taint) for taint in node.spec.taints}
    entries = {name: time for name, time in read(node).items() if name in present}
    removed = tuple(sorted(name for name, time in entries.items() if time <= now))
    left = {name: time for name, time in entries.items() if name not in removed}
    taints, has = without(node.spec.taints, removed), node.metadata.annotations
    told = {TAINTS_EXPIRE_AT: write_entries(left)}
    if removed:
        told[EVICTIONS_PER_SECOND] = rations_without(has, removed, taints)
        told[CONFIRM_ANNOTATION] = confirmations_without(has, [name.key for name in removed])
    changed = {key: text for key, text in told.items() if text != has.get(key)}
    return ExpiryPlan(taints, changed, removed, min(left.values(), default=None))


def without(taints: Iterable[Taint], names: Iterable[TaintName]) -> tuple[Taint, ...]:
    """The taints but those of these names."""
    gone = frozenset(names)
    return tuple(taint for taint in taints if TaintName.of(taint) not in gone)
