"""How to scale the ReplicaSets of a deployment. Pure.

rolling update:  new up while total < replicas + maxSurge;  old down while available > replicas - maxUnavailable
recreate:        old down to nothing ─▶ all old pods gone ─▶ new up
paused:          nothing rolls, but the number of replicas is kept
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dray.api.generated.apps import Deployment, ReplicaSet
from dray.controllers.deployment import replica_sets
from dray.controllers.shares import resolve

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


def wanted_replicas(deployment: Deployment) -> int:
    """How many pods there should be."""
    return 1 if deployment.spec.replicas is None else deployment.spec.replicas


def bounds(deployment: Deployment) -> Bounds:
    """How many pods there may be too many and too few; not both none, or nothing could ever change."""
    rolling = deployment.spec.strategy.rolling_update
    if deployment.spec.strategy.type == "Recreate" or rolling is None:
        return Bounds(0, 0)
    wanted = wanted_replicas(deployment)
    surge = resolve(rolling.max_surge, wanted, up=True)
    unavailable = min(resolve(rolling.max_unavailable, wanted, up=False), wanted)
    return Bounds(surge, unavailable if surge or unavailable else 1)


def size(replica_set: ReplicaSet) -> int:
    """How many pods a ReplicaSet is asked for."""
    return 1 if replica_set.spec.replicas is None else replica_set.spec.replicas


def plan(deployment: Deployment, sets: Sequence[ReplicaSet], *, old_pods_left: bool) -> DeploymentPlan:
    """What to do about the ReplicaSets of a deployment; `old_pods_left` says that pods of old ones may still run."""
    new = replica_sets.find_new(deployment, sets)
    old = replica_sets.by_age(one for one in sets if one is not new)
    revision = replica_sets.next_revision(old)
    if new is not None:
        revision = max(revision, replica_sets.revision_of(new))
    if deployment.spec.paused:
        return DeploymentPlan(scale=_keep_size(deployment, sets), revision=revision if new is not None else 0)
    if deployment.spec.strategy.type == "Recreate":
        return _recreate(deployment, new, old, revision, old_pods_left=old_pods_left)
    return _roll(deployment, new, old, revision)


def _keep_size(deployment: Deployment, sets: Sequence[ReplicaSet]) -> dict[str, int]:
    """With one ReplicaSet in use it is clear which one to scale; a rollout that is halfway stays as it is."""
    in_use = [one for one in sets if size(one)] or replica_sets.by_age(sets)[-1:]
    wanted = wanted_replicas(deployment)
    return {in_use[0].metadata.uid: wanted} if len(in_use) == 1 and size(in_use[0]) != wanted else {}


def _recreate(
    deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet], revision: int, *, old_pods_left: bool
) -> DeploymentPlan:
    scale = {one.metadata.uid: 0 for one in old if size(one)}
    if scale or old_pods_left:
        return DeploymentPlan(scale=scale, revision=revision if new is not None else 0)
    wanted = wanted_replicas(deployment)
    if new is None:
        return DeploymentPlan(create=_make(deployment, wanted, revision), revision=revision)
    if size(new) != wanted:
        scale = {new.metadata.uid: wanted}
    return DeploymentPlan(scale=scale, delete=_surplus(deployment, old), revision=revision)


def _make(deployment: Deployment, replicas: int, revision: int) -> ReplicaSet:
    marks = replica_sets.marks_of(deployment, revision, bounds(deployment).surge)
    return replica_sets.make(deployment, replicas, marks)


def _roll(deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet], revision: int) -> DeploymentPlan:
    wanted, limits = wanted_replicas(deployment), bounds(deployment)
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
