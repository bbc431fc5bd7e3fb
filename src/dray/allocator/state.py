"""Where a search stands. States are values: going back means to use an older one.

requests     gpu (2 devices)   nic (1)          one claim after the other, in the order given
picks        0, 3              8                positions in the layout
                         ▲
                         request=0, slot=1, start=4: the next device of `gpu` is sought from position 4 on
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from dray.allocator.counters import CounterBudget
from dray.allocator.layout import Value

Values: TypeAlias = frozenset[Value] | None
"""What a constraint has seen: the values that all devices have in common, or that are used up; None: no device."""


class Pick(NamedTuple):
    """A device chosen for a request; the picks before it follow as a chain."""

    before: Pick | None
    request: int
    option: int
    position: int


class State(NamedTuple):
    """One point of the search."""

    request: int = 0
    option: int = -1
    """The alternative that is being tried, -1 before one was chosen."""
    slot: int = 0
    start: int = 0
    size: int = 0
    """Devices of this claim so far."""
    taken: int = 0
    """Devices that this claim has taken; shareable ones are never taken."""
    taken_before: int = 0
    """Devices that the claims before it have taken."""
    values: tuple[Values, ...] = ()
    """What each constraint of this claim has seen."""
    budgets: Mapping[int, CounterBudget] = {}
    """What is left of the counters, by segment, where devices were picked."""
    shares: Mapping[int, Mapping[str, int]] = {}
    """What new shares take of each shareable device, by position."""
    last: Pick | None = None
    options: tuple[int, ...] = ()
    """The alternatives chosen for the requests before this one."""
