"""How many pods there is room for, and with what they ask for. Pure.

The scheduler leaves no node with more than it has, but whoever may create pods can name the node themselves: what is
too much then is not run, as with kubelets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dray.api.generated.core import Pod
from dray.api.pods import FAILED
from dray.api.quantity import Quantity
from dray.node.pod_status import End
from dray.scheduling.pod_info import amounts, total_requests

PODS: Final = "pods"
ONE: Final = 10**9
"""As quantities are counted."""
SHOWN: Final = {"cpu": 10**6}
"""In what part of one a resource is told, where that is not one: cpu in thousandths."""


class Room:
    """What a node has, and the pods that take part of it."""

    def __init__(self, capacity: Mapping[str, Quantity]) -> None:
        self._capacity = amounts(dict(capacity))
        self._taken: dict[str, dict[str, int]] = {}
        self._used = dict.fromkeys(self._capacity, 0)

    def enter(self, pod: Pod) -> End | None:
        """Gives a pod its place, which it keeps, larger or smaller; how it ends at once if there is none. One that has
        begun has one.
        """
        uid = pod.metadata.uid
        wanted = {**total_requests(pod.spec), PODS: ONE}
        asked = {name: wanted.get(name, 0) for name in self._capacity}
        if uid not in self._taken and pod.status.start_time is None:
            for name, amount in asked.items():
                if amount and self._used[name] + amount > self._capacity[name]:
                    return self._refused(name, amount)
        self.leave(uid)
        self._taken[uid] = asked
        for name, amount in asked.items():
            self._used[name] += amount
        return None

    def leave(self, uid: str) -> None:
        """A pod, by uid, has ended, or is gone; nothing happens if it had no place."""
        for name, amount in self._taken.pop(uid, {}).items():
            self._used[name] -= amount

    def _refused(self, name: str, amount: int) -> End:
        unit = SHOWN.get(name, ONE)
        requested, used, capacity = (number // unit for number in (amount, self._used[name], self._capacity[name]))
        return End(
            FAILED,
            f"OutOf{name}",
            f"Pod was rejected: Node didn't have enough resource: {name}, requested: {requested}, used: {used}, "
            f"capacity: {capacity}",
        )
