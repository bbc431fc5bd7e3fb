"""What a pod with claims needs from the claim controller. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from dray.api.generated.core import Pod, PodResourceClaim, PodResourceClaimStatus
from dray.api.meta import ObjectMeta, OwnerReference
from dray.api.resource import ResourceClaim, ResourceClaimConsumerReference, ResourceClaimTemplate
from dray.api.resource.claim import RESERVED_FOR
from dray.controllers.pod_states import is_finished

POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
LONGEST_BASE = 57
"""Leaves room for the five characters that the server adds in a name of 63 (SVS-59)."""

FindClaim = Callable[[str], ResourceClaim | None]
"""A claim of the pod's namespace by name."""

FindMade = Callable[[], Mapping[str, str]]
"""The claims that were made for this very pod, by the name of the entry; asked only if its status does not say."""


class PodPlan(msgspec.Struct, frozen=True):
    """Claims to make, claims that exist but are not in the pod's status, claims to reserve, and what is in the way."""

    make: tuple[PodResourceClaim, ...] = ()
    found: tuple[tuple[str, str], ...] = ()
    reserve: tuple[ResourceClaim, ...] = ()
    problems: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.make or self.found or self.reserve or self.problems)


NOTHING = PodPlan()


def is_done(pod: Pod) -> bool:
    """Whether a pod ran to its end, or is never going to start (4381-136)."""
    return is_finished(pod) or (pod.metadata.deletion_timestamp is not None and not pod.spec.node_name)


def is_owned_by(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether a claim was made for just this pod, not for an earlier one of its name (4381-135)."""
    return any(owner.controller and owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references)


def plan_pod(pod: Pod, find: FindClaim, find_made: FindMade) -> PodPlan:
    """What to do for a pod."""
    if not pod.spec.resource_claims or pod.metadata.deletion_timestamp is not None or is_done(pod):
        return NOTHING
    recorded = recorded_claims(pod)
    make: list[PodResourceClaim] = []
    found: list[tuple[str, str]] = []
    reserve: list[ResourceClaim] = []
    problems: list[str] = []
    for entry in pod.spec.resource_claims:
        name = entry.resource_claim_name
        if entry.resource_claim_template_name is not None:
            if entry.name in recorded and recorded[entry.name] is None:
                continue  # it was found before that no claim is needed (4381-75)
            name = recorded.get(entry.name)
            if name is None or find(name) is None:
                existing = find_made().get(entry.name)
                if existing is None:
                    make.append(entry)
                    continue
                if existing != name:
                    found.append((entry.name, existing))
                name = existing
        claim = find(name) if name else None
        if claim is None:
            continue
        if entry.resource_claim_template_name is not None and not is_owned_by(claim, pod):
            problems.append(_foreign(entry, claim, pod))
        elif pod.spec.node_name and _can_be_reserved(claim, pod):
            reserve.append(claim)
    return PodPlan(tuple(make), tuple(found), tuple(reserve), tuple(problems))


def _foreign(entry: PodResourceClaim, claim: ResourceClaim, pod: Pod) -> str:
    place, namespace = f"{claim.metadata.namespace}/{claim.metadata.name}", pod.metadata.namespace
    return (
        f"PodResourceClaim {entry.name}: ResourceClaim {place} was not created for Pod "
        f"{namespace}/{pod.metadata.name} (Pod is not owner)"
    )


def _can_be_reserved(claim: ResourceClaim, pod: Pod) -> bool:
    """A pod that was put on a node by hand may still use what is allocated already."""
    status = claim.status
    return (
        status.allocation is not None
        and claim.metadata.deletion_timestamp is None
        and len(status.reserved_for) < RESERVED_FOR
        and all(consumer.uid != pod.metadata.uid for consumer in status.reserved_for)
    )


def owning_pod(claim: ResourceClaim) -> OwnerReference | None:
    """The pod that a claim was made for, if it was."""
    for owner in claim.metadata.owner_references:
        if owner.controller and owner.kind == "Pod":
            return owner
    return None


def other_claim(claim: ResourceClaim, pod: Pod) -> str | None:
    """The claim that a pod uses for the entry that this one was made for; None if it uses this one, or none yet."""
    if not is_owned_by(claim, pod):
        return None
    entry = claim.metadata.annotations.get(POD_CLAIM_NAME)
    for status in pod.status.resource_claim_statuses:
        if status.name == entry and status.resource_claim_name != claim.metadata.name:
            return status.resource_claim_name
    return None


def recorded_claims(pod: Pod) -> dict[str, str | None]:
    """The claims that a pod's status names, by the name of the entry."""
    return {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}


def with_statuses(pod: Pod, names: Mapping[str, str]) -> tuple[PodResourceClaimStatus, ...]:
    """The pod's claim statuses with new names, ordered by entry."""
    return tuple(
        PodResourceClaimStatus(name=entry, resource_claim_name=name)
        for entry, name in sorted({**recorded_claims(pod), **names}.items())
    )


def claim_for(pod: Pod, entry: PodResourceClaim, template: ResourceClaimTemplate) -> ResourceClaim:
    """The claim to create for an entry of a pod (4381-71, 4381-78, 4381-133)."""
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, controller=True)
    meta = template.spec.metadata
    return ResourceClaim(
        kind="ResourceClaim",
        api_version="resource.k8s.io/v1",
        metadata=ObjectMeta(
            generate_name=generate_name(pod.metadata.name, entry.name),
            namespace=pod.metadata.namespace,
            labels=meta.labels,
            annotations={**meta.annotations, POD_CLAIM_NAME: entry.name},
            owner_references=(owner,),
        ),
        spec=template.spec.spec,
    )


def generate_name(pod: str, entry: str) -> str:
    """`<pod>-<entry>-`; if that is too long, both are cut in proportion, so that neither disappears."""
    length = len(pod) + len(entry)
    room = LONGEST_BASE - 2
    if length > room:
        pod, entry = pod[: len(pod) * room // length], entry[: len(entry) * room // length]
    return f"{pod.rstrip('.-')}-{entry.rstrip('-')}-"


def consumer(pod: Pod) -> ResourceClaimConsumerReference:
    """A pod as a claim names those who may use it."""
    return ResourceClaimConsumerReference(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)
