"""When a turn is over, no more devices are looked at, however many there are."""

from __future__ import annotations

from typing import Any

import pytest

from dray.allocator import Allocated, Inventory, allocate
from dray.allocator.judge import Judge
from dray.allocator.results import Undecided
from dray.allocator.selection import Criteria, examine
from dray.cel import compile as compile_selector
from dray.cel.backlog import Backlog
from dray.tracker import Tracker, Upsert
from scheduler_objects import DRIVER, claim, device_class, resource_slice


class Devices(list[Any]):
    """Notes how many were looked at."""

    looked_at = 0

    def __iter__(self) -> Any:
        for one in super().__iter__():
            self.looked_at += 1
            yield one


def test_devices_are_unsettled_without_being_looked_at() -> None:
    now = 0.0
    backlog = Backlog(lambda: now)
    backlog.begin_turn("mallory", 0.01)
    criteria = Criteria((), (), {}, Judge(("device.driver == 'x'",), backlog))
    now = 1.0
    devices = Devices([None] * 1000)
    found = examine(criteria, devices).candidates(1000)
    assert devices.looked_at == 0
    assert found.unsettled == found.faulty == (1 << 1000) - 1
    assert (found.selected, found.usable, found.overflowing) == (0, 0, 0)
    assert backlog.was_cut_short


@pytest.mark.parametrize("mode", [{}, {"allocationMode": "All"}], ids=["one", "all"])
def test_what_is_known_of_like_devices_when_the_turn_is_over_is_told_in_the_next(mode: dict[str, Any]) -> None:
    """Devices were put off unseen, and a verdict on others of their kind was there: that ended the scheduler."""
    now = 0.0
    backlog = Backlog(lambda: now)
    inventory, tracker = Inventory(backlog), Tracker()
    wanted = [claim(selectors=[{"cel": {"expression": f'device.driver == "{DRIVER}"'}}], **mode)]
    classes = {"gpu": device_class()}
    for name in ("a", "b"):
        inventory.set_node(name, {})
        changed = tracker.apply(Upsert(resource_slice(name, {"name": "gpu-0"}))).pools
        inventory.apply_pools(tracker.pools[key] for key in changed)
    compile_selector(f'device.driver == "{DRIVER}"', mode="stored")

    backlog.begin_turn("ns", 0.01)
    assert isinstance(allocate(inventory, classes, wanted, "a"), Allocated)
    now = 1.0
    assert isinstance(allocate(inventory, classes, wanted, "b"), Undecided)
    backlog.begin_turn("ns", 0.01)
    assert isinstance(allocate(inventory, classes, wanted, "b"), Allocated)
