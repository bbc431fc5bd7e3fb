"""Devices by class: counted from what the scheduler knows, again only where something changed."""

from __future__ import annotations

from typing import Any

import pytest

from builders import typed
from dray.api.generated.core import Node
from dray.api.meta import ObjectMeta
from dray.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from dray.hub_agent import device_counts
from dray.hub_agent.device_counts import Count, DeviceCounts
from dray.scheduling.cluster import Cluster
from dray.tracker import Upsert
from snapshot_objects import claim, device, device_class, resource_slice
from snapshot_objects import held as holding

BAD = [{"key": "bad", "effect": "NoSchedule"}]
HARMLESS = [{"key": "note", "effect": "None"}]
BIG = 'device.capacity["gpu.example.com"].memory.compareTo(quantity("60Gi")) >= 0'


def cluster(*slices: dict[str, Any], held: tuple[str, ...] = ()) -> Cluster:
    """Nodes node-1 and node-2 with slices, devices of node-1 held."""
    made = Cluster()
    for name in ("node-1", "node-2"):
        made.set_node(None, Node(metadata=ObjectMeta(name=name)))
    for document in slices:
        publish(made, document)
    hold(made, *held)
    return made


def publish(made: Cluster, document: dict[str, Any]) -> None:
    made.track(Upsert(typed(document, ResourceSlice)))


def hold(made: Cluster, *names: str) -> None:
    if names:
        made.set_claim(None, typed(holding(claim("c", len(names)), "node-1", *names), ResourceClaim))


def classes(*documents: dict[str, Any]) -> list[DeviceClass]:
    return [typed(document, DeviceClass) for document in documents]


ALL, LARGE = device_class(name="gpu"), device_class(BIG, name="large")
BROKEN = device_class("device.attributes['nowhere'].nothing == 1", name="broken")


def test_a_device_that_is_neither_held_nor_tainted_is_free() -> None:
    devices = cluster(
        resource_slice(
            "node-1",
            device("a"),
            device("b", memory="40Gi"),
            device("c", taints=BAD),
            device("d", taints=HARMLESS),
            device("e", taints=BAD),
        ),
        held=("a", "c", "unpublished"),
    )
    assert DeviceCounts().count(devices, classes(ALL, LARGE, BROKEN)) == {
        "gpu": Count(total=5, free=2, tainted=2),
        "large": Count(total=4, free=1, tainted=2),
        "broken": Count(),
    }


def test_the_devices_of_a_pool_that_cannot_be_used_and_of_a_node_that_is_gone_are_blocked() -> None:
    devices = cluster(resource_slice("node-1", device("a"), count=2), resource_slice("node-3", device("a")))
    assert DeviceCounts().count(devices, classes(ALL)) == {"gpu": Count(total=2, blocked=2)}


def test_only_what_changed_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    match = device_counts._match

    def noting(view: Any, expressions: tuple[str, ...]) -> Any:
        looked.append(view.name)
        return match(view, expressions)

    monkeypatch.setattr(device_counts, "_match", noting)
    devices = cluster(resource_slice("node-1", device("a")), resource_slice("node-2", device("a")))
    counts = DeviceCounts()
    assert counts.count(devices, classes(ALL))["gpu"] == Count(2, 2, 0)
    assert sorted(looked) == ["node-1", "node-2"]
    looked.clear()
    hold(devices, "a")
    assert counts.count(devices, classes(ALL))["gpu"] == Count(2, 1, 0)
    assert looked == []
    publish(devices, resource_slice("node-2", device("a", taints=BAD), generation=2))
    assert counts.count(devices, classes(ALL))["gpu"] == Count(2, 0, 1)
    assert looked == ["node-2"]
    looked.clear()
    assert counts.count(devices, classes(device_class(BIG, name="gpu")))["gpu"] == Count(2, 0, 1)
    assert sorted(looked) == ["node-1", "node-2"]
