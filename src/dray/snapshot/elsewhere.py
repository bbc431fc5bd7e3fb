"""New places for pods that have to leave: their claims allocated again, one pod after the other, on a trial copy.

Devices count, and whether a node takes the pod at all: not if it is cordoned, has taints that the pod does not
tolerate for good, or labels that it does not want. The rest (CPU, memory, affinity) is for the scheduler to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from msgspec.structs import replace

from dray.api.generated.core import Node, Pod, Toleration
from dray.api.resource import DeviceToleration, ResourceClaim, ResourceClaimSpec, ResourceClaimStatus
from dray.api.resource.toleration import toleration_seconds
from dray.eviction import PodRef
from dray.eviction.node_tolerations import seconds_left
from dray.snapshot.evictions import Eviction
from dray.snapshot.outcome import Outcome
from dray.snapshot.snapshot import Snapshot
from dray.snapshot.world import CLAIMS, NODES, PODS

MAX_MOVED = 500
"""Evicted pods for which a new place is looked for."""
MAX_TRIED = 100
"""Nodes that are tried one by one, where the first that has the devices does not take the pod."""
MAX_CHOICES = 20
"""Evicted pods for which other nodes than the first are looked for, if anybody asks."""


def move_elsewhere(after: Snapshot, leaving: Mapping[PodRef, Eviction], choices: int = 1) -> Iterator[Eviction]:
    """Looks for a new place for each pod, in the order in which they leave; what one takes the next does not get.

    Finds up to `choices` nodes for each of the first pods.
    """
    trial = release(after, leaving)
    for number, (ref, eviction) in enumerate(leaving.items()):
        if number >= MAX_MOVED:
            yield eviction
            continue
        pod = after.get(PODS, ref.namespace, ref.name)
        fitting, why_not = _places(trial, eviction, pod, choices if number < MAX_CHOICES else 1)
        if fitting:
            trial = trial.with_allocations(fitting[0])
            nodes = tuple(outcome.node for outcome in fitting if outcome.node is not None)
            yield replace(eviction, fits=True, fits_on=nodes[0] if nodes else None, also_on=nodes[1:])
        else:
            yield replace(eviction, fits=False, why_not=why_not)


def _places(trial: Snapshot, eviction: Eviction, pod: object, choices: int) -> tuple[list[Outcome], str]:
    """Allocations on up to so many different nodes that take the pod, or why there is none."""
    first = trial.allocate(*eviction.claims)
    if first.status != "allocated":
        return [], first.message
    fitting = [first] if _takes(trial.get(NODES, "", first.node or ""), pod) else []
    others = (name for name in trial.nodes() if name != first.node and _takes(trial.get(NODES, "", name), pod))
    for node in islice(others, MAX_TRIED):
        if len(fitting) >= choices:
            break
        outcome = trial.allocate(*eviction.claims, node=node)
        fitting += [outcome] if outcome.status == "allocated" else []
    return fitting, "no node that takes the pod has the devices"


def _takes(node: object, pod: object) -> bool:
    """Whether a node takes a pod, as far as is known: dumps may lack both."""
    if not isinstance(node, Node):
        return True
    tolerations: tuple[Toleration, ...] = pod.spec.tolerations if isinstance(pod, Pod) else ()
    wanted = pod.spec.node_selector if isinstance(pod, Pod) else {}
    return (
        not node.spec.unschedulable
        and all(
            seconds_left(tolerations, taint) == float("inf")
            for taint in node.spec.taints
            if taint.effect in ("NoSchedule", "NoExecute")
        )
        and wanted.items() <= node.metadata.labels.items()
    )


def release(after: Snapshot, leaving: Mapping[PodRef, Eviction]) -> Snapshot:
    """Without the allocations of claims that nobody uses once these pods have left: of those for whom it is tried."""
    names = {(ref.namespace, ref.name) for ref in leaving}
    moved = islice(leaving.values(), MAX_MOVED)
    released = []
    for name in dict.fromkeys(claim for eviction in moved for claim in eviction.claims):
        namespace, _, short = name.partition("/")
        claim = after.get(CLAIMS, namespace, short)
        if not isinstance(claim, ResourceClaim):
            continue
        if {(namespace, used.name) for used in claim.status.reserved_for} <= names:
            released.append(replace(claim, spec=_to_stay(claim.spec), status=ResourceClaimStatus()))
    return after.with_typed(released)


def _to_stay(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    """Without tolerations for a limited time: a device that the pod has to leave again is not a new place."""
    requests = []
    for request in spec.devices.requests:
        exactly = request.exactly
        requests.append(
            replace(
                request,
                exactly=exactly and replace(exactly, tolerations=_lasting(exactly.tolerations)),
                first_available=tuple(
                    replace(option, tolerations=_lasting(option.tolerations)) for option in request.first_available
                ),
            )
        )
    return replace(spec, devices=replace(spec.devices, requests=tuple(requests)))


def _lasting(tolerations: tuple[DeviceToleration, ...]) -> tuple[DeviceToleration, ...]:
    return tuple(toleration for toleration in tolerations if toleration_seconds(toleration) is None)
