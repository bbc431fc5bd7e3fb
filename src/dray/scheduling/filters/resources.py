"""What is left on the node: CPU, memory, extended resources, and the number of pods."""

from __future__ import annotations

from dray.api.text_memory import remember_texts
from dray.scheduling.node_info import NodeInfo
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.reasons import Insufficient, InsufficientExtended, NodeReason, TooManyPods

PODS = "pods"
ONE = 10**9

_TOO_MANY = TooManyPods()
_insufficient = remember_texts(1024)(Insufficient)
_insufficient_extended = remember_texts(1024)(InsufficientExtended)


def check(pod: PodInfo, node: NodeInfo) -> tuple[NodeReason, ...]:
    """Everything that the pod lacks beside those that are on the node."""
    if node.has_room_for is pod.requests:
        return ()
    allocatable, used = node.allocatable, node.used
    if allocatable is None:
        return ()
    limit = allocatable.get(PODS)
    missing: list[NodeReason] | None = None
    if limit is not None and (len(node.pods) + 1) * ONE > limit:
        missing = [_TOO_MANY]
    for name, amount in pod.requests.items():
        if amount and used.get(name, 0) + amount > allocatable.get(name, 0):
            if pod.extended and name in pod.extended:
                if not pod.are_devices(name, allocatable):
                    missing = [*(missing or ()), _insufficient_extended(name)]
            else:
                missing = [*(missing or ()), _insufficient(name)]
    if missing is not None:
        return tuple(missing)
    if not pod.extended:  # whether those are devices depends on classes, too
        node.has_room_for = pod.requests
    return ()
