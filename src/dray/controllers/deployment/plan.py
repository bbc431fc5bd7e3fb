"""How to scale the ReplicaSets of a deployment. Pure.

rolling update:  new up while total < replicas + maxSurge;  old down while available > replicas - maxUnavailable
recreate:        old down to nothing ─▶ all old pods gone ─▶ new up
paused:          nothing rolls, but the number of replicas is kept
resized:         before anything rolls on, each ReplicaSet in use gets its share of the new number
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dray.api.generated.apps import Deployment, ReplicaSet
from dray.api.shares import resolve
from dray.controllers.deployment import replica_sets
from dray.controllers.deployment.replica_sets import size

HISTORY = 10


class DeploymentPlan(NamedTuple):
    """What to do about the ReplicaSets."""

    create: ReplicaSet | None = None
    scale: Mapping[str, int] = {}
    """The number of replicas by uid of a ReplicaSet, where it is to change."""
    delete: tuple[ReplicaSet, ...] = ()
    revision: int = 0
    """The number of the current rollout; 0 if none has begun."""


class Bounds(NamedTuple):
    """How far a rolling update may go."""

    surge: int
    unavailable: int


def bounds(deployment: Deployment) -> Bounds:
    """How many pods there may be too many and too few; not both none, or nothing could ever change."""
    rolling = deployment.spec.strategy.rolling_update
    if deployment.spec.strategy.type == "Recreate" or rolling is None:
        return Bounds(0, 0)
    wanted = size(deployment)
    surge = resolve(rolling.max_surge, wanted, up=True)
    unavailable = min(resolve(rolling.max_unavailable, wanted, up=False), wanted)
    return Bounds(surge, unavailable if surge or unavailable else 1)


def plan(deployment: Deployment, sets: Sequence[ReplicaSet], *, old_pods_left: bool) -> DeploymentPlan:
    """What to do about the ReplicaSets of a deployment; `old_pods_left` says that pods of old ones may still run."""
    new = replica_sets.find_new(deployment, sets)
    old = replica_sets.by_age(one for one in sets if one is not new)
    revision = replica_sets.next_revision(old)
    if new is not None:
        revision = max(revision, replica_sets.revision_of(new))
    is_resized = _is_resized(deployment, sets)
    if deployment.spec.paused or is_resized:
        is_halfway = sum(size(one) > 0 for one in sets) > 1
        scale = {} if is_halfway and not is_resized else _resize(deployment, new, sets)
        return DeploymentPlan(scale=scale, revision=revision if new is not None else 0)
    if deployment.spec.strategy.type == "Recreate":
        return _recreate(deployment, new, old, revision, old_pods_left=old_pods_left)
    return _roll(deployment, new, old, revision)


def _is_resized(deployment: Deployment, sets: Sequence[ReplicaSet]) -> bool:
    """Whether another number of replicas is wanted than when the ReplicaSets that are in use got their sizes."""
    wanted = str(size(deployment))
    return any(size(one) and one.metadata.annotations.get(replica_sets.DESIRED, wanted) != wanted for one in sets)


def _resize(deployment: Deployment, new: ReplicaSet | None, sets: Sequence[ReplicaSet]) -> dict[str, int]:
    """Sizes for another number of replicas. A rollout that is halfway stays so: each ReplicaSet gets its share.

    So a rollout that is stuck does not get more of what does not work. What does not divide goes to the largest.
    """
    in_use = [one for one in sets if size(one)] or replica_sets.by_age(sets)[-1:]
    wanted = size(deployment)
    if len(in_use) <= 1:
        sizes = {one.metadata.uid: wanted for one in in_use}
    elif new is not None and size(new) == new.status.available_replicas == wanted:
        sizes = {one.metadata.uid: 0 for one in in_use if one is not new}
    else:
        sizes = _shares(in_use, wanted + bounds(deployment).surge if wanted else 0)
    before = {one.metadata.uid: size(one) for one in in_use}
    return {uid: after for uid, after in sizes.items() if after != before[uid]}


def _shares(in_use: Sequence[ReplicaSet], limit: int) -> dict[str, int]:
    """`limit` pods, shared out in proportion to the sizes that there are."""
    newest_first = replica_sets.by_age(in_use)[::-1]
    largest_first = sorted(newest_first, key=size, reverse=True)
    before = sum(map(size, in_use))
    sizes: dict[str, int] = {}
    left = limit - before
    for one in largest_first:
        change = int(size(one) * limit / before + 0.5) - size(one)
        change = max(min(change, left), 0) if left > 0 else min(max(change, left), 0)
        sizes[one.metadata.uid] = size(one) + change
        left -= change
    largest = largest_first[0].metadata.uid
    sizes[largest] = max(sizes[largest] + left, 0)
    return sizes


def _recreate(
    deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet], revision: int, *, old_pods_left: bool
) -> DeploymentPlan:
    scale = {one.metadata.uid: 0 for one in old if size(one)}
    if scale or old_pods_left:
        return DeploymentPlan(scale=scale, revision=revision if new is not None else 0)
    wanted = size(deployment)
    if new is None:
        return DeploymentPlan(create=_make(deployment, wanted, revision), revision=revision)
    if size(new) != wanted:
        scale = {new.metadata.uid: wanted}
    return DeploymentPlan(scale=scale, delete=_surplus(deployment, old), revision=revision)


def _make(deployment: Deployment, replicas: int, revision: int) -> ReplicaSet:
    marks = replica_sets.marks_of(deployment, revision, bounds(deployment).surge)
    return replica_sets.make(deployment, replicas, marks)


def _roll(deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet], revision: int) -> DeploymentPlan:
    wanted, limits = size(deployment), bounds(deployment)
    in_old = sum(map(size, old))
    if new is None:
        start = min(wanted, max(wanted + limits.surge - in_old, 0))
        return DeploymentPlan(create=_make(deployment, start, revision), revision=revision)
    scale: dict[str, int] = {}
    grown = size(new)
    if grown > wanted:
        grown = wanted
    else:
        grown += max(min(wanted + limits.surge - in_old - grown, wanted - grown), 0)
    if grown != size(new):
        scale[new.metadata.uid] = grown
    else:
        scale.update(_shrink(new, old, wanted - limits.unavailable))
    return DeploymentPlan(scale=scale, delete=_surplus(deployment, old), revision=revision)


def _shrink(new: ReplicaSet, old: Sequence[ReplicaSet], needed: int) -> dict[str, int]:
    """Takes pods from old ReplicaSets: first those that are not available, then as many as are not needed."""
    sizes = {one.metadata.uid: size(one) for one in old}
    new_unavailable = max(size(new) - new.status.available_replicas, 0)
    spare = sum(sizes.values()) + size(new) - needed - new_unavailable
    for one in old:
        useless = min(max(sizes[one.metadata.uid] - one.status.available_replicas, 0), max(spare, 0))
        sizes[one.metadata.uid] -= useless
        spare -= useless
    available = new.status.available_replicas + sum(
        min(one.status.available_replicas, sizes[one.metadata.uid]) for one in old
    )
    spare = min(max(available - needed, 0), max(spare, 0))
    for one in old:
        taken = min(sizes[one.metadata.uid], spare)
        sizes[one.metadata.uid] -= taken
        spare -= taken
    return {one.metadata.uid: sizes[one.metadata.uid] for one in old if sizes[one.metadata.uid] != size(one)}


def _surplus(deployment: Deployment, old: Sequence[ReplicaSet]) -> tuple[ReplicaSet, ...]:
    """Old ReplicaSets beyond those that are kept to go back to."""
    limit = deployment.spec.revision_history_limit
    empty = [
        one for one in old if not size(one) and not one.status.replicas and one.metadata.deletion_timestamp is None
    ]
    empty.sort(key=replica_sets.revision_of)
    return tuple(empty[: max(len(empty) - (HISTORY if limit is None else limit), 0)])
