"""Which nodes a DaemonSet is for, and what a pod for one of them asks for. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec.structs import replace

from dray.api.generated.apps import DaemonSet
from dray.api.generated.core import Affinity, Node, NodeAffinity, Pod, PodSpec, Toleration
from dray.api.node_match import NodeMatcher
from dray.api.node_selector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dray.api.nodes import NOT_READY, UNREACHABLE, UNSCHEDULABLE
from dray.api.toleration import is_tolerated
from dray.scheduling.pod_info import says_too_much

NAME_FIELD: Final = "metadata.name"


def _exists(key: str, effect: str) -> Toleration:
    return Toleration(key=key, operator="Exists", effect=effect)


STANDARD: Final = (
    _exists(NOT_READY, "NoExecute"),
    _exists(UNREACHABLE, "NoExecute"),
    _exists("node.kubernetes.io/disk-pressure", "NoSchedule"),
    _exists("node.kubernetes.io/memory-pressure", "NoSchedule"),
    _exists("node.kubernetes.io/pid-pressure", "NoSchedule"),
    _exists(UNSCHEDULABLE, "NoSchedule"),
)
"""What all daemons put up with: they are part of a node, ill or not."""
HOST_NETWORK: Final = _exists("node.kubernetes.io/network-unavailable", "NoSchedule")


class NodeFit(NamedTuple):
    """Whether a node should get a pod, and whether a pod that it has may stay."""

    should_run: bool
    may_stay: bool


NO: Final = NodeFit(should_run=False, may_stay=False)
YES: Final = NodeFit(should_run=True, may_stay=True)


def tolerations_of(daemon_set: DaemonSet) -> tuple[Toleration, ...]:
    """What the pods tolerate: what the template says, and what all daemons do."""
    spec = daemon_set.spec.template.spec
    standard = (*STANDARD, HOST_NETWORK) if spec.host_network else STANDARD
    names = {(one.key, one.effect, one.operator, one.value) for one in standard}
    own = tuple(one for one in spec.tolerations if (one.key, one.effect, one.operator, one.value) not in names)
    return (*own, *standard)


class DaemonNodes:
    """Judges nodes for one DaemonSet."""

    def __init__(self, daemon_set: DaemonSet) -> None:
        spec = daemon_set.spec.template.spec
        self._labels = spec.node_selector.items()
        required = _required(spec.affinity)
        self._says_too_much = says_too_much(spec) is not None
        self._required = NodeMatcher.of(required) if required is not None and not self._says_too_much else None
        self._name = spec.node_name
        self._tolerations = tolerations_of(daemon_set)

    def judge(self, node: Node) -> NodeFit:
        """Whether the daemon belongs on a node."""
        meta = node.metadata
        if self._says_too_much:
            return NO  # as the scheduler says of a pod
        if self._name and self._name != meta.name:
            return NO
        if self._labels and not self._labels <= meta.labels.items():
            return NO
        if self._required is not None and not self._required.matches(meta.name, meta.labels):
            return NO
        if not node.spec.taints:
            return YES
        refused = [one for one in node.spec.taints if not is_tolerated(self._tolerations, one)]
        if any(one.effect == "NoExecute" for one in refused):
            return NO
        return NodeFit(all(one.effect == "PreferNoSchedule" for one in refused), may_stay=True)


def _required(affinity: Affinity | None) -> NodeSelector | None:
    if affinity is None or affinity.node_affinity is None:
        return None
    return affinity.node_affinity.required_during_scheduling_ignored_during_execution


def target_of(pod: Pod) -> str:
    """The node that a pod has, or was made for; empty if that cannot be told."""
    if pod.spec.node_name:
        return pod.spec.node_name
    required = _required(pod.spec.affinity)
    for term in required.node_selector_terms if required is not None else ():
        for one in term.match_fields:
            if one.key == NAME_FIELD and one.operator == "In" and len(one.values) == 1:
                return one.values[0]
    return ""


def spec_for(daemon_set: DaemonSet, node: str) -> PodSpec:
    """What the pod for a node asks for: the scheduler is told by affinity to that one name where to put it."""
    spec = daemon_set.spec.template.spec
    return replace(spec, tolerations=tolerations_of(daemon_set), affinity=towards(spec.affinity, node))


def towards(affinity: Affinity | None, node: str) -> Affinity:
    """The affinity with a requirement of one node, which fits whatever was required of nodes before."""
    name = NodeSelectorRequirement(key=NAME_FIELD, operator="In", values=(node,))
    selector = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(name,)),))
    affinity = affinity or Affinity()
    known = affinity.node_affinity or NodeAffinity()
    return replace(affinity, node_affinity=replace(known, required_during_scheduling_ignored_during_execution=selector))
