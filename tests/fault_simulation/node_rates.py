"""How fast pods leave nodes that say how fast they may, judged from what is stored."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from dray.api.generated.core import Node
from dray.process.virtual_loop import LoopClock
from fault_simulation import objects
from fault_simulation.device_evictions import LAG
from fault_simulation.ledger import NODES, Change, Ledger
from fault_simulation.network import Request
from fault_simulation.pace import Pace

ACCOUNT: Final = "taint-eviction-controller"


class NodeRates:
    """All nodes that have a rate share it; it is the only taint with one."""

    def __init__(self, ledger: Ledger, clock: LoopClock, starts: list[float]) -> None:
        self._ledger = ledger
        self._clock = clock
        self._pace = Pace(ACCOUNT, ledger, clock, starts)
        self._past: dict[str, list[tuple[Node, float]]] = defaultdict(list)
        ledger.on_change.append(self._follow)

    def _follow(self, change: Change) -> None:
        if change.resource == NODES and isinstance(change.old, Node):
            self._past[change.place[1]].append((change.old, self._clock.monotonic()))

    def on_sent(self, request: Request) -> None:
        """The controller begins to evict a pod: if nothing but a taint with a rate could be why, the rate must hold."""
        uid = self._pace.begun(request)
        pod = next((one for one in self._ledger.pods if one.metadata.uid == uid), None)
        if pod is None:
            return
        start = self._clock.monotonic() - LAG
        name = pod.spec.node_name
        versions = [node for node, end in self._past[name] if end >= start]
        now = self._ledger.find(NODES, "", name)
        if all(map(_is_rated, [*versions, *([now] if now is not None else [])])):
            self._pace.check(objects.RATE_GROUP, objects.NODE_RATE)


def _is_rated(node: Node) -> bool:
    evicting = {taint.key for taint in node.spec.taints if taint.effect == "NoExecute"}
    return not evicting or (evicting == {objects.MAINTENANCE} and objects.RATE in node.metadata.annotations)
