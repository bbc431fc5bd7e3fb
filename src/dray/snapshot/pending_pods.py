"""The pods that wait for a node, with the claims that the claim controller would have made for them. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from dray.api.generated.core import Pod
from dray.api.generated.scheduling import PodGroup, PriorityClass
from dray.api.kinds import CLAIMS, POD_GROUPS, PRIORITY_CLASSES, TEMPLATES
from dray.api.pod_claims import claim_for, claim_for_group, lacks_claim, recorded_claims, with_statuses
from dray.api.pod_groups import group_of, shared_entry
from dray.api.pods import is_active
from dray.api.references import full_name
from dray.api.resource import ResourceClaim, ResourceClaimTemplate
from dray.pod_admission.priority import find_priority
from dray.scheduling.pod_info import identified
from dray.scheduling.reasons import ClaimKeptOut, PodReason, TemplateMissing
from dray.snapshot.quota_room import QuotaRoom
from dray.snapshot.snapshot import Snapshot


class PendingPods(msgspec.Struct, frozen=True):
    """Pods in the order in which a scheduler takes them, claims that are not stored, and pods that cannot be helped."""

    pods: tuple[Pod, ...]
    claims: tuple[ResourceClaim, ...] = ()
    problems: dict[str, PodReason] = {}
    """By `namespace/name`, why the claims of a pod cannot be made."""


def pending_pods(snapshot: Snapshot, *, asks_quotas: bool = True) -> PendingPods:
    """By priority, then by age (one without a time is still to be made), then as they were loaded.

    It `asks_quotas` whether claims are let in that are still to be made, unless whoever calls does.
    """
    waiting = [
        identified(_admitted(pod, snapshot))
        for pod in snapshot.objects(Pod)
        if not pod.spec.node_name and is_active(pod)
    ]
    waiting.sort(key=_place_in_line)
    pods: list[Pod] = []
    claims: list[ResourceClaim] = []
    problems: dict[str, PodReason] = {}
    known: set[str] = set()
    room: QuotaRoom | None = None
    for pod in waiting:
        made = with_claims(pod, snapshot)
        if isinstance(made, PodReason):
            problems[full_name(pod)] = made
            continue
        # One that a group shares is made once.
        new = [claim for claim in made[1] if full_name(claim) not in known]
        room = room or (QuotaRoom(snapshot) if new and asks_quotas else None)
        kept_out = _find_kept_out(room, new) if room is not None else None
        if kept_out is not None:
            problems[full_name(pod)] = kept_out
            continue
        claims.extend(new)
        known.update(map(full_name, new))
        pods.append(made[0])
    return PendingPods(tuple(pods), tuple(claims), problems)


def _find_kept_out(room: QuotaRoom, claims: Iterable[ResourceClaim]) -> ClaimKeptOut | None:
    """The first claim of a pod that a quota lets in no more, after those before it."""
    for claim in claims:
        why = room.let_in([claim])
        if why is not None:
            return ClaimKeptOut(claim.metadata.name.rpartition("/")[2], why.quota, why.why)
    return None


def with_claims(pod: Pod, snapshot: Snapshot) -> tuple[Pod, tuple[ResourceClaim, ...]] | PodReason:
    """A pod with the claims that the claim controller would make for it; a reason if one cannot be made."""
    made = _missing_claims(pod, snapshot)
    if isinstance(made, PodReason):
        return made
    names = {entry: claim.metadata.name for entry, claim in made.items()}
    status = replace(pod.status, resource_claim_statuses=with_statuses(pod, names)) if made else pod.status
    return replace(pod, status=status), tuple(made.values())


def _place_in_line(pod: Pod) -> tuple[int, bool, str]:
    made = pod.metadata.creation_timestamp
    return -(pod.spec.priority or 0), made is None, str(made or "")


def _admitted(pod: Pod, snapshot: Snapshot) -> Pod:
    """The pod with the priority that a server would give it; one from a cluster has it already."""
    spec = pod.spec
    if spec.priority is not None:
        return pod
    found = find_priority(
        spec.priority_class_name,
        lambda name: snapshot.get(PRIORITY_CLASSES.resource, "", name),
        lambda: snapshot.objects(PriorityClass),
    )
    if found is None or not found.name:
        return pod
    policy = spec.preemption_policy or found.policy
    return replace(pod, spec=replace(spec, priority=found.value, preemption_policy=policy))


def _missing_claims(pod: Pod, snapshot: Snapshot) -> dict[str, ResourceClaim] | PodReason:
    """By entry of the pod, the claims that are still to be made from templates; a reason if one cannot be."""
    namespace = pod.metadata.namespace

    def find(name: str) -> ResourceClaim | None:
        found = snapshot.get(CLAIMS.resource, namespace, name)
        return found if isinstance(found, ResourceClaim) else None

    recorded = recorded_claims(pod)
    name_of_group = group_of(pod)
    found_group = snapshot.get(POD_GROUPS.resource, *name_of_group) if name_of_group is not None else None
    group = found_group if isinstance(found_group, PodGroup) else None
    made: dict[str, ResourceClaim] = {}
    for entry in pod.spec.resource_claims:
        if not lacks_claim(entry, recorded, find):
            continue
        name = entry.resource_claim_template_name or ""
        template = snapshot.get(TEMPLATES.resource, namespace, name)
        if not isinstance(template, ResourceClaimTemplate):
            return TemplateMissing(namespace, name)
        shared = shared_entry(group, entry) if group is not None else None
        owner = pod if group is None or shared is None else group
        claim = (
            claim_for(pod, entry, template)
            if group is None or shared is None
            else claim_for_group(group, shared, template)
        )
        meta = replace(
            claim.metadata,
            name=f"{owner.metadata.name}/{entry.name}",  # no stored claim can be called like this
            generate_name="",
            uid=f"{owner.metadata.uid or owner.metadata.name}/{entry.name}",
        )
        made[entry.name] = replace(claim, metadata=meta)
    return made
