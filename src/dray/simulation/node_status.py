"""What a simulated node says of itself, and the taint that goes once it is ready. Pure."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dray.api.generated.core import Node, NodeCondition
from dray.api.nodes import NOT_READY
from dray.api.times import Time
from dray.simulation import names

_GOOD: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID"),
    ("Ready", "True", "KubeletReady"),
)


def is_running(node: Node) -> bool:
    """Whether a simulated node is switched on and stays."""
    return node.metadata.annotations.get(names.STATE) != names.STOPPED and node.metadata.deletion_timestamp is None


def with_good_conditions(node: Node, now: Time) -> Node:
    """The node reporting that all is well; the same object if it reports that already."""
    known = {condition.type: condition for condition in node.status.conditions}
    if all(name in known and known[name].status == status for name, status, _ in _GOOD):
        return node
    own = []
    for name, status, reason in _GOOD:
        before = known.pop(name, None)
        same = before is not None and before.status == status
        since = before.last_transition_time if same and before is not None else now
        own.append(
            NodeCondition(type=name, status=status, reason=reason, last_heartbeat_time=now, last_transition_time=since)
        )
    return replace(node, status=replace(node.status, conditions=(*own, *known.values())))


def without_not_ready_taint(node: Node) -> Node:
    """The node without the taint that new nodes get; the same object if it has none."""
    left = tuple(taint for taint in node.spec.taints if taint.key != NOT_READY)
    return node if len(left) == len(node.spec.taints) else replace(node, spec=replace(node.spec, taints=left))
