"""When a turn is over, no more devices are looked at, however many there are."""

from __future__ import annotations

from typing import Any

from dray.allocator.judge import Judge
from dray.allocator.selection import Criteria, examine
from dray.cel.backlog import Backlog


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
    found = examine(criteria, devices)
    assert devices.looked_at == 0
    assert found.unsettled == found.faulty == (1 << 1000) - 1
    assert (found.selected, found.usable, found.overflowing) == (0, 0, 0)
    assert backlog.was_cut_short
