"""Clusters for allocator tests, from manifests: read, tracked and put into an inventory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from dray.allocator import Inventory
from dray.api import codec
from dray.api.meta import Object
from dray.api.references import full_name
from dray.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from dray.api.times import Time
from dray.tracker.events import Upsert
from dray.tracker.tracker import Tracker
from dray.tracker.view import EffectiveDevice
from dray.validation import default_object

T = TypeVar("T", bound=Object)

NOW = Time.parse("2026-06-01T12:00:00Z")


class Cluster:
    """Everything that an allocation needs."""

    def __init__(self, objects: Iterable[Mapping[str, Any]]) -> None:
        self.tracker = Tracker()
        self.inventory = Inventory()
        self.classes: dict[str, DeviceClass] = {}
        self.claims: dict[str, ResourceClaim] = {}
        self.nodes: dict[str, dict[str, str]] = {}
        events = []
        for manifest in objects:
            kind = manifest["kind"]
            if kind == "ResourceSlice":
                events.append(Upsert(typed(manifest, ResourceSlice)))
            elif kind == "DeviceTaintRule":
                events.append(Upsert(typed(manifest, DeviceTaintRule)))
            elif kind == "DeviceClass":
                self._add_class(typed(manifest, DeviceClass))
            elif kind == "ResourceClaim":
                self._add_claim(typed(manifest, ResourceClaim))
            else:
                self._add_node(manifest["metadata"])
        change = self.tracker.apply_all(events)
        self.inventory.apply_pools(self.tracker.pools[key] for key in sorted(change.pools))

    def _add_class(self, device_class: DeviceClass) -> None:
        self.classes[device_class.metadata.name] = device_class

    def _add_claim(self, claim: ResourceClaim) -> None:
        self.claims[full_name(claim)] = claim
        if claim.status.allocation is not None:
            self.inventory.hold(full_name(claim), claim.status.allocation)

    def _add_node(self, metadata: Mapping[str, Any]) -> None:
        self.nodes[metadata["name"]] = dict(metadata.get("labels", {}))
        self.inventory.set_node(metadata["name"], self.nodes[metadata["name"]])

    def devices(self) -> list[EffectiveDevice]:
        """All devices of pools that can be used."""
        pools = self.tracker.pools
        parts = [part for key in sorted(pools) for part in pools[key].each()]
        return [device for part in parts if part.problem is None for device in part.devices]


def typed(manifest: Any, kind: type[T]) -> T:
    """A manifest as an object with defaults, also where validation would refuse it."""
    reading = codec.read({"apiVersion": "resource.k8s.io/v1", **manifest}, kind)
    assert reading.obj is not None, reading.errors
    return default_object(reading.obj, NOW)
