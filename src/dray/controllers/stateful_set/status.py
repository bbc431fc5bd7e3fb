"""What the status of a StatefulSet says, and when it may change without any event. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from dray.api.generated.apps import StatefulSetStatus
from dray.api.generated.core import Pod
from dray.api.pods import RUNNING, available_at, is_ready
from dray.api.times import Time
from dray.controllers.stateful_set.members import ordinals, revision_of
from dray.controllers.stateful_set.plan import StatefulSetState


def plan_status(
    state: StatefulSetState, pods: Sequence[Pod], current: str, collisions: int | None
) -> StatefulSetStatus:
    """Counts pods; the newest revision becomes the current one when all pods are of it and ready."""
    stateful_set = state.stateful_set
    ready = [pod for pod in pods if pod.status.phase == RUNNING and is_ready(pod)]
    staying = [revision_of(pod) for pod in pods if pod.metadata.deletion_timestamp is None]
    updated = staying.count(state.update)
    wanted = len(ordinals(stateful_set))
    if updated == len(ready) == len(pods) == wanted:
        current = state.update
    return replace(
        stateful_set.status,
        replicas=len(pods),
        ready_replicas=len(ready),
        available_replicas=sum(map(state.is_available, ready)),
        current_replicas=staying.count(current),
        updated_replicas=updated,
        current_revision=current,
        update_revision=state.update,
        observed_generation=stateful_set.metadata.generation,
        collision_count=collisions or 0,
    )


def next_available(state: StatefulSetState) -> Time | None:
    """When the next pod that is ready has been so for long enough; None if there is none to wait for."""
    seconds = state.stateful_set.spec.min_ready_seconds
    times = [available_at(pod, seconds) for pod in state.pods.values()] if seconds else []
    return min((at for at in times if at is not None and at > state.now), default=None)
