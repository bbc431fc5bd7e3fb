"""Pods that have to leave for taints that drivers publish, and are still there although nobody confirmed it. Pure.

Rules and nodes have conditions that tell what the guard holds; pools have none, so it is found out here.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from dray.api.generated.core import Namespace
from dray.api.kinds import NAMESPACES, RULES
from dray.api.resource import DeviceTaintRule, ResourceSlice
from dray.api.resource.pool import PoolKey, pool_of
from dray.api.times import Time
from dray.eviction.confirmations import confirms, place_to_confirm
from dray.eviction.stop import PLACE
from dray.eviction.told_limit import told_limit
from dray.snapshot.snapshot import Snapshot
from dray.what_if.evictions import forecast


class Unconfirmed(NamedTuple):
    """What could be confirmed on a slice: so many pods of its pool are to leave, for these taints."""

    slice: ResourceSlice
    pods: int
    taints: tuple[str, ...]

    @property
    def why(self) -> str:
        """What there is to confirm, in words."""
        pods = "1 pod is" if self.pods == 1 else f"{self.pods} pods are"
        return (
            f"{pods} to leave for what the driver of the pool says ({', '.join(self.taints)}), and nobody confirmed it"
        )


def unconfirmed_pools(snapshot: Snapshot, now: datetime) -> list[Unconfirmed]:
    """The pools with such pods, by name; none where no controllers have told that they hold anything."""
    place = snapshot.get(NAMESPACES.resource, "", PLACE)
    if not isinstance(place, Namespace) or told_limit(place) is None:
        return []
    rules = [f"{RULES.plural}/{rule.metadata.name}" for rule in snapshot.objects(DeviceTaintRule)]
    alone = snapshot.without(*rules)  # what is left is published
    pods: dict[PoolKey, set[str]] = {}
    taints: dict[PoolKey, dict[str, None]] = {}
    for one in forecast(alone, now).evictions.values():
        if Time.parse(one.due).datetime() > now:
            continue
        for device in one.devices:
            driver, _, rest = device.partition("/")
            pool = (driver, rest.rpartition("/")[0])
            pods.setdefault(pool, set()).add(one.pod)
            taints.setdefault(pool, {}).update(dict.fromkeys(one.causes))
    slices: dict[PoolKey, list[ResourceSlice]] = {}
    for slice_ in snapshot.objects(ResourceSlice):
        slices.setdefault(pool_of(slice_), []).append(slice_)
    return [
        Unconfirmed(place_to_confirm(slices[pool]), len(pods[pool]), tuple(taints[pool]))
        for pool in sorted(pods.keys() & slices.keys())
        if not any(map(confirms, slices[pool]))
    ]
