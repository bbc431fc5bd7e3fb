"""What differs and was not looked at: kinds of which nobody here knows what a change of them does, and fields. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from dray.api.generated.apps import DaemonSet
from dray.api.generated.core import Namespace, Node, Pod, ResourceQuota, Service
from dray.api.generated.policy import PodDisruptionBudget
from dray.api.generated.scheduling import PodGroup
from dray.api.meta import Object
from dray.api.references import full_name
from dray.api.resource import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    ResourceSlicePatch,
)
from dray.what_if.workload_changes import Pair
from dray.what_if.workloads import WORKLOADS

LOOKED_AT = (
    *(Node, Pod, ResourceClaim, ResourceClaimTemplate, ResourceSlice, DeviceClass, DeviceTaintRule),
    *(ResourceSlicePatch, ResourceQuota, *WORKLOADS, DaemonSet),
    *(Namespace, PodDisruptionBudget, PodGroup, Service),
)
"""The kinds of which it is known what a change of them does."""
_METADATA = {"labels": "labels", "annotations": "annotations", "finalizers": "finalizers", "owner_references": "owners"}
"""What people write about an object besides what it is, by field. The rest is the server's."""
_FOLLOWED = {
    "labels": (Pod, Node, Namespace),
    "annotations": (Node, DeviceTaintRule),
}
"""The kinds of which that is followed."""


def unjudged(differing: Iterable[Pair]) -> Iterator[str]:
    """Objects, and fields of objects, in the words that follow `what a change of`."""
    for here, there in differing:
        obj = there if there is not None else here
        if obj is None:
            continue
        name = f"{obj.kind} {full_name(obj)}"
        if isinstance(obj, Namespace) and there is None:
            yield f"whatever else is in {name}"
        elif not isinstance(obj, LOOKED_AT):
            yield name
        elif here is not None and there is not None:
            yield from (f"{field} of {name}" for field in _fields(here, there))


def _fields(here: Object, there: Object) -> Iterator[str]:
    """The fields of an object that is there before and after that differ, and that nobody here follows."""
    for field, word in _METADATA.items():
        is_other = getattr(here.metadata, field) != getattr(there.metadata, field)
        if is_other and not isinstance(there, _FOLLOWED.get(field, ())):
            yield f"the {word}"
    if isinstance(here, Pod) and isinstance(there, Pod) and here.spec.node_name and here.spec != there.spec:
        changed = [name for name in msgspec.structs.asdict(there.spec) if _differ(here.spec, there.spec, name)]
        yield f"spec ({', '.join(changed)})"


def _differ(here: object, there: object, field: str) -> bool:
    return bool(getattr(here, field) != getattr(there, field))
