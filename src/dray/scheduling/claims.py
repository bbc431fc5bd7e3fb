"""A pod's claims: which objects they are, and whether the pod may use them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from dray.api.generated.core import Pod
from dray.api.node_match import NodeSelectorError, matches
from dray.api.pod_claims import is_made_for, is_reserved_for
from dray.api.resource import ResourceClaim
from dray.api.resource.claim import RESERVED_FOR
from dray.scheduling.reasons import (
    ClaimCrowded,
    ClaimDeleted,
    ClaimNotCreated,
    ClaimNotFound,
    ClaimOfAnother,
    ClaimReason,
)

ClaimLookup = Callable[[str, str], ResourceClaim | None]


class PodClaims(msgspec.Struct, frozen=True):
    """The claims of a pod: `problem` says why it cannot go on, if it cannot."""

    claims: tuple[ResourceClaim, ...] = ()
    problem: ClaimReason | None = None

    @property
    def are_made(self) -> bool:
        """Whether none of them is still to be made from a template."""
        return not isinstance(self.problem, ClaimNotCreated)


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
                return PodClaims(problem=ClaimNotCreated(reference.name, template))
            name = status.resource_claim_name
            if not name:
                continue  # no claim was needed (4381-75)
        claim = look_up(pod.metadata.namespace, name or "")
        if claim is None:
            gone = ClaimNotCreated(reference.name, template, name or "") if template else ClaimNotFound(name or "")
            return PodClaims(problem=gone)
        problem = _problem(pod, claim, from_template=bool(template))
        if problem is not None:
            return PodClaims(problem=problem)
        if claim not in found:  # several entries may be about the same claim
            found.append(claim)
    return PodClaims(tuple(found))


def _problem(pod: Pod, claim: ResourceClaim, *, from_template: bool) -> ClaimReason | None:
    name = claim.metadata.name
    if claim.metadata.deletion_timestamp is not None:
        return ClaimDeleted(name)
    if from_template and not is_made_for(claim, pod):
        return ClaimOfAnother(name, pod.metadata.name)
    if len(claim.status.reserved_for) >= RESERVED_FOR and not is_reserved_for(claim, pod):
        return ClaimCrowded(name)
    return None


def is_in_reach(claim: ResourceClaim, node: str, labels: Mapping[str, str]) -> bool:
    """Whether the devices that a claim has can be used on a node. A node selector that cannot be read matches none."""
    selector = claim.status.allocation.node_selector if claim.status.allocation is not None else None
    try:
        return selector is None or matches(selector, node, labels)
    except NodeSelectorError:
        return False
