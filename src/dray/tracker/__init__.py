"""From ResourceSlices, ResourceSlicePatches, DeviceTaintRules and DeviceClasses to effective devices, incrementally.

Pure and synchronous, no I/O. Imports `dray.api` and `dray.cel`; the allocator, eviction and `explain` read the
immutable pools that `Tracker` hands out and act on the changes that it reports.
"""

from dray.tracker.events import Event, Remove, TrackedObject, Upsert
from dray.tracker.gathered import GatheredSlices
from dray.tracker.tracker import Tracker
from dray.tracker.view import (
    ALL_NODES,
    NO_NODES,
    Change,
    DeviceId,
    EffectiveDevice,
    NodeAccess,
    PoolView,
    Problem,
    TrackedTaint,
)
from dray.tracker.waiting import AT_ONCE

__all__ = [
    "ALL_NODES",
    "AT_ONCE",
    "NO_NODES",
    "Change",
    "DeviceId",
    "EffectiveDevice",
    "Event",
    "GatheredSlices",
    "NodeAccess",
    "PoolView",
    "Problem",
    "Remove",
    "TrackedObject",
    "TrackedTaint",
    "Tracker",
    "Upsert",
]
