"""What a deletion does besides taking an object away: what is owned goes, what was held is released. Pure.

namespace  all that is in it goes
owner      what only it owned goes, as the garbage collector has it: pods of a workload, slices of a node
pod        its claims lose the reservation; one that nobody else uses is deallocated, or goes if it was made for the pod
claim      while pods use it, it is only marked: its finalizer keeps it until the last of them is gone
pod group  the same, while it has pods
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime

from msgspec.structs import replace

from dray.api.generated.core import Namespace, Pod
from dray.api.generated.scheduling import PodGroup
from dray.api.meta import Object
from dray.api.pod_claims import is_reserved_for
from dray.api.pod_groups import FINALIZER as GROUP_FINALIZER
from dray.api.references import full_name, is_owned_by
from dray.api.registry import by_kind
from dray.api.resource import ResourceClaim
from dray.api.resource.claim import FINALIZER, ResourceClaimStatus
from dray.api.times import Time
from dray.prose.wording import names, tell_results
from dray.scheduling.pod_info import identified
from dray.snapshot.snapshot import Snapshot
from dray.what_if.group_changes import members

MAX_NAMED = 3
"""Claims that go of which each is told by itself."""


def delete(before: Snapshot, refs: Iterable[str], now: datetime) -> Snapshot:
    """The snapshot after objects, named as `kind/name` or `kind/namespace/name`, were deleted. Raises SnapshotError."""
    after = _with_what_goes_too(before, before.without(*refs))
    pairs = before.differing(after).values()
    pods = [identified(here) for here, _ in pairs if isinstance(here, Pod)]
    deleted = [here for here, _ in pairs if isinstance(here, ResourceClaim)]
    marked = Time.of(now)
    kept: list[Object] = []
    for claim in deleted:
        left = released(claim, pods)
        if left.status.reserved_for:
            kept.append(replace(left, metadata=replace(left.metadata, deletion_timestamp=marked)))
    groups = [here for here, there in pairs if isinstance(here, PodGroup) and there is None]
    kept += [
        replace(group, metadata=replace(group.metadata, deletion_timestamp=marked))
        for group in groups
        if members(after, group)
    ]
    gone: list[str] = []
    for claim in after.objects(ResourceClaim) if pods else ():
        left = released(claim, pods)
        if left is claim:
            continue
        goes = any(is_owned_by(claim, pod) for pod in pods) or _is_only_protected(claim, FINALIZER)
        if goes and not left.status.reserved_for:
            gone.append(f"resourceclaim/{full_name(claim)}")
        else:
            kept.append(left)
    marked_groups = (one for one in after.objects(PodGroup) if pods and _is_only_protected(one, GROUP_FINALIZER))
    gone += [f"podgroup/{full_name(group)}" for group in marked_groups if not members(after, group)]
    return after.with_typed(kept).without(*gone)


def _is_only_protected(obj: Object, finalizer: str) -> bool:
    """Whether it is being deleted, and only its users keep it."""
    return obj.metadata.deletion_timestamp is not None and set(obj.metadata.finalizers) <= {finalizer}


def _with_what_goes_too(before: Snapshot, after: Snapshot) -> Snapshot:
    """Without what is in namespaces that are gone, and what nobody owns any more."""
    gone = [here for here, there in before.differing(after).values() if here is not None and there is None]
    while gone:
        namespaces = {one.metadata.name for one in gone if isinstance(one, Namespace)}
        owners = {_identity(one) for one in gone}
        gone = [one for one in after.objects(Object) if one.metadata.namespace in namespaces or _is_left(one, owners)]
        after = after.without(*(f"{by_kind(one.api_version, one.kind).resource}/{full_name(one)}" for one in gone))
    return after


def _identity(obj: Object) -> tuple[str, str, str]:
    """How owner references name it: dumps may lack uids, of which no two objects have one."""
    return obj.kind, obj.metadata.name, obj.metadata.uid


def _is_left(obj: Object, gone: Collection[tuple[str, str, str]]) -> bool:
    """Whether all that own an object are gone. One that went earlier took what it owned with it then."""
    owners = obj.metadata.owner_references
    return bool(owners) and all((one.kind, one.name, one.uid) in gone for one in owners)


def tell_released(pairs: Collection[tuple[Object | None, Object | None]]) -> Iterator[str]:
    """A sentence for each claim that a deletion has released, or only marked; one for all that go, if they are many."""
    gone = [here for here, there in pairs if isinstance(here, ResourceClaim) and there is None]
    held = [one for claim in gone if claim.status.allocation for one in claim.status.allocation.devices.results]
    are_many = len(gone) > MAX_NAMED
    if are_many and held:
        yield f"{len(gone)} claims go, and release {names(tell_results(held), MAX_NAMED)}"
    for here, there in pairs:
        if isinstance(there, PodGroup) and there.metadata.deletion_timestamp is not None:
            yield f"PodGroup {full_name(there)} has pods: it is marked, and goes once none of them is left"
        if are_many and there is None:
            continue
        if not isinstance(here, ResourceClaim) or here.status.allocation is None:
            continue
        devices = names(tell_results(here.status.allocation.devices.results), 3)
        if there is None:
            yield f"claim {full_name(here)} goes, and releases {devices}"
        elif isinstance(there, ResourceClaim) and there.status.allocation is None:
            yield f"claim {full_name(here)} is released, with {devices}"
        elif there.metadata.deletion_timestamp is not None and here.metadata.deletion_timestamp is None:
            users = names([one.name for one in here.status.reserved_for], 3)
            yield f"claim {full_name(here)} is in use: it keeps {devices}, and goes once nobody uses it ({users})"


def released(claim: ResourceClaim, pods: Iterable[Pod]) -> ResourceClaim:
    """The claim once these pods are gone; itself if they do not use it."""
    users = {pod.metadata.uid for pod in pods if pod.metadata.namespace == claim.metadata.namespace}
    names_ = {pod.metadata.name for pod in pods if is_reserved_for(claim, pod)}
    left = tuple(one for one in claim.status.reserved_for if one.uid not in users and one.name not in names_)
    if left == claim.status.reserved_for:
        return claim
    status = replace(claim.status, reserved_for=left) if left else ResourceClaimStatus()
    return replace(claim, status=status)
