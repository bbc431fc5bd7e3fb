"""ResourceSlicePatches: who wins, and what a device looks like afterwards (KEP-5027).

Per attribute or capacity the patch of the highest priority decides, then the older one, then the first by name. A
`null` entry decides too: the attribute is gone, whatever weaker patches say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias, TypeVar

from msgspec.structs import replace

from dray.api.names import qualified
from dray.api.resource import (
    Device,
    DeviceAttribute,
    DeviceCapacity,
    NullableDeviceAttribute,
    ResourceSlicePatch,
)
from dray.tracker.identity import same_notation

_NEVER: Final = "~"
"""Sorts after every time: a patch that no server has stored yet is the youngest."""

_Value = TypeVar("_Value")
Decisions: TypeAlias = dict[str, tuple[_Value, str]]
"""By qualified name, the value that wins and the patch that it comes from."""


class Patch(NamedTuple):
    """A patch in the form in which it is merged. `unknown` names attributes whose value is of no known type."""

    name: str
    rank: tuple[int, str, str]
    attributes: dict[str, DeviceAttribute | None]
    capacity: dict[str, DeviceCapacity]
    unknown: tuple[str, ...]


PatchHits: TypeAlias = list[tuple[Patch, int]]
"""Patches that select devices of a slice, with the positions of these devices."""


class Overrides(NamedTuple):
    """What several patches together say of a device."""

    attributes: Decisions[DeviceAttribute | None]
    capacity: Decisions[DeviceCapacity]
    order: tuple[str, ...]


class Patched(NamedTuple):
    """A device with patches merged in, and the patches that changed something, strongest first."""

    device: Device
    patches: tuple[str, ...] = ()


def patch_of(source: ResourceSlicePatch) -> Patch:
    """Prepare a patch. Its rank sorts strongest first (5027-21, 5027-22)."""
    meta, spec = source.metadata, source.spec.devices
    attributes: dict[str, DeviceAttribute | None] = {}
    unknown: list[str] = []
    for name, entry in spec.attributes.items():
        value = _plain(entry)
        if entry.null is None and value == DeviceAttribute():
            unknown.append(name)  # content that only a newer version knows is not a removal (5027-12)
        else:
            attributes[name] = None if entry.null is not None else value
    rank = (-(spec.priority or 0), meta.creation_timestamp or _NEVER, meta.name)
    return Patch(meta.name, rank, attributes, spec.capacity, tuple(unknown))


def combine(patches: Iterable[Patch]) -> Overrides:
    """Decide between patches that select the same device."""
    ordered = sorted(patches, key=lambda patch: patch.rank)
    attributes: Decisions[DeviceAttribute | None] = {}
    capacity: Decisions[DeviceCapacity] = {}
    for patch in ordered:
        for name, value in patch.attributes.items():
            attributes.setdefault(name, (value, patch.name))
        for name, amount in patch.capacity.items():
            capacity.setdefault(name, (amount, patch.name))
    return Overrides(attributes, capacity, tuple([patch.name for patch in ordered]))


def merge(device: Device, driver: str, overrides: Overrides) -> Patched:
    """Apply overrides to a device of a slice. An unaffected device is returned as it is; none is changed.

    The result may have more than 32 attributes and capacities.
    """
    active: set[str] = set()
    attributes = _merge_entries(device.attributes, driver, overrides.attributes, _same_attribute, active)
    capacity = _merge_entries(device.capacity, driver, overrides.capacity, _same_capacity, active)
    if not active:
        return Patched(device)
    patched = replace(device, attributes=attributes, capacity=capacity)
    return Patched(patched, tuple([name for name in overrides.order if name in active]))


def _merge_entries(
    entries: dict[str, _Value],
    driver: str,
    decisions: Mapping[str, tuple[_Value | None, str]],
    same: Callable[[_Value, _Value], bool],
    active: set[str],
) -> dict[str, _Value]:
    """The entries with decisions applied under the names that they had. Notes patches that make a difference."""
    merged: dict[str, _Value] = {}
    applied: set[str] = set()
    for name, value in entries.items():
        full = qualified(name, driver)
        if full not in decisions:
            merged[name] = value
            continue
        decided, patch = decisions[full]
        if decided is None or full in applied:
            active.add(patch)
        else:
            merged[name] = decided
            if not same(value, decided):
                active.add(patch)
        applied.add(full)
    for full, (decided, patch) in decisions.items():
        if decided is not None and full not in applied:
            merged[_published(full, driver)] = decided
            active.add(patch)
    return merged


def _published(qualified: str, driver: str) -> str:
    """The short form in the driver's own domain (X-10, 5027-27)."""
    domain, _, identifier = qualified.partition("/")
    return identifier if domain == driver else qualified


def _same_attribute(one: DeviceAttribute | None, other: DeviceAttribute | None) -> bool:
    return one == other


def _same_capacity(one: DeviceCapacity, other: DeviceCapacity) -> bool:
    return one == other and same_notation({"": one}, {"": other})


def _plain(entry: NullableDeviceAttribute) -> DeviceAttribute:
    return DeviceAttribute(
        int_value=entry.int_value,
        bool_value=entry.bool_value,
        string=entry.string,
        version=entry.version,
        ints=entry.ints,
        bools=entry.bools,
        strings=entry.strings,
        versions=entry.versions,
    )
