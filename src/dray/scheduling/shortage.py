"""What a node lacks of what a pod asks for, in numbers and names: for explanations, not for decisions."""

from __future__ import annotations

from dray.api.quantity import ZERO, Quantity
from dray.scheduling.filters.ports import is_taken
from dray.scheduling.filters.resources import ONE, PODS
from dray.scheduling.node_info import NodeInfo
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.reasons import Insufficient, NodeReason, NotAffine, PortsTaken, TooManyPods

_FEW = 3


def tell_shortage(pod: PodInfo, node: NodeInfo, reason: NodeReason) -> str:
    """`needs 4, 1 of 8 left`, `8080/TCP is taken by ml/web`; empty for other reasons."""
    match reason:
        case Insufficient(resource):
            there = node.node.status.allocatable.get(resource)
            if there is None:
                return f"needs {_amount(pod.requests[resource], ZERO)}, and it has none"
            left = max(there.nanos - node.used.get(resource, 0), 0)
            return f"needs {_amount(pod.requests[resource], there)}, {_amount(left, there)} of {there} left"
        case TooManyPods():
            return f"{len(node.pods)} of {(node.allocatable or {}).get(PODS, 0) // ONE} are there"
        case PortsTaken():
            taken = sorted({f"{port[2]}/{port[1]}" for port in pod.ports if is_taken(port, node.ports)})
            users = sorted(
                str(one.name) for one in node.pods.values() if any(is_taken(p, one.ports) for p in pod.ports)
            )
            more = f" and {len(users) - _FEW} more" if len(users) > _FEW else ""
            return f"{', '.join(taken)} taken by {', '.join(users[:_FEW])}{more}"
        case NotAffine():
            labels = node.node.metadata.labels
            wanted = pod.pod.spec.node_selector.items()
            return ", ".join(f"wants {key}={value}" for key, value in wanted if labels.get(key) != value)
    return ""


def _amount(nanos: int, like: Quantity) -> Quantity:
    """In the notation of another."""
    return Quantity(nanos, like.format, -9)
