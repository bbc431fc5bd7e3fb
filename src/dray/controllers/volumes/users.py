"""Which pods use a claim for storage: those that name it, and the one that it was made for."""

from __future__ import annotations

from typing import Final

from dray.api.generated.core import PersistentVolumeClaim, Pod
from dray.api.references import ObjectName, is_owned_by
from dray.client import Informer
from dray.scheduling.pod_info import volume_claims

_INDEX: Final = "by volume claim"


def claims_of(pod: Pod) -> tuple[ObjectName, ...]:
    """The claims that a pod has volumes of."""
    return tuple(ObjectName(pod.metadata.namespace, name) for name in volume_claims(pod))


def keep_users(pods: Informer[Pod]) -> None:
    """Has an informer know `users_of` claims."""
    pods.add_index(_INDEX, claims_of)


def users_of(pods: Informer[Pod], claim: ObjectName) -> list[Pod]:
    """The pods that have a volume of a claim."""
    return pods.by_index(_INDEX, claim)


def is_in_use(claim: PersistentVolumeClaim, pods: Informer[Pod]) -> bool:
    """Whether a claim must stay: a pod that has a node may use it.

    The pod that it was made for may itself be waiting for the claim to go; it is done with it when its containers are.
    """
    return any(
        pod.spec.node_name and not (is_shut_down(pod) and is_owned_by(claim, pod))
        for pod in users_of(pods, ObjectName.of(claim))
    )


def is_shut_down(pod: Pod) -> bool:
    """Whether a pod goes, and nothing of it runs any more."""
    return pod.metadata.deletion_timestamp is not None and pod.metadata.deletion_grace_period_seconds == 0
