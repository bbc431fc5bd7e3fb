"""The taints that a node's conditions ask for. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dray.api.conditions import READY
from dray.api.generated.core import Node, Taint
from dray.api.nodes import NOT_READY, UNREACHABLE, UNSCHEDULABLE
from dray.api.resource.taint import EFFECT_NO_EXECUTE, EFFECT_NO_SCHEDULE
from dray.api.times import Time
from dray.controllers.node_lifecycle.health import ready_condition

_BY_CONDITION: Final[Mapping[tuple[str, str], str]] = {
    (READY, "False"): NOT_READY,
    (READY, "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
}
_OURS: Final = frozenset(
    [
        *((key, EFFECT_NO_SCHEDULE) for key in (*_BY_CONDITION.values(), UNSCHEDULABLE)),
        (NOT_READY, EFFECT_NO_EXECUTE),
        (UNREACHABLE, EFFECT_NO_EXECUTE),
    ]
)
"""Key and effect of the taints that this controller adds and removes; it leaves all others alone."""


def wanted_no_execute(node: Node) -> str | None:
    """The key of the NoExecute taint that a node's health asks for; None if it is well, or not known yet."""
    condition = ready_condition(node)
    if condition is None or condition.status == "True":
        return None
    return NOT_READY if condition.status == "False" else UNREACHABLE


def has_no_execute(node: Node) -> bool:
    """Whether the node was tainted by this controller."""
    return any(
        taint.effect == EFFECT_NO_EXECUTE and taint.key in (NOT_READY, UNREACHABLE) for taint in node.spec.taints
    )


def plan_taints(node: Node, *, may_execute: bool, now: Time) -> tuple[Taint, ...]:
    """The taints that a node should have. Those that are right stay as they are, with their times.

    `may_execute` tells whether this node may have a NoExecute taint if its health asks for one.
    """
    wanted = {
        (_BY_CONDITION[condition.type, condition.status], EFFECT_NO_SCHEDULE)
        for condition in node.status.conditions
        if (condition.type, condition.status) in _BY_CONDITION
    }
    if node.spec.unschedulable:
        wanted.add((UNSCHEDULABLE, EFFECT_NO_SCHEDULE))
    key = wanted_no_execute(node)
    if key is not None and may_execute:
        wanted.add((key, EFFECT_NO_EXECUTE))
    kept = tuple(
        taint
        for taint in node.spec.taints
        if (taint.key, taint.effect) in wanted or (taint.key, taint.effect) not in _OURS
    )
    new = wanted - {(taint.key, taint.effect) for taint in kept}
    return (*kept, *(Taint(key=key, effect=effect, time_added=now) for key, effect in sorted(new)))
