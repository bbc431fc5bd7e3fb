"""A pod's claims: which objects they are, and whether the pod may use them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from dray.api.generated.core import Pod
from dray.api.resource import ResourceClaim
from dray.api.resource.claim import RESERVED_FOR

ClaimLookup = Callable[[str, str], ResourceClaim | None]

NOT_CREATED = "ResourceClaim not created yet"


class PodClaims(msgspec.Struct, frozen=True):
    """The claims of a pod: `problem` says why it cannot go on, if it cannot."""

    claims: tuple[ResourceClaim, ...] = ()
    problem: str = ""


def find_claims(pod: Pod, look_up: ClaimLookup) -> PodClaims:
    """The claims that a pod names, directly or through templates."""
    made = {status.name: status for status in pod.status.resource_claim_statuses}
    found = []
    for reference in pod.spec.resource_claims:
        name = reference.resource_claim_name
        template = reference.resource_claim_template_name
        if template:
            status = made.get(reference.name)
            if status is None:
                return PodClaims(problem=f"{NOT_CREATED}: claim {reference.name} of template {template}")
            name = status.resource_claim_name
            if not name:
                continue  # no claim was needed (4381-75)
        claim = look_up(pod.metadata.namespace, name or "")
        if claim is None:
            return PodClaims(problem=f"{NOT_CREATED}: {name}" if template else f'resourceclaim "{name}" not found')
        problem = _problem(pod, claim, from_template=bool(template))
        if problem:
            return PodClaims(problem=problem)
        if claim not in found:  # several entries may be about the same claim
            found.append(claim)
    return PodClaims(tuple(found))


def _problem(pod: Pod, claim: ResourceClaim, *, from_template: bool) -> str:
    name = claim.metadata.name
    if claim.metadata.deletion_timestamp is not None:
        return f'resourceclaim "{name}" is being deleted'
    if from_template and not is_owned_by(claim, pod):
        return f'resourceclaim "{name}" was not created for pod {pod.metadata.name}: pod is not its owner'
    if not is_reserved_for(claim, pod) and len(claim.status.reserved_for) >= RESERVED_FOR:
        return f'resourceclaim "{name}" is in use by {RESERVED_FOR} others, which is the most'
    return ""


def is_owned_by(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether a claim was made for just this pod (4381-135)."""
    return any(owner.controller and owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references)


def is_reserved_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether a pod is among those that may use a claim."""
    return any(consumer.uid == pod.metadata.uid for consumer in claim.status.reserved_for)
