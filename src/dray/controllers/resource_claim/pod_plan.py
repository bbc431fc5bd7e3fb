"""What a pod with claims needs from the claim controller. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from dray.api.extended_resources import is_for_extended
from dray.api.generated.core import Pod, PodResourceClaim
from dray.api.generated.scheduling import PodGroup
from dray.api.pod_claims import (
    POD_CLAIM_NAME,
    FindClaim,
    is_reserved_for,
    lacks_claim,
    recorded_claims,
)
from dray.api.pod_groups import group_of, is_made_for_group_of, shared_entry
from dray.api.pods import is_finished
from dray.api.references import full_name, is_owned_by
from dray.api.resource import ResourceClaim
from dray.api.resource.claim import RESERVED_FOR

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


def plan_pod(pod: Pod, find: FindClaim, find_made: FindMade, group: PodGroup | None = None) -> PodPlan:
    """What to do for a pod, of a group if it is of one. What it shares with others is made for the group."""
    if not pod.spec.resource_claims or pod.metadata.deletion_timestamp is not None or is_done(pod):
        return NOTHING
    if group is None and group_of(pod) is not None:
        return NOTHING  # nobody knows yet which claims are its own
    recorded = recorded_claims(pod)
    make: list[PodResourceClaim] = []
    found: list[tuple[str, str]] = []
    reserve: list[ResourceClaim] = []
    problems: list[str] = []
    for entry in pod.spec.resource_claims:
        name = entry.resource_claim_name
        if entry.resource_claim_template_name is not None:
            name = recorded.get(entry.name)
            lacks = lacks_claim(entry, recorded, find)
            told = find(name) if name else None
            is_shared = group is not None and shared_entry(group, entry) is not None
            if told is not None and not (is_made_for_group_of(told, pod) if is_shared else is_owned_by(told, pod)):
                problems.append(_foreign(entry, told, pod))
                if pod.spec.node_name:
                    continue  # whoever bound it did so with that claim
                lacks = True
            if lacks:
                existing = _find_shared(group, entry, find) if is_shared else find_made().get(entry.name)
                if existing is None:
                    if not is_shared:
                        make.append(entry)
                    continue
                if existing != name:
                    found.append((entry.name, existing))
                name = existing
        claim = find(name) if name else None
        if claim is not None and pod.spec.node_name and _can_be_reserved(claim, pod):
            reserve.append(claim)
    return PodPlan(tuple(make), tuple(found), tuple(reserve), tuple(problems))


def _find_shared(group: PodGroup | None, entry: PodResourceClaim, find: FindClaim) -> str | None:
    """The claim that was made for a group, once its status names it and it is there."""
    for status in group.status.resource_claim_statuses if group is not None else ():
        if status.name == entry.name and status.resource_claim_name:
            return status.resource_claim_name if find(status.resource_claim_name) is not None else None
    return None


def _foreign(entry: PodResourceClaim, claim: ResourceClaim, pod: Pod) -> str:
    return (
        f"PodResourceClaim {entry.name}: ResourceClaim {full_name(claim)} was not created for Pod "
        f"{full_name(pod)} (Pod is not owner)"
    )


def _can_be_reserved(claim: ResourceClaim, pod: Pod) -> bool:
    """A pod that was put on a node by hand may still use what is allocated already."""
    status = claim.status
    return (
        status.allocation is not None
        and claim.metadata.deletion_timestamp is None
        and len(status.reserved_for) < RESERVED_FOR
        and not is_reserved_for(claim, pod)
    )


def other_claim(claim: ResourceClaim, pod: Pod) -> str | None:
    """The claim that a pod uses for the entry that this one was made for; None if it uses this one, or none yet."""
    if not is_owned_by(claim, pod):
        return None
    extended = pod.status.extended_resource_claim_status
    if is_for_extended(claim):
        name = extended.resource_claim_name if extended is not None else None
        return name if name != claim.metadata.name else None
    entry = claim.metadata.annotations.get(POD_CLAIM_NAME)
    for status in pod.status.resource_claim_statuses:
        if status.name == entry and status.resource_claim_name != claim.metadata.name:
            return status.resource_claim_name
    return None
