"""What a claim needs from the claim controller when its consumers come and go. Pure.

    reserved by live pods or others ── nothing to do
    last consumer gone ── clear allocation and reservation ─▶ drop finalizer ─▶ delete, if made for a pod that is done
    being deleted, unused ── clear allocation, if any ─▶ drop finalizer (4381-140)

A claim that is allocated and merely not reserved yet stays: its scheduler may be about to reserve it.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum, auto
from typing import NamedTuple

from msgspec.structs import replace

from dray.api.pod_claims import is_pod
from dray.api.pod_groups import is_group
from dray.api.resource import ResourceClaim, ResourceClaimConsumerReference, ResourceClaimStatus
from dray.api.resource.claim import FINALIZER


class Step(Enum):
    """What follows once the status is written."""

    DROP_FINALIZER = auto()
    DELETE = auto()


class ClaimPlan(NamedTuple):
    """The status to write, if it is to change, and the steps after it, in order."""

    status: ResourceClaimStatus | None = None
    steps: tuple[Step, ...] = ()

    def __bool__(self) -> bool:
        return self.status is not None or bool(self.steps)


def is_judged(consumer: ResourceClaimConsumerReference) -> bool:
    """Whether it is known here when a user is gone: of pods and of PodGroups it is.

    Consumers of other kinds are left to who added them (4381-61, 4381-137).
    """
    return is_pod(consumer) or is_group(consumer)


def plan_claim(claim: ResourceClaim, gone: Collection[str], *, is_needless: bool) -> ClaimPlan:
    """What to do about a claim.

    `gone` are the uids of consumers that are pods, or groups of them, and do not need the claim any more; `is_needless`
    says that the claim was made for a pod that does not, or that has another one.
    """
    status = claim.status
    left = tuple(one for one in status.reserved_for if not (is_judged(one) and one.uid in gone))
    released = len(left) < len(status.reserved_for)
    ours = FINALIZER in claim.metadata.finalizers
    deleting = claim.metadata.deletion_timestamp is not None
    unused = not left and (released or deleting) and ours
    new = status
    if released:
        new = replace(new, reserved_for=left)
    if unused and status.allocation is not None:
        new = replace(new, allocation=None, devices=())  # 4381-138
    steps = []
    if unused and new.allocation is None:
        steps.append(Step.DROP_FINALIZER)
    if not left and is_needless and not deleting:
        steps.append(Step.DELETE)
    return ClaimPlan(new if new is not status else None, tuple(steps))
