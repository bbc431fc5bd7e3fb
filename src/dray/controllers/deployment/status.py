"""What the status of a deployment says of its rollout. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from dray.api.conditions import find_condition, with_condition, without_condition
from dray.api.generated.apps import Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet
from dray.api.times import Time
from dray.controllers.deployment.plan import bounds
from dray.controllers.deployment.replica_sets import find_new, size

AVAILABLE, PROGRESSING, FAILURE = "Available", "Progressing", "ReplicaFailure"
NO_DEADLINE = 2**31 - 1


def plan_status(deployment: Deployment, sets: Sequence[ReplicaSet], now: Time) -> DeploymentStatus:
    """The numbers, and whether the deployment is available and makes progress."""
    new = find_new(deployment, sets)
    available = sum(one.status.available_replicas for one in sets)
    status = replace(
        deployment.status,
        observed_generation=deployment.metadata.generation,
        replicas=sum(one.status.replicas for one in sets),
        updated_replicas=new.status.replicas if new is not None else 0,
        ready_replicas=sum(one.status.ready_replicas for one in sets),
        available_replicas=available,
        unavailable_replicas=max(sum(map(size, sets)) - available, 0),
        terminating_replicas=sum(one.status.terminating_replicas or 0 for one in sets),
    )
    status = _with(status, _available(deployment, available), now)
    failure = next((found for one in sets for found in one.status.conditions if found.type == FAILURE), None)
    if failure is not None:
        status = _with(status, (FAILURE, "True", failure.reason, failure.message), now)
    else:
        status = replace(status, conditions=without_condition(status.conditions, FAILURE))
    return _with_progress(deployment, status, new, now)


def _available(deployment: Deployment, available: int) -> tuple[str, str, str, str]:
    if available >= size(deployment) - bounds(deployment).unavailable:
        return AVAILABLE, "True", "MinimumReplicasAvailable", "Deployment has minimum availability."
    return AVAILABLE, "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    """Whether all pods are new and available, and no old ones are left."""
    wanted = size(deployment)
    return status.updated_replicas == status.replicas == status.available_replicas == wanted


def deadline(deployment: Deployment, status: DeploymentStatus) -> Time | None:
    """When a rollout that makes no progress counts as failed."""
    seconds = deployment.spec.progress_deadline_seconds
    known = find_condition(status.conditions, PROGRESSING)
    if seconds is None or seconds >= NO_DEADLINE or known is None or known.last_update_time is None:
        return None
    if known.reason in ("NewReplicaSetAvailable", "DeploymentPaused") or known.status == "False":
        return None
    return known.last_update_time.after(seconds)


def _with_progress(
    deployment: Deployment, status: DeploymentStatus, new: ReplicaSet | None, now: Time
) -> DeploymentStatus:
    subject = f'ReplicaSet "{new.metadata.name}"' if new is not None else "Deployment"
    if deployment.spec.paused:
        return _with(status, (PROGRESSING, "Unknown", "DeploymentPaused", "Deployment is paused"), now)
    if is_complete(deployment, status):
        told = (PROGRESSING, "True", "NewReplicaSetAvailable", f"{subject} has successfully progressed.")
        return _with(status, told, now)
    limit = deadline(deployment, deployment.status)
    if _advanced(deployment.status, status):
        return _with(status, (PROGRESSING, "True", "ReplicaSetUpdated", f"{subject} is progressing."), now, touch=True)
    if limit is not None and now > limit:
        told = (PROGRESSING, "False", "ProgressDeadlineExceeded", f"{subject} has timed out progressing.")
        return _with(status, told, now)
    if find_condition(status.conditions, PROGRESSING) is None:
        return _with(status, (PROGRESSING, "True", "NewReplicaSetCreated", f"Created new {subject}"), now)
    return status


def _advanced(old: DeploymentStatus, new: DeploymentStatus) -> bool:
    return (
        new.observed_generation > old.observed_generation
        or new.updated_replicas > old.updated_replicas
        or new.replicas - new.updated_replicas < old.replicas - old.updated_replicas
        or new.ready_replicas > old.ready_replicas
        or new.available_replicas > old.available_replicas
    )


def _with(
    status: DeploymentStatus, told: tuple[str, str, str, str], now: Time, *, touch: bool = False
) -> DeploymentStatus:
    """The status with a condition; `touch` says that it was found again now, although it says the same."""
    type_, value, reason, message = told
    known = find_condition(status.conditions, type_)
    if known is not None and (known.status, known.reason, known.message) == (value, reason, message) and not touch:
        return status
    new = DeploymentCondition(
        type=type_,
        status=value,
        reason=reason,
        message=message,
        last_update_time=now,
        last_transition_time=now,
    )
    return replace(status, conditions=with_condition(status.conditions, new))
