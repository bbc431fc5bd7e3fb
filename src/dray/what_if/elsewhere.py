"""New places for pods that have to leave: scheduled again, one after the other, in memory.

A place is where a pod can stay: what it or its claims tolerate for a limited time only does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from msgspec.structs import replace

from dray.api.extended_resources import is_for_extended
from dray.api.generated.core import Pod, PodResourceClaim
from dray.api.kinds import CLAIMS, PODS
from dray.api.meta import ObjectMeta
from dray.api.pods import is_static
from dray.api.references import ObjectRef
from dray.api.resource import DeviceToleration, ResourceClaim, ResourceClaimSpec, ResourceClaimStatus
from dray.api.resource.toleration import toleration_seconds
from dray.scheduling.judgeable import cannot_judge
from dray.scheduling.pod_info import PodInfo, identified, read_pod
from dray.scheduling.refusal import Refused
from dray.scheduling.rehearsal import Rehearsal
from dray.scheduling.text import tell, tell_pod
from dray.snapshot.snapshot import Snapshot
from dray.what_if.evictions import Eviction

MAX_MOVED = 500
"""Evicted pods for which a new place is looked for."""
MAX_CHOICES = 20
"""Evicted pods for which other nodes than the first are looked for, if anybody asks."""
STATIC = "a static pod: its node runs it from a file"


def move_elsewhere(after: Snapshot, leaving: Mapping[ObjectRef, Eviction], choices: int = 1) -> tuple[Eviction, ...]:
    """Looks for a new place for each pod, in the order in which they leave; what one takes the next does not get.

    Finds up to `choices` nodes for each of the first pods.
    """
    moved = dict(islice(leaving.items(), MAX_MOVED))
    with after.rehearsal() as rehearsal:
        _leave(after, rehearsal, moved)
        told = [
            replace(eviction, fits=False, why_not=STATIC)
            if _is_static(after, ref)
            else _move(rehearsal, _successor(after, ref, eviction), eviction, choices if number < MAX_CHOICES else 1)
            for number, (ref, eviction) in enumerate(moved.items())
        ]
    return (*told, *islice(leaving.values(), MAX_MOVED, None))


def _is_static(after: Snapshot, ref: ObjectRef) -> bool:
    pod = after.get(PODS.resource, ref.namespace, ref.name)
    return isinstance(pod, Pod) and is_static(pod)


def _leave(after: Snapshot, rehearsal: Rehearsal, moved: Mapping[ObjectRef, Eviction]) -> None:
    """The pods are gone from their nodes, and so are the allocations of claims that nobody else uses."""
    for ref in moved:
        pod = after.get(PODS.resource, ref.namespace, ref.name)
        if isinstance(pod, Pod) and pod.spec.node_name:
            rehearsal.remove_pod(pod)
    names = {(ref.namespace, ref.name) for ref in moved}
    for claim in _claims(after, moved.values()):
        namespace = claim.metadata.namespace
        if {(namespace, used.name) for used in claim.status.reserved_for} <= names:
            freed = replace(claim, spec=_to_stay(claim.spec), status=ResourceClaimStatus())
            rehearsal.set_claim(claim, None if is_for_extended(claim) else freed)


def _claims(after: Snapshot, evictions: Iterable[Eviction]) -> Iterable[ResourceClaim]:
    for name in dict.fromkeys(claim for eviction in evictions for claim in eviction.claims):
        namespace, _, short = name.partition("/")
        claim = after.get(CLAIMS.resource, namespace, short)
        if isinstance(claim, ResourceClaim):
            yield claim


def _move(rehearsal: Rehearsal, pod: PodInfo, eviction: Eviction, choices: int) -> Eviction:
    unknown = cannot_judge(pod, rehearsal.cluster.volumes)
    if unknown is not None:
        return replace(eviction, fits=None, why_not=tell_pod(unknown))
    answer = rehearsal.find_places(pod, choices)
    if isinstance(answer, Refused):
        return replace(eviction, fits=False, why_not=tell(answer))
    rehearsal.bind(pod, answer[0])
    return replace(eviction, fits=True, fits_on=answer[0].node, also_on=tuple(place.node for place in answer[1:]))


def _successor(after: Snapshot, ref: ObjectRef, eviction: Eviction) -> PodInfo:
    """The pod as it will come again: without a node, with the claims that it had. Dumps may lack it.

    For its extended resources it gets another claim.
    """
    found = after.get(PODS.resource, ref.namespace, ref.name)
    pod = found if isinstance(found, Pod) else Pod(metadata=ObjectMeta(name=ref.name, namespace=ref.namespace))
    claims = [claim.metadata.name for claim in _claims(after, (eviction,)) if not is_for_extended(claim)]
    lasting = tuple(one for one in pod.spec.tolerations if one.toleration_seconds is None)
    spec = replace(
        pod.spec,
        node_name="",
        tolerations=lasting,
        resource_claims=tuple(PodResourceClaim(name=name, resource_claim_name=name) for name in claims),
    )
    status = replace(pod.status, extended_resource_claim_status=None)
    return read_pod(identified(replace(pod, spec=spec, status=status)))


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
