"""What a PodGroup that shares claims needs from the claim controller. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from dray.api.generated.scheduling import PodGroup, PodGroupResourceClaim, PodGroupResourceClaimStatus
from dray.api.pod_claims import FindClaim, recorded_claims
from dray.api.references import is_owned_by
from dray.controllers.resource_claim.pod_plan import FindMade


class GroupPlan(msgspec.Struct, frozen=True):
    """Claims to make, and claims that exist but are not in the group's status."""

    make: tuple[PodGroupResourceClaim, ...] = ()
    found: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.make or self.found)


def plan_group(group: PodGroup, find: FindClaim, find_made: FindMade) -> GroupPlan:
    """What to do for a group."""
    if group.metadata.deletion_timestamp is not None:
        return GroupPlan()
    recorded = recorded_claims(group)
    make: list[PodGroupResourceClaim] = []
    found: list[tuple[str, str]] = []
    for entry in group.spec.resource_claims:
        if entry.resource_claim_template_name is None:
            continue
        name = recorded.get(entry.name)
        claim = find(name) if name else None
        if claim is not None and is_owned_by(claim, group):
            continue
        existing = find_made().get(entry.name)
        if existing is None:
            make.append(entry)
        elif existing != name:
            found.append((entry.name, existing))
    return GroupPlan(tuple(make), tuple(found))


def with_shared(group: PodGroup, names: Mapping[str, str]) -> tuple[PodGroupResourceClaimStatus, ...]:
    """The group's claim statuses with new names, ordered by entry."""
    return tuple(
        PodGroupResourceClaimStatus(name=entry, resource_claim_name=name)
        for entry, name in sorted({**recorded_claims(group), **names}.items())
    )
