"""Devices as a table: the same from `dray devices`, which reads files, and `dray get devices`, which asks a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dray.api.taints import taint_text
from dray.cli.tables import NOTHING, Table

if TYPE_CHECKING:
    from dray.scheduling.device_states import DeviceState
    from dray.tracker import EffectiveDevice

MAX_VALUES: Final = 5
LONGEST_VALUE: Final = 24


def device_table(rows: Sequence[DeviceState], *, is_wide: bool = False) -> Table:
    """One line per device. Driver, patches and what blocks are left out where they say nothing.

    Wide tables have all columns, every attribute, since when taints are there, and the slices.
    """
    from dray.scheduling.device_state_text import tell_block
    from dray.views.pools import tell_reach

    columns = {
        "DEVICE": [f"{row.device.id.pool}/{row.device.id.device}" for row in rows],
        "NODE": [tell_reach(row.device.access) for row in rows],
        "DRIVER": [row.device.id.driver for row in rows],
        "STATE": [", ".join(row.words) for row in rows],
        "BLOCKED BY": [tell_block(row.block) if row.block is not None else NOTHING for row in rows],
        "HELD BY": [", ".join(row.holders) or NOTHING for row in rows],
        "TAINTS": [_taints(row.device, is_wide=is_wide) for row in rows],
        "PATCHED BY": [", ".join(row.device.patches) or NOTHING for row in rows],
        "ATTRIBUTES": [_values(row.device, is_wide=is_wide) for row in rows],
    }
    if is_wide:
        columns["SLICE"] = [row.device.slice_name for row in rows]
    if not is_wide and len(set(columns["DRIVER"])) < 2:
        del columns["DRIVER"]
    if not is_wide and not any(row.device.patches for row in rows):
        del columns["PATCHED BY"]
    if not is_wide and not any(row.is_blocked for row in rows):
        del columns["BLOCKED BY"]
    return Table(tuple(columns), tuple(zip(*columns.values(), strict=True)))


def _taints(device: EffectiveDevice, *, is_wide: bool) -> str:
    shown = []
    for tracked in device.taints:
        since = f" since {tracked.taint.time_added}" if is_wide and tracked.taint.time_added else ""
        source = f"rule {tracked.rule}" if tracked.rule else "driver"
        shown.append(f"{taint_text(tracked.taint)} ({source}{since})")
    return ", ".join(shown) or NOTHING


def _values(device: EffectiveDevice, *, is_wide: bool) -> str:
    from dray.prose.wording import shorten
    from dray.what_if.device_changes import values_of

    own = f"{device.id.driver}/"
    values = [(name.removeprefix(own), value) for name, value in values_of(device).items()]
    if is_wide:
        return " ".join(f"{name}={value}" for name, value in values) or NOTHING
    shown = [f"{name.rpartition('/')[2]}={shorten(value, LONGEST_VALUE)}" for name, value in values[:MAX_VALUES]]
    more = [f"+{len(values) - MAX_VALUES}"] if len(values) > MAX_VALUES else []
    return " ".join([*shown, *more]) or NOTHING
