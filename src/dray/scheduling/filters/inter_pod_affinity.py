"""The company that a pod requires, avoids, and is avoided by, in the domain of a node."""

from __future__ import annotations

from dray.scheduling.node_info import NodeInfo
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.reasons import BadCompany, KeptAway, NoCompany, NodeReason
from dray.scheduling.topology import Topology

_NO_COMPANY = (NoCompany(),)
_BAD_COMPANY = (BadCompany(),)
_KEPT_AWAY = (KeptAway(),)


class CompanyCheck:
    """What other pods have to do with one pod, looked up once for all nodes."""

    def __init__(self, pod: PodInfo, topology: Topology) -> None:
        terms = pod.terms
        selections = tuple(term.selection for term in terms.affinity) if terms is not None else ()
        keys = dict.fromkeys(term.key for term in terms.affinity) if terms is not None else ()
        self.wanted = [topology.count_all(selections, key) for key in keys]
        meta = pod.pod.metadata
        self.is_first = (
            bool(self.wanted)
            and not any(counts.total for counts in self.wanted)
            and all(one.matches(meta.namespace, meta.labels, topology.namespaces) for one in selections)
        )
        """Nobody is there whose company the pod requires, and it is one of them: it may go first."""
        avoided = terms.avoided if terms is not None else ()
        self.avoided = [topology.count(weights, key) for key, weights in avoided]
        self._kept_away = topology.keeping_away(pod)

    @property
    def is_needed(self) -> bool:
        """Whether the pod may be refused anywhere."""
        return bool(self.wanted or self.avoided or self._kept_away)

    def check(self, _pod: PodInfo, node: NodeInfo) -> tuple[NodeReason, ...]:
        """Whether the company in all domains of the node is right."""
        labels = node.node.metadata.labels
        for counts in self.wanted:
            value = labels.get(counts.key)
            if value is None or not (self.is_first or counts.by_value.get(value)):
                return _NO_COMPANY
        for counts in self.avoided:
            value = labels.get(counts.key)
            if value is not None and counts.by_value.get(value):
                return _BAD_COMPANY
        for key, values in self._kept_away.items():
            if key in labels and values.get(labels[key]):
                return _KEPT_AWAY
        return ()
