"""New places for pods that have to leave: scheduled again, one after the other, in memory.

A place is where a pod can stay: what it or its claims tolerate for a limited time only does not count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice

from msgspec.structs import replace

from dray.api.extended_resources import is_for_extended
from dray.api.generated.core import Pod, PodResourceClaim
from dray.api.kinds import CLAIMS, PODS
from dray.api.meta import ObjectMeta
from dray.api.pod_claims import recorded_claims
from dray.api.pods import is_finished, is_static
from dray.api.references import ObjectName, ObjectRef
from dray.api.resource import DeviceToleration, ResourceClaim, ResourceClaimSpec, ResourceClaimStatus
from dray.api.resource.toleration import toleration_seconds
from dray.eviction.allocations import devices_of
from dray.eviction.drain import belongs_to_node
from dray.scheduling.claims import find_claims
from dray.scheduling.daemon_nodes import towards
from dray.scheduling.judgeable import cannot_judge
from dray.scheduling.pod_info import PodInfo, identified, read_pod
from dray.scheduling.reasons import PodReason
from dray.scheduling.refusal import Refused
from dray.scheduling.rehearsal import Rehearsal
from dray.scheduling.text import tell, tell_pod
from dray.snapshot.snapshot import Snapshot
from dray.what_if.evictions import Eviction
from dray.what_if.making_room import Preemption
from dray.what_if.newcomers import Newcomers

MAX_MOVED = 500
"""Evicted pods for which a new place is looked for."""
MAX_CHOICES = 20
"""Evicted pods for which other nodes than the first are looked for, if anybody asks."""
STATIC = "a static pod: its node runs it from a file"
DAEMON = "a pod of a DaemonSet: it is for its node alone"
"""Where other devices of its node do not help either."""


def move_elsewhere(after: Snapshot, leaving: Mapping[ObjectRef, Eviction], choices: int = 1) -> tuple[Eviction, ...]:
    """Looks for a new place for each pod, in the order in which they leave; what one takes the next does not get.

    Finds up to `choices` nodes for each of the first pods. Pods of a group are decided on together, as the scheduler
    does.
    """
    moved = dict(islice(leaving.items(), MAX_MOVED))
    with after.rehearsal() as rehearsal:
        kept = _leave(after, rehearsal, moved)
        room = _room(after, moved)
        told: dict[ObjectRef, Eviction] = {}
        coming: dict[ObjectRef, PodInfo] = {}
        for ref, eviction in moved.items():
            successor = _successor(after, ref, eviction)
            stays = _stays_away(after, rehearsal, ref, successor, eviction, kept)
            if stays is None and (kept_out := room.let_in([successor.pod])) is not None:
                stays = replace(eviction, fits=False, why_not=str(kept_out))
            if stays is not None:
                told[ref] = stays
            else:
                coming[ref] = successor
        groups = _by_group(rehearsal, coming)
        preemption = Preemption(rehearsal)
        for number, (ref, successor) in enumerate(coming.items()):
            if ref in told:
                continue
            if successor.group is not None:
                told |= _move_group(rehearsal, successor.group, groups[successor.group], moved)
            else:
                most = choices if number < MAX_CHOICES else 1
                told[ref] = _move(rehearsal, successor, moved[ref], most, preemption)
    return (*(told[ref] for ref in moved), *islice(leaving.values(), MAX_MOVED, None))


def _room(after: Snapshot, moved: Mapping[ObjectRef, Eviction]) -> Newcomers:
    """What quotas let in when these pods are gone. Their claims come and go with them, and use what they used."""
    room = Newcomers(after)
    found = (after.get(PODS.resource, ref.namespace, ref.name) for ref in moved)
    room.give_back(pod for pod in found if isinstance(pod, Pod))
    return room


def _stays_away(
    after: Snapshot, rehearsal: Rehearsal, ref: ObjectRef, successor: PodInfo, eviction: Eviction, kept: _Kept
) -> Eviction | None:
    """The verdict on a pod for which no place need be looked for; None if one must be."""
    pod = after.get(PODS.resource, ref.namespace, ref.name)
    if isinstance(pod, Pod) and is_static(pod):
        return replace(eviction, fits=False, why_not=STATIC)
    unknown: PodReason | None = cannot_judge(successor, rehearsal.cluster.volumes)
    if unknown is None and not rehearsal.cluster.claims:  # a dump has all claims or leaves them out
        unknown = find_claims(successor.pod, rehearsal.cluster.find_claim).problem
    if unknown is not None:
        return replace(eviction, fits=None, why_not=tell_pod(unknown))
    lost = next((one for name in successor.claims for one in kept.get(name, ()) if one in eviction.devices), None)
    return None if lost is None else replace(eviction, fits=False, why_not=f"its claim keeps {lost}")


_Kept = dict[ObjectName, tuple[str, ...]]
"""By claim that stays allocated, its devices."""


def _leave(after: Snapshot, rehearsal: Rehearsal, moved: Mapping[ObjectRef, Eviction]) -> _Kept:
    """The pods are gone from their nodes, and so are the allocations of claims that nobody else uses; the others."""
    for ref in moved:
        pod = after.get(PODS.resource, ref.namespace, ref.name)
        if isinstance(pod, Pod) and pod.spec.node_name:
            rehearsal.remove_pod(pod)
    kept: _Kept = {}
    names = {(ref.namespace, ref.name) for ref in moved}
    for claim in {ObjectName.of(claim): claim for ref in moved for claim in _claims(after, ref, moved[ref])}.values():
        if _is_let_go(after, claim, names):
            freed = replace(claim, spec=_to_stay(claim.spec), status=ResourceClaimStatus())
            rehearsal.set_claim(claim, None if is_for_extended(claim) else freed)
        else:
            kept[ObjectName.of(claim)] = tuple(map(str, devices_of(claim)))
    return kept


def _is_let_go(after: Snapshot, claim: ResourceClaim, leaving: Collection[tuple[str, str]]) -> bool:
    """Whether nobody else uses a claim. What a PodGroup shares is the group's until that is gone, and what nobody
    uses is not let go of by anybody."""
    namespace = claim.metadata.namespace
    if not claim.status.reserved_for:
        return claim.status.allocation is None
    for user in claim.status.reserved_for:
        if user.resource != PODS.resource:
            return False
        pod = after.get(PODS.resource, namespace, user.name)
        if (namespace, user.name) not in leaving and not (isinstance(pod, Pod) and is_finished(pod)):
            return False
    return True


def _claims(after: Snapshot, ref: ObjectRef, eviction: Eviction) -> Iterator[ResourceClaim]:
    """The claims that are reserved for a pod, and those that it names."""
    pod = after.get(PODS.resource, ref.namespace, ref.name)
    named = [name for _, name in _entries(pod)] if isinstance(pod, Pod) else []
    for name in dict.fromkeys((*(one.partition("/")[2] for one in eviction.claims), *named)):
        claim = after.get(CLAIMS.resource, ref.namespace, name)
        if isinstance(claim, ResourceClaim):
            yield claim


def _entries(pod: Pod) -> Iterator[tuple[PodResourceClaim, str]]:
    """The entries of a pod whose claims have names, with these."""
    recorded = recorded_claims(pod)
    for entry in pod.spec.resource_claims:
        name = entry.resource_claim_name or recorded.get(entry.name)
        if name:
            yield entry, name


def _move(rehearsal: Rehearsal, pod: PodInfo, eviction: Eviction, choices: int, preemption: Preemption) -> Eviction:
    answer = rehearsal.find_places(pod, choices)
    if isinstance(answer, Refused):
        preempted = preemption.make_room(pod, answer)
        victims = preempted.pods if preempted is not None else ()
        why_not = DAEMON if belongs_to_node(pod.pod) else tell(answer)
        return replace(eviction, fits=False, why_not=why_not, victims=victims)
    rehearsal.bind(pod, answer[0])
    return replace(eviction, fits=True, fits_on=answer[0].node, also_on=tuple(place.node for place in answer[1:]))


def _by_group(rehearsal: Rehearsal, coming: Mapping[ObjectRef, PodInfo]) -> dict[ObjectName, dict[PodInfo, ObjectRef]]:
    """The pods that come again of each group, which wait from now on."""
    groups: dict[ObjectName, dict[PodInfo, ObjectRef]] = {}
    for ref, pod in coming.items():
        if pod.group is not None:
            groups.setdefault(pod.group, {})[pod] = ref
    rehearsal.expect([pod.pod for group in groups.values() for pod in group], ())
    return groups


def _move_group(
    rehearsal: Rehearsal, name: ObjectName, pods: Mapping[PodInfo, ObjectRef], moved: Mapping[ObjectRef, Eviction]
) -> dict[ObjectRef, Eviction]:
    answer = rehearsal.decide_group(name, list(pods))
    if isinstance(answer, Refused):
        return {ref: replace(moved[ref], fits=False, why_not=tell(answer)) for ref in pods.values()}
    told = {}
    for pod, chosen in answer.chosen:
        rehearsal.bind(pod, chosen)
        told[pods[pod]] = replace(moved[pods[pod]], fits=True, fits_on=chosen.node)
    for pod, refused in answer.left_out:
        told[pods[pod]] = replace(moved[pods[pod]], fits=False, why_not=tell(refused))
    return told


def _successor(after: Snapshot, ref: ObjectRef, eviction: Eviction) -> PodInfo:
    """The pod as it will come again: without a node, with the claims that it had. Dumps may lack it.

    For its extended resources it gets another claim.
    """
    found = after.get(PODS.resource, ref.namespace, ref.name)
    pod = found if isinstance(found, Pod) else Pod(metadata=ObjectMeta(name=ref.name, namespace=ref.namespace))
    entries = {name: entry for entry, name in _entries(pod)}
    for claim in _claims(after, ref, eviction):
        name = claim.metadata.name
        if name not in entries and not is_for_extended(claim):
            entries[name] = PodResourceClaim(name=name, resource_claim_name=name)
    lasting = tuple(one for one in pod.spec.tolerations if one.toleration_seconds is None)
    affinity = towards(pod.spec.affinity, pod.spec.node_name) if belongs_to_node(pod) else pod.spec.affinity
    used = tuple(entries.values())
    spec = replace(pod.spec, node_name="", tolerations=lasting, affinity=affinity, resource_claims=used)
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
