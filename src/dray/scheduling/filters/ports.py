"""Host ports: one pod each."""

from __future__ import annotations

from collections.abc import Iterable

from dray.scheduling.node_info import NodeInfo
from dray.scheduling.pod_info import PodInfo, Port
from dray.scheduling.reasons import PortsTaken

ANY_ADDRESS = "0.0.0.0"
_TAKEN = (PortsTaken(),)


def check(pod: PodInfo, node: NodeInfo) -> tuple[PortsTaken, ...]:
    """Whether all ports of the pod are free on the node."""
    return _TAKEN if any(is_taken(port, node.ports) for port in pod.ports) else ()


def is_taken(wanted: Port, taken: Iterable[Port]) -> bool:
    """Whether a port is among those that others have, at its address or at all of them."""
    address, protocol, number = wanted
    return any(
        ((protocol, number) == (other[1], other[2]) and ANY_ADDRESS in (address, other[0])) or wanted == other
        for other in taken
    )
