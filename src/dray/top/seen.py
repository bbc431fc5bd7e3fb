"""What there is to look at, at a moment: values that `dray.views` made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from dray.scheduling.device_states import DeviceState
from dray.snapshot.device_selection import DeviceSelection
from dray.views.fleet import FleetRow, FleetTotals
from dray.views.grouping import TRUE, Picked
from dray.views.service import NodeRow, RuleRow
from dray.views.waiting import PodRow


def _none(_key: str) -> Sequence[DeviceState]:
    return ()


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster."""

    server: str = ""
    now: str = ""
    """RFC 3339."""
    totals: FleetTotals = FleetTotals()
    ready: int = 0
    nodes: int = 0
    rows: tuple[FleetRow, ...] = ()
    pods: tuple[PodRow, ...] = ()
    rules: tuple[RuleRow, ...] = ()
    emptied: tuple[NodeRow, ...] = ()
    """Nodes that pods have to leave."""
    problems: tuple[str, ...] = ()
    """Pools that cannot be used, and why: a clause each."""
    missing: tuple[str, ...] = ()
    picked: Mapping[str, Picked] | None = None
    """With a filter: by key of a row, of which devices it is true."""
    details: Callable[[str], Sequence[DeviceState]] = _none
    """The devices of a row in full."""


class Spot(NamedTuple):
    """A device on the map."""

    row: FleetRow
    position: int

    @property
    def name(self) -> str:
        """Of the device."""
        return self.row.names[self.position]

    @property
    def letter(self) -> str:
        """Its state."""
        return self.row.states[self.position]

    @property
    def id(self) -> str:
        """`driver/pool/device`."""
        return f"{self.row.driver}/{self.row.pool}/{self.name}"


def selection_of(item: FleetRow | Spot) -> DeviceSelection:
    """What takes exactly that out of service: a device, or everything that a node has of a pool."""
    row = item.row if isinstance(item, Spot) else item
    device = item.name if isinstance(item, Spot) else ""
    return DeviceSelection(node=row.node, driver=row.driver, pool=row.pool, device=device)


def is_picked(seen: Seen, row: FleetRow, position: int) -> bool:
    """Whether the filter is true of a device, or there is none."""
    if seen.picked is None:
        return True
    picked = seen.picked.get(row.key)
    return picked is not None and picked.mask[position : position + 1] == TRUE
