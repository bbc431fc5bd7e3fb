"""What controllers ask of a pod."""

from __future__ import annotations

from datetime import timedelta

from dray.api.generated.core import Pod, PodCondition
from dray.api.meta import Object, OwnerReference
from dray.api.times import Time

FINISHED = ("Succeeded", "Failed")


def is_finished(pod: Pod) -> bool:
    """Whether all containers ended and none will start again."""
    return pod.status.phase in FINISHED


def is_active(pod: Pod) -> bool:
    """Whether a pod runs or may still run."""
    return not is_finished(pod) and pod.metadata.deletion_timestamp is None


def is_terminating(pod: Pod) -> bool:
    """Whether a pod is being deleted and its containers may still run."""
    return not is_finished(pod) and pod.metadata.deletion_timestamp is not None


def condition(pod: Pod, type_: str) -> PodCondition | None:
    """One of the pod's conditions."""
    return next((one for one in pod.status.conditions if one.type == type_), None)


def is_ready(pod: Pod) -> bool:
    """Whether the pod's node says that it can serve."""
    found = condition(pod, "Ready")
    return found is not None and found.status == "True"


def available_at(pod: Pod, min_ready_seconds: int) -> Time | None:
    """When a pod has been ready for so long; None if it is not ready."""
    found = condition(pod, "Ready")
    if found is None or found.status != "True":
        return None
    since = found.last_transition_time or pod.metadata.creation_timestamp or Time("")
    if not min_ready_seconds or not since:
        return since
    return Time.of(since.datetime() + timedelta(seconds=min_ready_seconds))


def controller_of(obj: Object) -> OwnerReference | None:
    """The owner that manages an object."""
    for owner in obj.metadata.owner_references:
        if owner.controller:
            return owner
    return None
