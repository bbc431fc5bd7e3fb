"""Nodes as the scheduler sees them: what they offer, what is taken, and which pods they suit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dray.api.generated.core import Node, PreferredSchedulingTerm, Taint, Toleration
from dray.api.node_match import NodeSelectorError, matches_lazily
from dray.api.node_selector import NodeSelector, NodeSelectorTerm
from dray.scheduler.pod_info import PodInfo, Resources, amounts

PODS = "pods"
ONE = 10**9
SUITS = ""
NOT_AFFINE = "node(s) didn't match Pod's node affinity/selector"


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether a pod's toleration matches a node's taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


Score = tuple[int, int, float, int]


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

    def room_for(self, pod: PodInfo) -> tuple[str, ...]:
        """Everything that the pod lacks beside those that are here; empty if it fits."""
        if pod.ports and any(self._port_taken(port) for port in pod.ports):
            return ("node(s) didn't have free ports for the requested pod ports",)
        limit = self.allocatable.get(PODS)
        missing = ["Too many pods"] if limit is not None and (len(self.pods) + 1) * ONE > limit else []
        for name, amount in pod.requests.items():
            if amount and self.used.get(name, 0) + amount > self.allocatable.get(name, 0):
                missing.append(f"Insufficient {name}")
        return tuple(missing)

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
        for taint in node.spec.taints:
            if taint.effect in ("NoSchedule", "NoExecute") and not _tolerated(taint, spec.tolerations):
                value = f": {taint.value}" if taint.value else ""
                return f"node(s) had untolerated taint(s) {{{taint.key}{value}}}"
        labels = node.metadata.labels
        if any(labels.get(key) != value for key, value in spec.node_selector.items()) or not self._affine(pod):
            return NOT_AFFINE
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

    def score(self, pod: PodInfo) -> Score:
        """How good a choice the node is, larger is better: what is preferred counts first, then how empty it is.

        Pods that ask for nothing fill a node, too, so that the number of pods decides in the end.
        """
        shares = [
            1 - (self.used.get(name, 0) + pod.requests.get(name, 0)) / capacity
            for name in ("cpu", "memory")
            if (capacity := self.allocatable.get(name))
        ]
        emptiness = sum(shares) / len(shares) if shares else 0.0
        return *self.preference(pod), emptiness, -len(self.pods)

    def preference(self, pod: PodInfo) -> tuple[int, int]:
        """What the node and the pod say about each other: no disliked taints first, then the weight of affinities."""
        disliked = sum(
            taint.effect == "PreferNoSchedule" and not _tolerated(taint, pod.pod.spec.tolerations)
            for taint in self.node.spec.taints
        )
        return -disliked, self._affinity(pod)

    def _affinity(self, pod: PodInfo) -> int:
        weight = 0
        for term in preferred_terms(pod):
            try:
                if self._matches(term.preference):
                    weight += term.weight
            except NodeSelectorError:
                continue
        return weight

    def _matches(self, term: NodeSelectorTerm) -> bool:
        meta = self.node.metadata
        return matches_lazily(NodeSelector(node_selector_terms=(term,)), meta.name, meta.labels)


def preferred_terms(pod: PodInfo) -> tuple[PreferredSchedulingTerm, ...]:
    """What a pod would like of its node."""
    affinity = pod.pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return ()
    return affinity.node_affinity.preferred_during_scheduling_ignored_during_execution


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
        self._disliked: set[str] = set()

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[NodeInfo]:
        return iter(self._nodes.values())

    @property
    def any_disliked(self) -> bool:
        """Whether there is a node that pods should avoid if they can."""
        return bool(self._disliked)

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
        if any(taint.effect == "PreferNoSchedule" for taint in node.spec.taints):
            self._disliked.add(name)
        else:
            self._disliked.discard(name)
        self._forget(name)

    def remove(self, name: str) -> None:
        """A node is gone; its pods may stay for a while."""
        info = self._nodes.pop(name, None)
        if info is not None and info.pods:
            self._waiting[name] = dict(info.pods)
        self._disliked.discard(name)
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

    def refuses(self, pod: PodInfo, node: NodeInfo) -> tuple[str, ...]:
        """Why a pod cannot run on a node, devices aside: the node is not for it, or lacks room. Empty if it can."""
        verdict = self.suits(pod, node)
        return (verdict,) if verdict else node.room_for(pod)

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
