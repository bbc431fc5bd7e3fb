"""What a rule would do if it evicted, found by the code that evicts (5055-104, 5055-105)."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from dray.api.references import ObjectRef
from dray.api.resource import DeviceTaintRule
from dray.api.resource.taint import EFFECT_NO_EXECUTE
from dray.eviction.causes import find_causes, names_device
from dray.eviction.device_planner import DevicePlanner
from dray.tracker import DeviceId, TrackedTaint


class Preview(NamedTuple):
    """What a rule reaches."""

    published: int
    """Devices that drivers publish."""
    allocated: frozenset[DeviceId]
    """Devices that claims hold, published or not."""
    pods: frozenset[ObjectRef]
    """Pods that would have to leave, now or when their toleration ends."""

    @property
    def namespaces(self) -> int:
        """How many namespaces the pods are in."""
        return len({pod.namespace for pod in self.pods})


def preview(planner: DevicePlanner, rule: DeviceTaintRule) -> Preview:
    """What a rule that the planner knows would do with the effect NoExecute."""
    name = rule.metadata.name
    taint = TrackedTaint(0, replace(rule.spec.taint, effect=EFFECT_NO_EXECUTE), name)
    selected = planner.tracker.selected(name)
    reached = {device.id for device in selected}
    reached.update(device for device in planner.unpublished if names_device(rule, device))
    allocated = frozenset(device for device in reached if planner.allocations.holders(device))
    pods: set[ObjectRef] = set()
    for key in {key for device in allocated for key in planner.allocations.holders(device)}:
        claim = planner.allocations.claims[key]
        if find_causes(claim, lambda device: (taint,) if device in allocated else (), planner.key_of):
            pods.update(planner.allocations.users(key))
    return Preview(len(selected), allocated, frozenset(pods))
