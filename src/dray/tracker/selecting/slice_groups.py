"""Groups of slices that look the same to an expression.

Signature: what is read     model, memory
Projection: key per slice   (H100, 80Gi) ─→ Group(slices a, b, …)
                            (A100, 40Gi) ─→ Group(slices c, …)
Row: in one group           devices 0–3 alike, devices 4–7 alike
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import repeat
from typing import Final, NamedTuple, TypeAlias

from dray.api.resource import Device
from dray.cel import DeviceView, device_view
from dray.tracker.columns import Column, Sheet, Values, position_of

QualifiedName: TypeAlias = tuple[str, str]
"""Domain and identifier of an attribute or capacity."""

Key: TypeAlias = tuple[Hashable, ...]


class Signature(NamedTuple):
    """What a selection depends on besides driver and pool."""

    attributes: tuple[QualifiedName, ...] = ()
    capacity: tuple[QualifiedName, ...] = ()
    whole: bool = False
    """The expression may look at anything, for example because it goes through all attributes."""
    names: bool = False
    """The selection names a device."""


class Row(NamedTuple):
    """Devices of a group that are alike in all that is read: a bit mask of positions, and the first of them."""

    values: Values
    mask: int
    position: int


class ReadNames(NamedTuple):
    """What to look up in a sheet, by the names that slices may use."""

    attributes: tuple[str, ...]
    capacity: tuple[str, ...]


class Group:
    """Slices that have the read columns in common, and so every outcome."""

    __slots__ = ("_columns", "_reads", "_rows", "driver", "names", "scope", "sheets", "size")

    def __init__(
        self,
        sheet: Sheet,
        names: Column | None,
        columns: tuple[Column | None, ...],
        reads: ReadNames | None,
    ) -> None:
        self.driver = sheet.driver
        self.size = sheet.size
        self.names = names
        self._columns = columns
        self._rows: tuple[Row, ...] | None = None
        self.sheets: dict[str, Sheet] = {sheet.slice_name: sheet}
        self._reads = reads
        self.scope: Hashable = self if reads is None else sheet.driver
        """Rows with equal values are alike in groups of equal scope."""

    @property
    def sheet(self) -> Sheet:
        """Any of the slices: in what is read they are the same."""
        return next(iter(self.sheets.values()))

    @property
    def rows(self) -> tuple[Row, ...]:
        """The devices, those that are alike together."""
        if self._rows is None:
            self._rows = _distinct_rows(self.size, self._columns)
        return self._rows

    def view(self, position: int) -> DeviceView:
        """What an expression sees of the devices at a position. What it does not read is left out if possible."""
        device = self.sheet.devices[position]
        attributes, capacity = self._reads or (_explicit_last(device.attributes), _explicit_last(device.capacity))
        read = Device(
            attributes={name: device.attributes[name] for name in attributes if name in device.attributes},
            capacity={name: device.capacity[name] for name in capacity if name in device.capacity},
            allow_multiple_allocations=device.allow_multiple_allocations,
        )
        return device_view(read, self.driver)

    def mask_of(self, device: str | None) -> int:
        """The position of the named device as a mask; all positions for None."""
        if device is None:
            return (1 << self.size) - 1
        position = position_of(self.names, device) if self.names is not None else None
        return 0 if position is None else 1 << position


class Projection:
    """How to look up what a signature reads in the sheets of any driver."""

    def __init__(self, signature: Signature) -> None:
        self._signature: Final = signature
        self._reads: dict[str, ReadNames] = {}

    def key(self, sheet: Sheet) -> Key:
        """Equal for sheets that look the same."""
        reads = self._reads.get(sheet.driver) or self._reads_in(sheet)
        key = (
            sheet.driver,
            sheet.size,
            sheet.names if self._signature.names else None,
            sheet.allow_multiple,
            *map(sheet.attributes.get, reads.attributes),
            *map(sheet.capacity.get, reads.capacity),
        )
        return (*key, reads, sheet.faults) if self._signature.whole or sheet.faults else key

    def group(self, sheet: Sheet) -> Group:
        """The group that the sheet founds."""
        reads = self._reads_in(sheet)
        columns = (
            sheet.allow_multiple,
            *map(sheet.attributes.get, reads.attributes),
            *map(sheet.capacity.get, reads.capacity),
            *sheet.faults,
        )
        names = sheet.names if self._signature.names else None
        return Group(sheet, names, columns, None if self._is_special(sheet) else reads)

    def _is_special(self, sheet: Sheet) -> bool:
        """Whether more than what the signature names is read."""
        return self._signature.whole or bool(sheet.faults)

    def _reads_in(self, sheet: Sheet) -> ReadNames:
        if self._signature.whole:
            return ReadNames(tuple(sorted(sheet.attributes)), tuple(sorted(sheet.capacity)))
        reads = self._reads.get(sheet.driver)
        if reads is None:
            reads = self._reads[sheet.driver] = ReadNames(
                _published(self._signature.attributes, sheet.driver),
                _published(self._signature.capacity, sheet.driver),
            )
        return reads


def _published(names: tuple[QualifiedName, ...], driver: str) -> tuple[str, ...]:
    """The names as slices may write them: in the driver's own domain with or without it (X-10)."""
    short = [identifier for domain, identifier in names if domain == driver]
    qualified = [f"{domain}/{identifier}" for domain, identifier in names]
    return tuple(_explicit_last([*short, *qualified]))


def _explicit_last(names: Iterable[str]) -> list[str]:
    """If a device has a name with and without the driver's domain, the explicit one counts (SVS-39)."""
    return sorted(names, key=lambda name: "/" in name)


def _distinct_rows(size: int, columns: tuple[Column | None, ...]) -> tuple[Row, ...]:
    values = [repeat(None, size) if column is None else column.values for column in columns]
    positions: dict[Values, list[int]] = {}
    for position, row in enumerate(zip(*values, strict=True)):
        positions.setdefault(row, []).append(position)
    return tuple([Row(row, sum(1 << position for position in alike), alike[0]) for row, alike in positions.items()])
