"""Cordoned nodes take those only who tolerate that."""

from __future__ import annotations

from typing import Final

from dray.api.generated.core import Taint
from dray.api.nodes import UNSCHEDULABLE
from dray.api.toleration import is_tolerated
from dray.scheduling.node_info import NodeInfo
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.reasons import Unschedulable

CORDONED: Final = Taint(key=UNSCHEDULABLE, effect="NoSchedule")
"""What a cordoned node counts as."""
_UNSCHEDULABLE = (Unschedulable(),)


def check(pod: PodInfo, node: NodeInfo) -> tuple[Unschedulable, ...]:
    """Whether the node takes new pods."""
    if node.node.spec.unschedulable and not is_tolerated(pod.pod.spec.tolerations, CORDONED):
        return _UNSCHEDULABLE
    return ()
