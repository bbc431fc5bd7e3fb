"""No pod and no claim is lost: whatever goes has been let go by somebody who had a reason."""

from __future__ import annotations

from collections import defaultdict
from typing import Final, NamedTuple

from dray.api.generated.core import Node, Pod, Taint
from fault_simulation.device_evictions import LAG
from fault_simulation.ledger import CLAIMS, NODES, PODS, Change, Ledger, is_finished
from fault_simulation.network import Request
from fault_simulation.preemptions import SCHEDULER, Preemptions
from fault_simulation.processes import KUBELETS

NODE_TAINTS: Final = "taint-eviction-controller"
CLEANER: Final = "pod-garbage-collector"
OWNERS: Final = "generic-garbage-collector"
REPLICAS: Final = "replicaset-controller"
DEVICES: Final = "device-taint-eviction-controller"
MISSING_NODE: Final = 40.0


class _Tainted(NamedTuple):
    """A NoExecute taint that was on a node for some time."""

    taint: Taint
    since: float
    until: float = float("inf")


class Custody:
    """Judges every request to delete a pod or a claim when it reaches the server."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._preemptions = Preemptions(ledger)
        self._tainted: dict[str, list[_Tainted]] = defaultdict(list)
        self._bound: dict[str, float] = {}
        self._gone_nodes: dict[str, float] = {}
        self._let_go: set[str] = set()
        """Uids of what somebody asked to delete."""
        ledger.on_change.append(self._follow)

    def on_arrival(self, request: Request) -> None:
        """A request to delete something reaches the server."""
        if request.verb != "delete" or request.kind.resource not in (PODS, CLAIMS):
            return
        found = self._ledger.find(request.kind.resource, request.namespace, request.name)
        guard = request.content.preconditions if request.content is not None else None
        if found is None or (guard is not None and guard.uid and guard.uid != found.metadata.uid):
            return
        self._let_go.add(found.metadata.uid)
        if request.kind.resource == PODS and not self._may_delete(request, found):
            self._ledger.blame(f"{request.account} deletes pod {found.metadata.name} without a reason")

    def _may_delete(self, request: Request, pod: Pod) -> bool:
        if request.process == KUBELETS:
            return pod.metadata.deletion_timestamp is not None or not pod.spec.node_name
        if request.account == NODE_TAINTS:
            return self._is_driven_off(pod)
        if request.account == CLEANER:
            return self._is_stranded(pod)
        if request.account == SCHEDULER:
            return self._preemptions.may_go(pod)
        if request.account == OWNERS:
            return bool(pod.metadata.owner_references)
        return request.account in ("admin", REPLICAS, DEVICES)

    def _is_driven_off(self, pod: Pod) -> bool:
        """Whether a taint of its node was not tolerated, or was for as long as the pod says."""
        now = self._ledger.clock.monotonic()
        bound = self._bound.get(pod.metadata.uid, now)
        for tainted in self._tainted[pod.spec.node_name]:
            seconds = _patience(pod, tainted.taint)
            if tainted.until >= now - LAG and now >= max(tainted.since, bound) + seconds:
                return True
        return False

    def _is_stranded(self, pod: Pod) -> bool:
        """Whether nobody else can remove the pod."""
        if is_finished(pod) or not pod.spec.node_name:
            return True
        node: Node | None = self._ledger.find(NODES, "", pod.spec.node_name)
        gone_since = self._gone_nodes.get(pod.spec.node_name)
        if node is None or (gone_since is not None and self._ledger.clock.monotonic() - gone_since >= MISSING_NODE):
            return True
        return any(taint.taint.key.endswith("out-of-service") for taint in self._tainted[pod.spec.node_name])

    def _follow(self, change: Change) -> None:
        now = self._ledger.clock.monotonic()
        if change.resource == NODES:
            self._follow_node(change.place[1], change.new, now)
        elif change.resource in (PODS, CLAIMS) and change.new is None:
            if change.old.metadata.uid not in self._let_go:
                self._ledger.blame(f"{change.resource} {change.place[1]} is lost: nobody deleted it")
        elif change.resource == PODS and change.new.spec.node_name:
            self._bound.setdefault(change.new.metadata.uid, now)

    def _follow_node(self, name: str, node: Node | None, now: float) -> None:
        if node is None:
            self._gone_nodes[name] = now
        taints = [taint for taint in node.spec.taints if taint.effect == "NoExecute"] if node is not None else []
        keys = {taint.key for taint in taints}
        known = self._tainted[name]
        for index, tainted in enumerate(known):
            if tainted.until == float("inf") and tainted.taint.key not in keys:
                known[index] = tainted._replace(until=now)
        current = {tainted.taint.key for tainted in known if tainted.until == float("inf")}
        known.extend(_Tainted(taint, now) for taint in taints if taint.key not in current)


def _patience(pod: Pod, taint: Taint) -> float:
    """For how many seconds a pod tolerates a taint of its node."""
    seconds = [
        float("inf") if each.toleration_seconds is None else max(each.toleration_seconds, 0.0)
        for each in pod.spec.tolerations
        if each.key in ("", taint.key) and each.effect in ("", taint.effect)
    ]
    return min(seconds, default=0.0)
