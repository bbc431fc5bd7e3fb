"""When a node was last heard of, and what its conditions must say if that is too long ago. Pure."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from dray.api.conditions import READY, find_condition
from dray.api.generated.coordination import Lease
from dray.api.generated.core import Node, NodeCondition
from dray.api.times import MicroTime, Time
from dray.controllers.settings import NodeLifecycleSettings

HEARD_OF = (READY, "MemoryPressure", "DiskPressure", "PIDPressure")
"""Conditions that a node itself reports. NetworkUnavailable is somebody else's."""


class Sign(NamedTuple):
    """The last sign of life, and when (by a clock that never jumps) it was seen here.

    Clocks of nodes are not compared with ours: what counts is that what they say changes.
    """

    heartbeat: Time | None
    renewed: MicroTime | None
    seen: float


def ready_condition(node: Node) -> NodeCondition | None:
    """What the node says of itself, if anything."""
    return find_condition(node.status.conditions, READY)


def is_ready(node: Node) -> bool:
    """Whether the node is known to work."""
    condition = ready_condition(node)
    return condition is not None and condition.status == "True"


def is_unknown(node: Node) -> bool:
    """Whether the node has not been heard of for so long that nobody knows how it is."""
    condition = ready_condition(node)
    return condition is not None and condition.status == "Unknown"


def observe(before: Sign | None, node: Node, lease: Lease | None, now: float, tick: float) -> Sign:
    """The last sign of life, given the one known before. `now` is wall time."""
    condition = ready_condition(node)
    heartbeat = condition.last_heartbeat_time if condition is not None else None
    renewed = lease.spec.renew_time if lease is not None else None
    if before is None:
        if condition is None and renewed is None:
            return Sign(None, None, tick - _age(node, now))
        return Sign(heartbeat, renewed, tick)
    was_renewed = renewed is not None and (before.renewed is None or renewed > before.renewed)
    # Our own verdict leaves the heartbeat as it is, and so is no sign of life.
    if was_renewed or (heartbeat is not None and heartbeat != before.heartbeat):
        return Sign(heartbeat, renewed or before.renewed, tick)
    return before


def is_silent(sign: Sign, node: Node, tick: float, settings: NodeLifecycleSettings) -> bool:
    """Whether nothing was heard of a node for too long."""
    has_status = ready_condition(node) is not None
    grace = settings.grace_period if has_status else settings.startup_grace_period
    return tick > sign.seen + grace


def silenced(node: Node, now: Time) -> tuple[NodeCondition, ...]:
    """The conditions of a node that is not heard of: unknown, whatever they were."""
    known = {condition.type for condition in node.status.conditions}
    missing = tuple(
        NodeCondition(
            type=kind,
            status="Unknown",
            reason="NodeStatusNeverUpdated",
            message="Kubelet never posted node status.",
            last_heartbeat_time=node.metadata.creation_timestamp,
            last_transition_time=now,
        )
        for kind in HEARD_OF
        if kind not in known
    )
    return (*(_silenced(condition, now) for condition in node.status.conditions), *missing)


def _silenced(condition: NodeCondition, now: Time) -> NodeCondition:
    if condition.type not in HEARD_OF or condition.status == "Unknown":
        return condition
    return replace(
        condition,
        status="Unknown",
        reason="NodeStatusUnknown",
        message="Kubelet stopped posting node status.",
        last_transition_time=now,
    )


def _age(node: Node, now: float) -> float:
    created = node.metadata.creation_timestamp
    return max(now - created.datetime().timestamp(), 0.0) if created is not None else 0.0
