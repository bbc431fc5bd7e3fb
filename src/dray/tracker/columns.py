"""Slices by column: what the devices of a slice have in common is held, and compared, once.

    slice a   model   (H100, H100)  ──┐
              uuid    (u-1, u-2)      ├── one Column
    slice b   model   (H100, H100)  ──┘
              uuid    (u-3, u-4)

A selector reads a few columns. Slices that share them share the outcome, so an expression is evaluated once per
distinct combination of values, not once per device.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from itertools import repeat
from operator import is_
from typing import Any, TypeAlias

from dray.api.resource import Device, DeviceAttribute
from dray.cel import device_view

Values: TypeAlias = tuple[Hashable, ...]


class Column:
    """One value of each device of a slice, by position; None where a device lacks it. Compared by identity.

    Values are keys: equal if and only if no expression can tell them apart. An attribute is its own key, since its
    type is part of it (True is not 1). Equal quantities may differ in notation, which `isInteger` shows, so their
    key is their identity; `held` keeps them alive.
    """

    __slots__ = ("held", "is_faulty", "is_text", "uses", "values")

    def __init__(
        self, values: Values, held: tuple[Any, ...] = (), *, is_faulty: bool = False, is_text: bool = False
    ) -> None:
        self.values = values
        self.held = held
        self.is_faulty = is_faulty
        """A value cannot be read by CEL."""
        self.is_text = is_text
        """All values are texts."""
        self.uses = 0


class Sheet:
    """The devices of one slice, with their columns. `attributes` and `capacity` go by the names in the slice."""

    __slots__ = (
        "allow_multiple", "attributes", "capacity", "devices", "driver", "faults", "names", "pool", "size",
        "slice_name",
    )  # fmt: skip

    def __init__(self, slice_name: str, driver: str, pool: str, devices: tuple[Device, ...]) -> None:
        self.slice_name = slice_name
        self.driver = driver
        self.pool = pool
        self.devices = devices
        self.size = len(devices)
        self.names = _NO_COLUMN
        self.attributes: dict[str, Column] = {}
        self.capacity: dict[str, Column] = {}
        self.allow_multiple: Column | None = None
        self.faults: tuple[Column, ...] = ()
        """Columns with a value that CEL cannot read: such a device fails every expression, whatever that reads."""

    def columns(self) -> Iterable[Column]:
        """Every column in use."""
        yield self.names
        yield from self.attributes.values()
        yield from self.capacity.values()
        if self.allow_multiple is not None:
            yield self.allow_multiple


_NO_COLUMN = Column(())


class ColumnTable:
    """Interns columns while sheets use them."""

    def __init__(self) -> None:
        # Names, attributes, identities and flags share the table: values of different sorts are never equal.
        self._columns: dict[Values, Column] = {}

    def sheet(self, slice_name: str, driver: str, pool: str, devices: tuple[Device, ...]) -> Sheet:
        """The sheet of a slice. Give it to `release` when the slice is gone or has changed."""
        sheet = Sheet(slice_name, driver, pool, devices)
        sheet.names = self._intern(tuple([device.name for device in devices]))
        for name, values in _by_name([device.attributes for device in devices]).items():
            sheet.attributes[name] = self._intern_attributes(values)
        for name, values in _by_name([device.capacity for device in devices]).items():
            quantities = tuple([value and value.value for value in values])
            sheet.capacity[name] = self._intern(tuple(map(id, quantities)), quantities)
        flags = tuple([device.allow_multiple_allocations is True for device in devices])
        if any(flags):
            sheet.allow_multiple = self._intern(flags)
        sheet.faults = tuple([column for column in sheet.attributes.values() if column.is_faulty])
        for column in sheet.columns():
            column.uses += 1
        return sheet

    def release(self, sheet: Sheet) -> None:
        """Forget columns that no other sheet uses."""
        for column in sheet.columns():
            column.uses -= 1
            if not column.uses:
                del self._columns[column.values]

    def __len__(self) -> int:
        return len(self._columns)

    def _intern(self, values: Values, held: tuple[Any, ...] = ()) -> Column:
        column = self._columns.get(values)
        if column is None:
            column = self._columns[values] = Column(values, held)
        return column

    def _intern_attributes(self, values: tuple[DeviceAttribute | None, ...]) -> Column:
        column = self._columns.get(values)
        if column is None:
            is_text = all(value is not None and _is_text(value) for value in values)
            is_faulty = not is_text and not all(value is None or _is_readable(value) for value in values)
            column = self._columns[values] = Column(values, is_faulty=is_faulty, is_text=is_text)
        return column


def _by_name(entries: list[dict[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """Turn rows into columns. Devices of one slice mostly have the same names in the same order, or one row."""
    if not entries:
        return {}
    first = entries[0]
    if all(map(is_, entries, repeat(first, len(entries)))):
        return {name: (value,) * len(entries) for name, value in first.items()}
    names = [*map(tuple, entries)]
    if names.count(names[0]) == len(names):
        return dict(zip(names[0], zip(*[entry.values() for entry in entries], strict=True), strict=True))
    every = dict.fromkeys(name for entry in entries for name in entry)
    return {name: tuple([entry.get(name) for entry in entries]) for name in every}


def _is_text(value: DeviceAttribute) -> bool:
    is_other = value.int_value is not None or value.bool_value is not None or value.version is not None
    is_list = value.strings or value.ints or value.bools or value.versions
    return value.string is not None and not is_other and not is_list


def _is_readable(value: DeviceAttribute) -> bool:
    """Whether CEL can convert the value: numbers have a range, versions a syntax."""
    return _is_text(value) or device_view(Device(attributes={"value": value}), "").error is None


def positions(mask: int) -> Iterator[int]:
    """The positions in a mask, from the lowest."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def position_of(names: Column, device: str) -> int | None:
    """Where the device stands in the slice, or None."""
    try:
        return names.values.index(device)
    except ValueError:
        return None
