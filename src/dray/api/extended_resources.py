"""Extended resources that are devices: a pod asks for `example.com/gpu: 1`, and a device class stands for that name.

A class says the name itself (`spec.extendedResourceName`), and has another one in any case: that of the class after
`deviceclass.resource.kubernetes.io/`.
"""

from __future__ import annotations

from typing import Final

from dray.api.generated.core import Pod
from dray.api.references import is_owned_by
from dray.api.resource import DeviceClass, ResourceClaim

IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"
CLAIM_ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"


def may_be_devices(resource: str) -> bool:
    """Whether a device class could stand for a resource: it is not Kubernetes' own, or named after a class."""
    return "/" in resource and ("kubernetes.io/" not in resource or resource.startswith(IMPLICIT))


def is_for_extended(claim: ResourceClaim) -> bool:
    """Whether a scheduler made a claim for the extended resources of a pod."""
    return claim.metadata.annotations.get(CLAIM_ANNOTATION) == "true"


def is_extended_claim_of(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether a claim was made for the extended resources of just this pod."""
    return is_for_extended(claim) and is_owned_by(claim, pod)


class ClassesByResource:
    """Which device class stands for an extended resource. Kept current by `set`."""

    def __init__(self) -> None:
        self._classes: dict[str, DeviceClass] = {}
        self._named: dict[str, dict[str, DeviceClass]] = {}

    def set(self, name: str, new: DeviceClass | None) -> None:
        """A class came, changed or went (None)."""
        old = self._classes.pop(name, None)
        resource = old.spec.extended_resource_name if old is not None else None
        if resource:
            self._named[resource].pop(name)
            if not self._named[resource]:
                del self._named[resource]
        if new is not None:
            self._classes[name] = new
            if new.spec.extended_resource_name:
                self._named.setdefault(new.spec.extended_resource_name, {})[name] = new

    def get(self, resource: str) -> DeviceClass | None:
        """The class; of several the newest, so that one can take over from another, then the first by name."""
        if resource.startswith(IMPLICIT):
            return self._classes.get(resource.removeprefix(IMPLICIT))
        named = self._named.get(resource)
        if named is None:
            return None
        return max((named[name] for name in sorted(named)), key=_created)


def _created(device_class: DeviceClass) -> str:
    return str(device_class.metadata.creation_timestamp or "")
