"""Why a pod that has its node cannot start there: claims that nobody allocates, a node that is gone or full."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dray.api.generated.core import Node, Pod
from dray.api.kinds import NODES
from dray.api.pod_claims import is_reserved_for
from dray.api.pods import PENDING
from dray.api.references import full_name
from dray.prose.wording import names
from dray.scheduling.claims import find_claims, is_in_reach
from dray.scheduling.device_states import NodeProblem, problem_of
from dray.scheduling.pod_info import identified, read_pod
from dray.scheduling.reasons import ClaimNotFound, Insufficient, PortsTaken, TooManyPods
from dray.scheduling.text import tell_pod
from dray.snapshot.snapshot import Snapshot

_BY_HAND: Final = (
    "schedulers do not look at a pod that somebody else gave its node. Delete the pod and leave nodeName out."
)


def what_keeps_from_starting(snapshot: Snapshot, pod: Pod) -> Iterator[str]:
    """A sentence for each thing; none of a pod that has started."""
    if pod.status.phase not in ("", PENDING):
        return
    yield from _claims(snapshot, pod)
    yield from _node(snapshot, pod)


def _claims(snapshot: Snapshot, pod: Pod) -> Iterator[str]:
    node = pod.spec.node_name
    told = pod.status.extended_resource_claim_status
    with snapshot.rehearsal() as rehearsal:
        found = find_claims(identified(pod), rehearsal.cluster.find_claim)
        extended = rehearsal.cluster.find_claim(pod.metadata.namespace, told.resource_claim_name) if told else None
        devices = () if told else rehearsal.extended_devices(read_pod(identified(pod)), node)
    if found.problem is not None:
        yield f"{_sentence(tell_pod(found.problem))}."
    if told and extended is None:
        yield f"{_sentence(tell_pod(ClaimNotFound(told.resource_claim_name)))}."
    if devices:
        yield (f"{names(devices)} is made of devices on {node}, and nobody is going to allocate them: {_BY_HAND}")
    known = snapshot.get(NODES.resource, "", node)
    labels = known.metadata.labels if isinstance(known, Node) else {}
    for claim in (*found.claims, extended) if extended is not None else found.claims:
        name = full_name(claim)
        if claim.status.allocation is None:
            yield f"Claim {name} is not allocated, and nobody is going to: {_BY_HAND}"
        elif not is_in_reach(claim, node, labels):
            yield f"The devices of claim {name} cannot be used on {node}."
        elif not is_reserved_for(claim, identified(pod)):
            yield f"Claim {name} is not reserved for the pod."


def what_is_wrong_with_node(snapshot: Snapshot, pod: Pod) -> Iterator[str]:
    """Whether the node of a pod is gone or not ready, in a sentence; nothing if it is well, or the pod has none."""
    name = pod.spec.node_name
    if not name or next(snapshot.objects(Node), None) is None:
        return  # files may leave nodes out
    known = snapshot.get(NODES.resource, "", name)
    if name not in snapshot.nodes():
        yield f"Node {name} is not there."
    elif isinstance(known, Node) and problem_of(known) is NodeProblem.NOT_READY:
        yield f"Node {name} is not ready."


def _node(snapshot: Snapshot, pod: Pod) -> Iterator[str]:
    name = pod.spec.node_name
    yield from what_is_wrong_with_node(snapshot, pod)
    if name not in snapshot.nodes():
        return
    with snapshot.rehearsal() as rehearsal:
        rehearsal.remove_pod(pod)
        info = read_pod(identified(pod))
        refusal = rehearsal.unsuitable(info, name)
        room = (one for one in refusal if isinstance(one, Insufficient | TooManyPods | PortsTaken))
        lacking = [rehearsal.tell(info, name, one) for one in room]
    if lacking:
        yield f"Node {name} has no room for it besides what is there: {', '.join(lacking)}."


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"
