"""Nodes as the scheduler sees them: what they offer, what is taken, and which pods they suit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dray.api.generated.core import Node, Taint, Toleration
from dray.api.node_match import NodeSelectorError, matches_lazily
from dray.scheduler.pod_info import PodInfo, Resources, amounts

PODS = "pods"
ONE = 10**9
SUITS = ""


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether a pod's toleration matches a node's taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


class NodeInfo:
    """One node, with the pods that are on it or about to be."""

    __slots__ = ("allocatable", "node", "pods", "ports", "used")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.allocatable: Resources = amounts(node.status.allocatable)
        self.used: Resources = {}
        self.ports: dict[tuple[str, str, int], int] = {}
        self.pods: dict[str, PodInfo] = {}

    def update(self, node: Node) -> None:
        """The node has changed; its pods have not."""
        self.node = node
        self.allocatable = amounts(node.status.allocatable)

    def add(self, pod: PodInfo) -> None:
        """A pod is here, or is about to be."""
        uid = pod.pod.metadata.uid
        if uid in self.pods:
            self.remove(uid)
        self.pods[uid] = pod
        for name, amount in pod.requests.items():
            self.used[name] = self.used.get(name, 0) + amount
        for port in pod.ports:
            self.ports[port] = self.ports.get(port, 0) + 1

    def remove(self, uid: str) -> None:
        """A pod is gone."""
        pod = self.pods.pop(uid, None)
        if pod is None:
            return
        for name, amount in pod.requests.items():
            self.used[name] -= amount
        for port in pod.ports:
            self.ports[port] -= 1
            if not self.ports[port]:
                del self.ports[port]

    def room_for(self, pod: PodInfo) -> str:
        """Why the pod does not fit beside those that are here; SUITS if it does."""
        limit = self.allocatable.get(PODS)
        if limit is not None and (len(self.pods) + 1) * ONE > limit:
            return "too many pods"
        for name, amount in pod.requests.items():
            if amount and self.used.get(name, 0) + amount > self.allocatable.get(name, 0):
                return f"insufficient {name}"
        if pod.ports and any(self._port_taken(port) for port in pod.ports):
            return "node(s) didn't have free ports for the requested pod ports"
        return SUITS

    def _port_taken(self, wanted: tuple[str, str, int]) -> bool:
        address, protocol, number = wanted
        return any(
            ((protocol, number) == (other[1], other[2]) and "0.0.0.0" in (address, other[0])) or wanted == other
            for other in self.ports
        )

    def suits(self, pod: PodInfo) -> str:
        """Why the node is not for this pod, whatever else is on it; SUITS if it is."""
        spec = pod.pod.spec
        node = self.node
        if spec.node_name and spec.node_name != node.metadata.name:
            return "node(s) didn't match the requested node name"
        if node.spec.unschedulable and not _tolerates_unschedulable(spec.tolerations):
            return "node(s) were unschedulable"
        labels = node.metadata.labels
        if any(labels.get(key) != value for key, value in spec.node_selector.items()):
            return "node(s) didn't match Pod's node affinity/selector"
        if not self._affine(pod):
            return "node(s) didn't match Pod's node affinity/selector"
        for taint in node.spec.taints:
            if taint.effect in ("NoSchedule", "NoExecute") and not _tolerated(taint, spec.tolerations):
                value = f": {taint.value}" if taint.value else ""
                return f"node(s) had untolerated taint {{{taint.key}{value}}}"
        return SUITS

    def _affine(self, pod: PodInfo) -> bool:
        affinity = pod.pod.spec.affinity
        if affinity is None or affinity.node_affinity is None:
            return True
        required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
        if required is None:
            return True
        try:
            return matches_lazily(required, self.node.metadata.name, self.node.metadata.labels)
        except NodeSelectorError:
            return False

    def score(self, pod: PodInfo) -> float:
        """How good a choice the node is: emptier is better, a taint that is only disliked is worse."""
        spec = pod.pod.spec
        penalty = sum(
            taint.effect == "PreferNoSchedule" and not _tolerated(taint, spec.tolerations)
            for taint in self.node.spec.taints
        )
        shares = [
            1 - (self.used.get(name, 0) + pod.requests.get(name, 0)) / capacity
            for name in ("cpu", "memory")
            if (capacity := self.allocatable.get(name))
        ]
        emptiness = sum(shares) / len(shares) if shares else 0.0
        return emptiness + self._preference(pod) - 10 * penalty

    def _preference(self, pod: PodInfo) -> float:
        affinity = pod.pod.spec.affinity
        if affinity is None or affinity.node_affinity is None:
            return 0.0
        weight = 0
        for term in affinity.node_affinity.preferred_during_scheduling_ignored_during_execution:
            try:
                # A preference is one term; a selector is a list of them.
                wanted = term.preference
                if _matches_term(wanted, self.node):
                    weight += term.weight
            except NodeSelectorError:
                continue
        return weight / 100


def _matches_term(term: object, node: Node) -> bool:
    from dray.api.node_selector import NodeSelector, NodeSelectorTerm

    assert isinstance(term, NodeSelectorTerm)
    return matches_lazily(NodeSelector(node_selector_terms=(term,)), node.metadata.name, node.metadata.labels)


def _tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


def _tolerates_unschedulable(tolerations: Iterable[Toleration]) -> bool:
    return _tolerated(Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule"), tolerations)


class NodeTable:
    """All nodes, and what was found out about which pods they suit.

    Whether a node suits a pod depends on the pod's placement key and the node alone, so it is found out once for all
    pods of a kind, and forgotten when the node changes.
    """

    MAX_KEYS = 512

    def __init__(self) -> None:
        self._nodes: dict[str, NodeInfo] = {}
        self._waiting: dict[str, dict[str, PodInfo]] = {}
        self._verdicts: dict[bytes, dict[str, str]] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[NodeInfo]:
        return iter(self._nodes.values())

    def names(self) -> list[str]:
        """The names of all nodes."""
        return list(self._nodes)

    def get(self, name: str) -> NodeInfo | None:
        """A node, None if it is not there."""
        return self._nodes.get(name)

    def set(self, node: Node) -> None:
        """A node is new or has changed."""
        name = node.metadata.name
        info = self._nodes.get(name)
        if info is None:
            info = self._nodes[name] = NodeInfo(node)
            for pod in self._waiting.pop(name, {}).values():
                info.add(pod)
        else:
            info.update(node)
        self._forget(name)

    def remove(self, name: str) -> None:
        """A node is gone; its pods may stay for a while."""
        info = self._nodes.pop(name, None)
        if info is not None and info.pods:
            self._waiting[name] = dict(info.pods)
        self._forget(name)

    def _forget(self, name: str) -> None:
        for verdicts in self._verdicts.values():
            verdicts.pop(name, None)

    def place(self, pod: PodInfo, node: str) -> None:
        """A pod is on a node, or about to be."""
        info = self._nodes.get(node)
        if info is None:
            self._waiting.setdefault(node, {})[pod.pod.metadata.uid] = pod
        else:
            info.add(pod)

    def displace(self, uid: str, node: str) -> None:
        """A pod is no longer on a node."""
        info = self._nodes.get(node)
        if info is None:
            self._waiting.get(node, {}).pop(uid, None)
        else:
            info.remove(uid)

    def suits(self, pod: PodInfo, node: NodeInfo) -> str:
        """Why a node is not for a pod; SUITS if it is."""
        verdicts = self._verdicts.get(pod.placement_key)
        if verdicts is None:
            if len(self._verdicts) >= self.MAX_KEYS:
                self._verdicts.pop(next(iter(self._verdicts)))
            verdicts = self._verdicts[pod.placement_key] = {}
        name = node.node.metadata.name
        verdict = verdicts.get(name)
        if verdict is None:
            verdict = verdicts[name] = node.suits(pod)
        return verdict
