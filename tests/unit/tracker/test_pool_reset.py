"""A driver starts to count the generations of its pool anew."""

from __future__ import annotations

import pytest

from dray.snapshot import load
from snapshot_objects import claim, device, device_class, resource_slice


@pytest.mark.req("4381-264", "4381-09")
def test_the_old_higher_generation_counts_until_it_is_deleted() -> None:
    old = resource_slice("node-1", device("old"), generation=7)
    new = resource_slice("node-1", device("new"), generation=1)
    new["metadata"]["name"] = "node-1-new"
    snapshot = load(device_class(), claim("c"), old, new)
    assert [found.id.device for found in snapshot.devices()] == ["old"]
    reset = snapshot.without("resourceslice/node-1-slice")
    assert [found.id.device for found in reset.devices()] == ["new"]
    [result] = reset.allocate("ml/c").allocations["ml/c"]["devices"]["results"]
    assert result["device"] == "new"
