"""Many patches on many devices: the right ones change, and a patch costs what it changes."""

from __future__ import annotations

import time

import pytest

from dray.tracker import Tracker, Upsert
from tracker_objects import device, model_is, patch, slice_, values

NODES = 1_000
DEVICES = 8
RACKS = 20
MODELS = ("A", "B", "C", "D")
MOST_CPU_SECONDS = 10.0
"""For what takes well under one."""

SLICES = [
    slice_(
        f"s{node}",
        *[device(f"gpu-{index}", {"model": MODELS[index % 4]}) for index in range(DEVICES)],
        pool=f"node-{node}",
    )
    for node in range(NODES)
]
PATCHES = [
    *[patch(f"rack-{rack}", {"rack": rack}, pool=f"node-{rack}") for rack in range(RACKS)],
    *[patch(f"model-{model}", {"tier": model.lower()}, model_is(model), priority=1) for model in MODELS],
]


@pytest.mark.req("5027-53")
def test_a_large_cluster_with_patches_is_right_and_quick() -> None:
    tracker = Tracker()
    start = time.thread_time()
    tracker.apply_all([*map(Upsert, SLICES), *map(Upsert, PATCHES)])
    for found in tracker.devices():
        node, index = int(found.id.pool.removeprefix("node-")), int(found.id.device.removeprefix("gpu-"))
        expected = {"model": MODELS[index % 4], "tier": MODELS[index % 4].lower()}
        assert values(found) == expected | ({"rack": node} if node < RACKS else {})
    assert len(list(tracker.devices())) == NODES * DEVICES
    assert time.thread_time() - start < MOST_CPU_SECONDS


@pytest.mark.req("5027-53")
def test_a_patch_of_one_pool_changes_the_devices_of_that_pool_alone() -> None:
    tracker = Tracker()
    tracker.apply_all([*map(Upsert, SLICES), *map(Upsert, PATCHES)])
    before = {found.id: found for found in tracker.devices()}
    start = time.thread_time()
    tracker.apply(Upsert(patch("rack-0", {"rack": 99}, pool="node-500")))
    assert time.thread_time() - start < MOST_CPU_SECONDS / 10
    changed = {found.id.pool for found in tracker.devices() if found is not before[found.id]}
    assert changed == {"node-0", "node-500"}
