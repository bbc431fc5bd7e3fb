"""The phases of a pod, and what follows from its status alone."""

from __future__ import annotations

from typing import Any, Final

from dray.api.conditions import DISRUPTION_TARGET, READY, find_condition, is_true
from dray.api.generated.core import Binding, Container, ObjectReference, Pod, PodSpec
from dray.api.meta import ObjectMeta, OwnerReference
from dray.api.times import Time

PENDING: Final = "Pending"
RUNNING: Final = "Running"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
FINISHED: Final = (SUCCEEDED, FAILED)
"""The phases that no pod leaves again."""
MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
"""On what an API server shows of a static pod."""
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
"""The annotation that says how much it hurts to lose a pod, next to others of its workload."""


def containers_of(spec: PodSpec) -> tuple[Container, ...]:
    """All that a pod is told to run: what begins it, then the rest. Who debugs it comes and goes, and is not there."""
    return (*spec.init_containers, *spec.containers)


def binding_of(pod: Pod, node: str, owners: tuple[OwnerReference, ...] = ()) -> Binding:
    """What gives just this pod its node, and not a later one of its name; only while its owners are there.

    Kubernetes does not look at owners of a binding, which is never stored.
    """
    meta = ObjectMeta(
        name=pod.metadata.name, namespace=pod.metadata.namespace, uid=pod.metadata.uid, owner_references=owners
    )
    target = ObjectReference(api_version="v1", kind="Node", name=node)
    return Binding(api_version="v1", kind="Binding", metadata=meta, target=target)


def disruption_condition(pod: Pod, reason: str, message: str, now: Time) -> dict[str, Any]:
    """The condition for a patch that says why a pod is about to be deleted (SVS-28, SVS-69)."""
    condition: dict[str, Any] = {
        "type": DISRUPTION_TARGET,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": now,
    }
    if pod.metadata.generation:
        condition["observedGeneration"] = pod.metadata.generation
    return condition


def is_static(pod: Pod) -> bool:
    """Whether the node runs it from a file of its own: nobody else can end it, or start it elsewhere."""
    return MIRROR_ANNOTATION in pod.metadata.annotations


def is_finished(pod: Pod) -> bool:
    """Whether all containers ended and none will start again."""
    return pod.status.phase in FINISHED


def is_active(pod: Pod) -> bool:
    """Whether a pod runs or may still run, and nobody deleted it."""
    return pod.metadata.deletion_timestamp is None and pod.status.phase not in FINISHED


def is_terminating(pod: Pod) -> bool:
    """Whether a pod is being deleted and its containers may still run."""
    return pod.metadata.deletion_timestamp is not None and pod.status.phase not in FINISHED


def is_ready(pod: Pod) -> bool:
    """Whether the pod's node says that it can serve."""
    return is_true(pod.status.conditions, READY)


def available_at(pod: Pod, min_ready_seconds: int) -> Time | None:
    """When a pod has been ready for so long; None if it is not ready."""
    found = find_condition(pod.status.conditions, READY)
    if found is None or found.status != "True":
        return None
    since = found.last_transition_time or pod.metadata.creation_timestamp or Time("")
    if not min_ready_seconds or not since:
        return since
    return since.after(min_ready_seconds)
