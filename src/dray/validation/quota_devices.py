"""Devices in quotas by the names of extended resources: `requests.example.com/gpu` counts pods and claims alike.

A pod is charged for what it asks for; the claim that a scheduler makes for it, for what the pod was not charged for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from dray.api.extended_resources import IMPLICIT, is_extended_claim_of, is_for_extended, may_be_devices
from dray.api.generated.core import Pod
from dray.api.meta import Object
from dray.api.pod_claims import owning_pod
from dray.api.quantity import Quantity
from dray.api.resource import DeviceClass, ResourceClaim

REQUESTS: Final = "requests."
ZERO: Final = Quantity.of_int(0)


class Neighbours(Protocol):
    """What else there is, on which it depends what a claim counts for."""

    def find_class(self, name: str) -> DeviceClass | None:
        """A device class."""
        ...

    def find_pod(self, namespace: str, name: str) -> Pod | None:
        """A pod."""
        ...

    def claims(self, namespace: str) -> Iterable[ResourceClaim]:
        """At least all claims of a namespace that schedulers made."""
        ...


class Listed:
    """Neighbours out of a list of objects."""

    def __init__(self, objects: Iterable[Object]) -> None:
        self._classes: dict[str, DeviceClass] = {}
        self._pods: dict[tuple[str, str], Pod] = {}
        self._claims: dict[str, list[ResourceClaim]] = {}
        for obj in objects:
            meta = obj.metadata
            if isinstance(obj, DeviceClass):
                self._classes[meta.name] = obj
            elif isinstance(obj, Pod):
                self._pods[meta.namespace, meta.name] = obj
            elif isinstance(obj, ResourceClaim) and is_for_extended(obj):
                self._claims.setdefault(meta.namespace, []).append(obj)

    def find_class(self, name: str) -> DeviceClass | None:
        """A device class."""
        return self._classes.get(name)

    def find_pod(self, namespace: str, name: str) -> Pod | None:
        """A pod."""
        return self._pods.get((namespace, name))

    def claims(self, namespace: str) -> Iterable[ResourceClaim]:
        """The claims of a namespace that schedulers made."""
        return self._claims.get(namespace, ())


def may_count_claims(name: str) -> bool:
    """Whether claims may use up a resource of a quota that pods use up."""
    return name.startswith(REQUESTS) and may_be_devices(name.removeprefix(REQUESTS))


def by_class_resource(devices: Mapping[str, Quantity], neighbours: Neighbours) -> dict[str, Quantity]:
    """Devices by class, by the names that quotas have for them as extended resources."""
    used: dict[str, Quantity] = {}
    for class_name, count in devices.items():
        known = neighbours.find_class(class_name)
        explicit = known.spec.extended_resource_name if known is not None else None
        for name in (f"{IMPLICIT}{class_name}", explicit):
            if name:
                used[REQUESTS + name] = used.get(REQUESTS + name, ZERO) + count
    return used


def charged_pod(claim: ResourceClaim, neighbours: Neighbours) -> Pod | None:
    """The pod that was charged for what a claim asks for: only for the first claim that was made for it."""
    owner = owning_pod(claim)
    if not is_for_extended(claim) or owner is None or owner.api_version != "v1":
        return None
    pod = neighbours.find_pod(claim.metadata.namespace, owner.name)
    if pod is None or pod.metadata.uid != owner.uid:
        return None
    told = pod.status.extended_resource_claim_status
    if told is not None:
        return pod if told.resource_claim_name == claim.metadata.name else None
    others = (one for one in neighbours.claims(claim.metadata.namespace) if is_extended_claim_of(one, pod))
    return None if any(_age(one) < _age(claim) for one in others) else pod


def _age(claim: ResourceClaim) -> tuple[str, str]:
    """What is being created is the youngest."""
    created = claim.metadata.creation_timestamp if claim.metadata.resource_version else None
    return str(created or "~"), claim.metadata.name
