"""Node taints that expire, as an annotation of the node says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dray.api.generated.core import Node, Taint
from dray.api.node_annotations import TAINTS_EXPIRE_AT, rations_without, read_ends, write_entries
from dray.api.resource.rule_annotations import EVICTIONS_PER_SECOND
from dray.api.taints import TaintName, without
from dray.api.times import Time
from dray.eviction.confirmations import CONFIRM_ANNOTATION, confirmations_without
from dray.eviction.drain import undraining


class ExpiryPlan(NamedTuple):
    """What a node should look like now, and when to look again."""

    taints: tuple[Taint, ...]
    annotations: Mapping[str, str | None]
    """Those that are to be other than they are; None if they are to go."""
    removed: tuple[TaintName, ...]
    next: Time | None


def plan(node: Node, now: Time) -> ExpiryPlan:
    """Takes away what has expired, and entries about taints that are gone. Raises TimeError."""
    present = {TaintName.of(taint) for taint in node.spec.taints}
    entries = {name: time for name, time in read_ends(node.metadata.annotations).items() if name in present}
    removed = tuple(sorted(name for name, time in entries.items() if time <= now))
    left = {name: time for name, time in entries.items() if name not in removed}
    taints, has = without(node.spec.taints, removed), node.metadata.annotations
    told = {TAINTS_EXPIRE_AT: write_entries(left)}
    if removed:
        told[EVICTIONS_PER_SECOND] = rations_without(has, removed, taints)
        told |= undraining(has, removed)
        told[CONFIRM_ANNOTATION] = confirmations_without(has, [name.key for name in removed])
    changed = {key: text for key, text in told.items() if text != has.get(key)}
    return ExpiryPlan(taints, changed, removed, min(left.values(), default=None))
