"""Which pods are in another's way, or which it misses, and by which term: for explanations, not for decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from dray.api.references import ObjectName
from dray.scheduling.cluster import Cluster
from dray.scheduling.filters import topology_spread
from dray.scheduling.node_info import NodeInfo
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.pod_terms import Selection, Spread, Term
from dray.scheduling.reasons import BadCompany, Crowded, KeptAway, NoCompany, NodeReason, OutsideTopology

FEW = 3


def name_company(cluster: Cluster, pod: PodInfo, node: NodeInfo, reason: NodeReason) -> str:
    """The constraint behind a reason, and the pods: `avoids app=web in host a: ns/web-1`. Empty for other reasons."""
    terms = pod.terms
    match reason:
        case KeptAway():
            return _kept_away(cluster, pod, node)
        case BadCompany() if terms is not None:
            return _avoided(cluster, terms.anti_affinity, node)
        case NoCompany() if terms is not None:
            return "; ".join(f"wants {_whom(term.selection)} in the same {term.key}" for term in terms.affinity)
        case Crowded() if terms is not None:
            return "; ".join(filter(None, (_crowd(cluster, pod, spread, node) for spread in terms.spread)))
        case OutsideTopology() if terms is not None:
            missing = [one.key for one in terms.spread if one.key not in node.node.metadata.labels]
            return f"it lacks the label {', '.join(missing)}"
    return ""


def _avoided(cluster: Cluster, terms: Iterable[Term], node: NodeInfo) -> str:
    namespaces = cluster.nodes.topology.namespaces
    for term in terms:

        def is_meant(one: PodInfo, term: Term = term) -> bool:
            meta = one.pod.metadata
            return term.selection.matches(meta.namespace, meta.labels, namespaces)

        found = _names(cluster, term.key, node, is_meant)
        if found:
            return f"avoids {_whom(term.selection)} in {term.key} {_value(node, term.key)}: {found}"
    return ""


def _kept_away(cluster: Cluster, pod: PodInfo, node: NodeInfo) -> str:
    meta, namespaces = pod.pod.metadata, cluster.nodes.topology.namespaces
    for key in {term.key: None for one in _all(cluster) if one.terms is not None for term in one.terms.anti_affinity}:

        def keeps_away(one: PodInfo, key: str = key) -> bool:
            terms = one.terms.anti_affinity if one.terms is not None else ()
            return any(
                term.key == key and term.selection.matches(meta.namespace, meta.labels, namespaces) for term in terms
            )

        found = _names(cluster, key, node, keeps_away)
        if found:
            return f"avoided in {key} {_value(node, key)} by {found}"
    return ""


def _crowd(cluster: Cluster, pod: PodInfo, spread: Spread, node: NodeInfo) -> str:
    counts = topology_spread.count(cluster.nodes.topology, pod, spread)
    here = counts.by_value.get(_value(node, spread.key), 0)
    least = counts.lowest if len(counts.by_value) >= spread.min_domains else 0
    crowd = f"{spread.key} {_value(node, spread.key)} has {here} of {_whom(spread.selection)}"
    return f"{crowd}, the least is {least}, maxSkew {spread.max_skew}"


def _names(cluster: Cluster, key: str, node: NodeInfo, is_meant: Callable[[PodInfo], bool]) -> str:
    there = cluster.nodes.topology.domains(key).get(_value(node, key), {}) if _value(node, key) else {}
    found: list[ObjectName] = [one.name for other in there.values() for one in other.pods.values() if is_meant(one)]
    more = f" and {len(found) - FEW} more" if len(found) > FEW else ""
    return ", ".join(map(str, sorted(found)[:FEW])) + more


def _all(cluster: Cluster) -> Iterator[PodInfo]:
    for node in cluster.nodes:
        yield from node.pods.values()


def _value(node: NodeInfo, key: str) -> str:
    return node.node.metadata.labels.get(key, "")


def _whom(selection: Selection) -> str:
    return str(selection.labels) or "any pod"
