"""What is different about nodes, and which pods have to leave for it.

A pod on a node that is gone is deleted by who collects such pods; NoExecute taints are played through by the code that
evicts (`eviction.NodePlanner`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from dray.allocator.reasons import Report
from dray.api.generated.core import Node, Pod
from dray.api.kinds import PODS
from dray.api.meta import Object
from dray.api.nodes import QUARANTINE_SECONDS
from dray.api.pods import is_active
from dray.api.references import ObjectRef, full_name
from dray.api.resource import ResourceClaim
from dray.api.resource.taint import EFFECT_NO_EXECUTE
from dray.api.taints import taint_text
from dray.api.times import Time, later
from dray.api.toleration import seconds_left
from dray.eviction.node_planner import NodePlanner
from dray.scheduling.device_states import NodeProblem, problem_of
from dray.scheduling.pod_info import identified
from dray.snapshot.snapshot import Snapshot
from dray.what_if.evictions import Eviction, held_by, play, told_by


class NodeChange(Report, frozen=True, kw_only=True):
    """A node that is different, and the pods on it."""

    node: str
    reasons: tuple[str, ...]
    pods: int = 0


Pairs = Mapping[str, tuple[Node | None, Node | None]]
"""Nodes that differ, by name: as they are, and as they would be."""


def differing_nodes(differing: Iterable[tuple[Object | None, Object | None]]) -> Pairs:
    """The nodes among objects that differ."""
    found: dict[str, tuple[Node | None, Node | None]] = {}
    for here, there in differing:
        node = there if there is not None else here
        if isinstance(node, Node):
            old = here if isinstance(here, Node) else None
            found[node.metadata.name] = (old, there if isinstance(there, Node) else None)
    return found


def compare_nodes(nodes: Pairs, after: Snapshot) -> Iterator[NodeChange]:
    """What is different for who looks at nodes: labels, taints, whether pods can come, what it offers."""
    pods: dict[str, int] = {}
    for pod in after.objects(Pod) if nodes else ():
        if is_active(pod):
            pods[pod.spec.node_name] = pods.get(pod.spec.node_name, 0) + 1
    for name, (old, new) in nodes.items():
        reasons = tuple(_reasons(old, new))
        if reasons:
            yield NodeChange(node=name, reasons=reasons, pods=pods.get(name, 0))


def node_evictions(after: Snapshot, nodes: Pairs, now: datetime) -> dict[ObjectRef, Eviction]:
    """The pods that leave nodes which are different, and did not have to before, or not as soon; in order."""
    if not nodes:
        return {}
    pods = [identified(pod) for pod in after.objects(Pod) if pod.spec.node_name in nodes and is_active(pod)]
    claims = _claims_of(after, pods)
    before = {name: old for name, (old, _) in nodes.items() if old is not None}
    then = {name: new for name, (_, new) in nodes.items() if new is not None}
    waits = {ref: (QUARANTINE_SECONDS, f"node {ref_node} is gone") for ref, ref_node in _orphans(nodes, pods)}
    by_ref = {ObjectRef.of(pod): pod for pod in pods}
    for ref, wait in _departures(then, pods):
        old = before.get(by_ref[ref].spec.node_name)
        if old is None or wait < _time_left(by_ref[ref], old, now):
            waits[ref] = (wait, "")
    told: dict[ObjectRef, Eviction] = {}
    for ref, (wait, cause) in sorted(waits.items(), key=lambda item: (item[1][0], str(item[0]))):
        moment = str(Time.of(later(now, wait)))
        mine = claims.get((ref.namespace, ref.name), ())
        told[ref] = Eviction(
            pod=str(ref),
            claims=mine,
            devices=(),
            held=held_by(after, mine),
            causes=(cause,) if cause else _causes(nodes, by_ref[ref].spec.node_name),
            due=moment,
            expected=moment,
            **told_by(after.get(PODS.resource, ref.namespace, ref.name)),
        )
    return told


def _reasons(old: Node | None, new: Node | None) -> Iterator[str]:
    if new is None:
        yield "gone"
        return
    if old is None:
        yield "new"
        return
    # Taints are told by their names.
    was, is_ = (None if one is NodeProblem.TAINTED else one for one in (problem_of(old), problem_of(new)))
    if was != is_:
        yield is_.value if is_ is not None else f"no longer {was.value if was is not None else ''}"
    before, after = {taint_text(one) for one in old.spec.taints}, {taint_text(one) for one in new.spec.taints}
    yield from (f"tainted {taint}" for taint in sorted(after - before))
    yield from (f"no longer tainted {taint}" for taint in sorted(before - after))
    labels, others = old.metadata.labels, new.metadata.labels
    for key in sorted({*labels, *others}):
        if labels.get(key) != others.get(key):
            yield f"label {key} {labels.get(key, 'unset')} → {others.get(key, 'unset')}"
    had, has = old.status.allocatable, new.status.allocatable
    for key in sorted({*had, *has}):
        if had.get(key) != has.get(key):
            yield f"{key} {had.get(key, 'unset')} → {has.get(key, 'unset')}"


def _orphans(nodes: Pairs, pods: Iterable[Pod]) -> Iterator[tuple[ObjectRef, str]]:
    """Pods of nodes that were there and are gone."""
    for pod in pods:
        old, new = nodes[pod.spec.node_name]
        if old is not None and new is None:
            yield ObjectRef.of(pod), pod.spec.node_name


def _departures(nodes: Mapping[str, Node], pods: Iterable[Pod]) -> Iterator[tuple[ObjectRef, float]]:
    """Which pods NoExecute taints make leave, after how many seconds, in that order."""
    planner = NodePlanner()
    for pod in sorted(pods, key=ObjectRef.of):
        planner.put_pod(pod, 0.0)
    for name, node in nodes.items():
        planner.put_node(name, node.spec.taints, 0.0, node.metadata.annotations)
    planner.finish(0.0)
    for taken, wait in play(planner.take, planner.wait):
        yield taken.pod, max(wait, taken.cause.due)


def _time_left(pod: Pod, node: Node, now: datetime) -> float:
    """In how many seconds a pod has to leave a node as it is; infinite if it has not."""
    left = math.inf
    for taint in node.spec.taints:
        if taint.effect == EFFECT_NO_EXECUTE:
            passed = (now - taint.time_added.datetime()).total_seconds() if taint.time_added is not None else 0.0
            left = min(left, max(seconds_left(pod.spec.tolerations, taint) - max(passed, 0.0), 0.0))
    return left


def _causes(nodes: Pairs, node: str) -> tuple[str, ...]:
    _, new = nodes[node]
    taints = new.spec.taints if new is not None else ()
    return tuple(taint_text(taint) for taint in taints if taint.effect == EFFECT_NO_EXECUTE)


def _claims_of(snapshot: Snapshot, pods: Iterable[Pod]) -> dict[tuple[str, str], tuple[str, ...]]:
    """The claims that are reserved for pods, by namespace and name of these."""
    wanted = {(pod.metadata.namespace, pod.metadata.name) for pod in pods}
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for claim in snapshot.objects(ResourceClaim) if wanted else ():
        for consumer in claim.status.reserved_for:
            key = (claim.metadata.namespace, consumer.name)
            if consumer.resource == PODS.resource and key in wanted:
                found[key] = (*found.get(key, ()), full_name(claim))
    return found
