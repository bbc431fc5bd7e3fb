"""All nodes, and what was found out about which pods they suit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from dray.allocator.change_log import ChangeLog
from dray.api.extended_resources import ClassesByResource, may_be_devices
from dray.api.generated.core import Node
from dray.scheduling import filters
from dray.scheduling.candidates import narrow
from dray.scheduling.filters.inter_pod_affinity import CompanyCheck
from dray.scheduling.filters.topology_spread import SpreadCheck
from dray.scheduling.filters.volumes import VolumeCheck
from dray.scheduling.node_info import NodeInfo
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.reasons import NodeReason
from dray.scheduling.topology import Topology
from dray.scheduling.volumes import Volumes

Refusal = tuple[NodeReason, ...]
Refusals = Mapping[str, Refusal]
"""By node."""

NO_REFUSALS: Final[Refusals] = MappingProxyType({})


class NodeTable:
    """All nodes, and what was found out about which pods they suit.

    Whether a node suits a pod depends on the pod's placement key and the node alone, so it is found out once for all
    pods of a kind, and forgotten when the node changes.
    """

    MAX_KEYS = 512
    MAX_VERDICTS = 1_000_000
    """Of all kinds of pods on all nodes together: about 100 MiB."""
    MAX_KEY_BYTES = 8 << 20

    def __init__(self) -> None:
        self._nodes: dict[str, NodeInfo] = {}
        self._is_in_order = True
        self.topology = Topology(self._nodes)
        self.volumes = Volumes()
        self._waiting: dict[str, dict[str, PodInfo]] = {}
        self._verdicts: dict[bytes, Verdicts] = {}
        self._disliked: set[str] = set()
        self.classes = ClassesByResource()
        """Which device classes stand for extended resources."""
        self.changes: ChangeLog[str] = ChangeLog()
        """Names of nodes that came, changed or went, or to which pods came or from which they went."""
        self._plugins: dict[str, set[str]] = {}
        """Which nodes have a device plugin for an extended resource."""

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[NodeInfo]:
        """By name: which of several equally good nodes is taken does not depend on which of them came first."""
        if not self._is_in_order:
            ordered = sorted(self._nodes.items())
            self._nodes.clear()
            self._nodes.update(ordered)
            self._is_in_order = True
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

    def set(self, node: Node, *, is_known: bool = True) -> None:
        """A node is new or has changed. One of which only the name is known has room for every pod."""
        name = node.metadata.name
        info = self._nodes.get(name)
        if info is None:
            self._is_in_order = self._is_in_order and name > next(reversed(self._nodes), "")
            info = self._nodes[name] = NodeInfo(node, is_known=is_known)
            for pod in self._waiting.pop(name, {}).values():
                info.add(pod)
            self.topology.add_node(info)
        elif (info.node.metadata.labels, info.node.spec.taints) == (node.metadata.labels, node.spec.taints):
            info.update(node, is_known=is_known)
        else:
            self.topology.remove_node(info)
            info.update(node, is_known=is_known)
            self.topology.add_node(info)
        if any(taint.effect == "PreferNoSchedule" for taint in node.spec.taints):
            self._disliked.add(name)
        else:
            self._disliked.discard(name)
        self._count_plugins(info)
        self._forget(name)

    def remove(self, name: str) -> None:
        """A node is gone; its pods may stay for a while."""
        info = self._nodes.pop(name, None)
        if info is not None:
            self.topology.remove_node(info)
            if info.pods:
                self._waiting[name] = dict(info.pods)
            self._forget_plugins(name)
        self._disliked.discard(name)
        self._forget(name)

    def _forget(self, name: str) -> None:
        self.changes.append(name)
        for verdicts in self._verdicts.values():
            verdicts.by_node.pop(name, None)

    def _count_plugins(self, info: NodeInfo) -> None:
        has = {name for name, amount in (info.allocatable or {}).items() if amount and may_be_devices(name)}
        if self._plugins:
            self._forget_plugins(info.name)
        for resource in has:
            self._plugins.setdefault(resource, set()).add(info.name)

    def _forget_plugins(self, node: str) -> None:
        for resource, nodes in list(self._plugins.items()):
            nodes.discard(node)
            if not nodes:
                del self._plugins[resource]

    def with_plugins(self, resources: Iterable[str]) -> frozenset[str]:
        """The nodes that have a device plugin for one of these resources."""
        return frozenset().union(*(self._plugins.get(resource, ()) for resource in resources))

    def with_classes(self, pod: PodInfo) -> PodInfo:
        """The pod, and for which of its extended resources a device class stands."""
        if not pod.extended:
            return pod
        backed = frozenset(name for name in pod.extended if self.classes.get(name) is not None)
        return pod if backed == pod.backed else replace(pod, backed=backed)

    def place(self, pod: PodInfo, node: str) -> None:
        """A pod is on a node, or about to be."""
        self.volumes.use(pod)
        info = self._nodes.get(node)
        if info is None:
            self._waiting.setdefault(node, {})[pod.pod.metadata.uid] = pod
        else:
            known = info.pods.get(pod.pod.metadata.uid)
            if known is not None:
                self.topology.add_pod(known, info, -1)
            info.add(pod)
            self.changes.append(node)
            self.topology.add_pod(pod, info)

    def displace(self, uid: str, node: str) -> None:
        """A pod is no longer on a node."""
        self.volumes.release(uid)
        info = self._nodes.get(node)
        if info is None:
            waiting = self._waiting.get(node, {})
            waiting.pop(uid, None)
            if not waiting:
                self._waiting.pop(node, None)
        elif uid in info.pods:
            self.topology.add_pod(info.pods[uid], info, -1)
            info.remove(uid)
            self.changes.append(node)

    def refused_by_company(self, pod: PodInfo) -> Refusals:
        """What nodes have against a pod whose place depends on who is there, by those who are there now."""
        if pod.terms is None or not (pod.terms.spread or pod.terms.affinity):
            return NO_REFUSALS
        spread, company = SpreadCheck(pod, self.topology), CompanyCheck(pod, self.topology)
        judged = ((node.name, spread.check(pod, node) or company.check(pod, node)) for node in self)
        return {name: refusal for name, refusal in judged if refusal}

    def filter(self, pod: PodInfo, refused: Refusals = NO_REFUSALS) -> NodeFilter:
        """What nodes have against a pod; some are `refused` already."""
        verdicts = self._verdicts.get(pod.placement_key)
        if verdicts is None:
            self._make_room(len(pod.placement_key))
            verdicts = self._verdicts[pod.placement_key] = Verdicts()
        found = NodeFilter(self.with_classes(pod), verdicts, self.topology, self.volumes)
        if refused:
            found.also(lambda _pod, node: refused.get(node.name, ()))
        return found

    def _make_room(self, key_bytes: int) -> None:
        """Forgets the oldest verdicts, so that one more kind of pods can be judged on all nodes."""
        known = len(self._nodes) + sum(len(verdicts.by_node) for verdicts in self._verdicts.values())
        held = key_bytes + sum(map(len, self._verdicts))
        while self._verdicts and (
            len(self._verdicts) >= self.MAX_KEYS or known > self.MAX_VERDICTS or held > self.MAX_KEY_BYTES
        ):
            oldest = next(iter(self._verdicts))
            known -= len(self._verdicts.pop(oldest).by_node)
            held -= len(oldest)


class Verdicts:
    """What nodes have against the pods of a kind, as far as it is known."""

    __slots__ = ("by_node", "takes_long")

    def __init__(self) -> None:
        self.by_node: dict[str, Refusal] = {}
        self.takes_long = False
        """Whether there was a decision that had no time to judge all the nodes that it came to."""


class NodeFilter:
    """What nodes have against one pod, devices aside. Of use until nodes or pods change."""

    __slots__ = ("_all", "_checks", "_company", "_pod", "_spread", "_topology", "_verdicts", "judged")

    def __init__(self, pod: PodInfo, verdicts: Verdicts, topology: Topology, volumes: Volumes) -> None:
        """`verdicts` holds what is known already, and gets what is found out."""
        self._pod = pod
        self._verdicts = verdicts.by_node
        self._all = verdicts
        self.judged = 0
        """How many nodes were judged of which nothing was known."""
        self._topology = topology
        self._checks = filters.of_its_pods(pod)
        self._company: CompanyCheck | None = None
        self._spread: SpreadCheck | None = None
        if pod.volume_claims:
            with_volumes = VolumeCheck(pod, volumes)
            self._checks = (*self._checks, with_volumes.check) if with_volumes.is_needed else self._checks
        if pod.terms is not None or topology.keeps_any_away:
            self._spread, self._company = SpreadCheck(pod, topology), CompanyCheck(pod, topology)
            of_others = (self._spread, self._company)
            self._checks = (*self._checks, *(one.check for one in of_others if one.is_needed))

    def also(self, check: Callable[[PodInfo, NodeInfo], Refusal]) -> None:
        """One more that may refuse."""
        self._checks = (*self._checks, check)

    def candidates(self) -> Iterable[NodeInfo] | None:
        """The only nodes that the pod's own terms may leave to it; None if it has none that leave some out."""
        if self._company is None or self._spread is None:
            return None
        return narrow(self._topology, self._company, self._spread)

    def refuses(self, node: NodeInfo) -> Refusal:
        """Why the pod cannot run on a node: it is not for it, or lacks room. Empty if it can."""
        refusal = self._verdicts.get(node.name)
        if refusal is None:
            refusal = self.is_unsuitable(node)
        if refusal:
            return refusal
        for check in self._checks:
            refusal = check(self._pod, node)
            if refusal:
                return refusal
        return ()

    def is_unsuitable(self, node: NodeInfo) -> Refusal:
        """What the node has against the pod whoever else is there."""
        refusal = self._verdicts.get(node.name)
        if refusal is None:
            refusal = self._verdicts[node.name] = self._judge(node)
            self.judged += 1
        return refusal

    def judge_ahead(self, nodes: Iterable[NodeInfo], must_wait: Callable[[], bool]) -> bool:
        """After a decision was cut short: judges the nodes of which nothing is known, and no others, until all are
        judged, or others are next; whether all are."""
        if not self._all.takes_long:
            return True
        verdicts = self._verdicts
        for node in [node for node in nodes if node.name not in verdicts]:
            self.is_unsuitable(node)
            if must_wait():
                return False
        self._all.takes_long = False
        return True

    def note_cut_short(self) -> None:
        """There was no time to judge all nodes: the next decision begins with those."""
        self._all.takes_long = True

    @property
    def depends_on_each_node_alone(self) -> bool:
        """Whether what happens to one node changes nothing about what others have against the pod."""
        return not self._pod.extended and len(self._checks) == len(filters.of_its_pods(self._pod))

    @property
    def depends_on_room_alone(self) -> bool:
        """Whether nothing but resources decides where the pod may go, of the nodes that are for it."""
        return len(self._checks) == 1

    def _judge(self, node: NodeInfo) -> Refusal:
        for check in filters.OF_THE_NODE:
            refusal = check(self._pod, node)
            if refusal:
                return refusal
        return ()
