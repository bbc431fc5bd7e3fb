"""Devices by class: counted from what the tracker knows, again only where something changed."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api import codec
from dray.api.meta import Object
from dray.api.resource import DeviceClass, ResourceSlice
from dray.cluster.hub import device_counts
from dray.cluster.hub.device_counts import Count, DeviceCounts
from dray.tracker import DeviceId, Tracker, Upsert
from snapshot_objects import DRIVER, device, device_class, resource_slice

BAD = [{"key": "bad", "effect": "NoSchedule"}]
HARMLESS = [{"key": "note", "effect": "None"}]
BIG = 'device.capacity["gpu.example.com"].memory.compareTo(quantity("60Gi")) >= 0'


def typed(document: dict[str, Any], kind: type[Object]) -> Any:
    reading = codec.read(document, kind)
    assert reading.obj is not None, reading.errors
    return reading.obj


def tracker(*slices: dict[str, Any]) -> Tracker:
    made = Tracker()
    for document in slices:
        made.apply(Upsert(typed(document, ResourceSlice)))
    return made


def classes(*documents: dict[str, Any]) -> list[DeviceClass]:
    return [typed(document, DeviceClass) for document in documents]


ALL, LARGE = device_class(name="gpu"), device_class(BIG, name="large")
BROKEN = device_class("device.attributes['nowhere'].nothing == 1", name="broken")


def test_a_device_that_is_neither_held_nor_tainted_is_free() -> None:
    devices = tracker(
        resource_slice(
            "node-1",
            device("a"),
            device("b", memory="40Gi"),
            device("c", taints=BAD),
            device("d", taints=HARMLESS),
            device("e", taints=BAD),
        )
    )
    held = [DeviceId(DRIVER, "node-1", name) for name in ("a", "c")] + [DeviceId("other", "node-1", "b")]
    assert DeviceCounts().count(devices.pools, classes(ALL, LARGE, BROKEN), held) == {
        "gpu": Count(total=5, free=2, tainted=2),
        "large": Count(total=4, free=1, tainted=2),
        "broken": Count(),
    }


def test_a_pool_that_cannot_be_used_counts_for_nothing() -> None:
    devices = tracker(resource_slice("node-1", device("a"), count=2))
    assert DeviceCounts().count(devices.pools, classes(ALL), ()) == {"gpu": Count()}


def test_only_what_changed_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    match = device_counts._match

    def noting(view: Any, expressions: tuple[str, ...]) -> Any:
        looked.append(view.name)
        return match(view, expressions)

    monkeypatch.setattr(device_counts, "_match", noting)
    devices = tracker(resource_slice("node-1", device("a")), resource_slice("node-2", device("a")))
    counts = DeviceCounts()
    assert counts.count(devices.pools, classes(ALL), ())["gpu"] == Count(2, 2, 0)
    assert sorted(looked) == ["node-1", "node-2"]
    looked.clear()
    assert counts.count(devices.pools, classes(ALL), [DeviceId(DRIVER, "node-1", "a")])["gpu"] == Count(2, 1, 0)
    assert looked == []
    devices.apply(Upsert(typed(resource_slice("node-2", device("a", taints=BAD), generation=2), ResourceSlice)))
    assert counts.count(devices.pools, classes(ALL), ())["gpu"] == Count(2, 1, 1)
    assert looked == ["node-2"]
    looked.clear()
    assert counts.count(devices.pools, classes(device_class(BIG, name="gpu")), ())["gpu"] == Count(2, 1, 1)
    assert sorted(looked) == ["node-1", "node-2"]
