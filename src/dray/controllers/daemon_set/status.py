"""What the status of a DaemonSet says, and when it may change without any event. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from dray.api.generated.apps import DaemonSetStatus
from dray.api.pods import available_at
from dray.api.times import Time
from dray.controllers.daemon_set.plan import DaemonSetState


def plan_status(state: DaemonSetState, collisions: int | None) -> DaemonSetStatus:
    """Counts nodes; of several pods on a node the oldest is the one that counts."""
    seconds = state.daemon_set.spec.min_ready_seconds
    wanted = current = ready = available = updated = strays = 0
    for node, verdict in state.verdicts.items():
        pods = state.pods.get(node, ())
        if not verdict.should_run:
            strays += bool(pods)
            continue
        wanted += 1
        if pods:
            pod = pods[0]
            at = available_at(pod, seconds)
            current += 1
            ready += at is not None
            available += at is not None and at <= state.now
            updated += state.is_updated(pod)
    return replace(
        state.daemon_set.status,
        desired_number_scheduled=wanted,
        current_number_scheduled=current,
        number_misscheduled=strays,
        number_ready=ready,
        number_available=available,
        number_unavailable=wanted - available,
        updated_number_scheduled=updated,
        observed_generation=state.daemon_set.metadata.generation,
        collision_count=collisions,
    )


def next_available(state: DaemonSetState) -> Time | None:
    """When the next pod that is ready has been so for long enough; None if there is none to wait for."""
    seconds = state.daemon_set.spec.min_ready_seconds
    if not seconds:
        return None
    times = [available_at(pod, seconds) for pods in state.pods.values() for pod in pods]
    return min((at for at in times if at is not None and at > state.now), default=None)
