"""What a tracker must show, computed the slow way: every rule and patch against every device, each time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from dray import cel
from dray.api.resource import (
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClass,
    DevicePatchFilter,
    DeviceSelector,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintSelector,
    ResourceSlice,
    ResourceSlicePatch,
)
from dray.api.resource.pool import pool_of
from dray.tracker import EffectiveDevice, PoolView, TrackedObject, Tracker


class ShownDevice(NamedTuple):
    """A device, with attributes and capacities under qualified names."""

    name: str
    slice_name: str
    attributes: dict[str, DeviceAttribute]
    capacity: dict[str, tuple[DeviceCapacity, int | None]]
    taints: list[tuple[DeviceTaint, str | None]]


class ShownPool(NamedTuple):
    """A pool, with what can be said of its problem without words."""

    generation: int
    incomplete: bool
    devices: list[ShownDevice]


class Failed(Exception):
    """A selector has no answer for a device; the arguments are its position and the class that it is in."""


PartKey = tuple[str, str, str]
"""Driver, pool, and the node whose part of the pool it is."""


def show(tracker: Tracker) -> dict[PartKey, ShownPool]:
    """What a tracker shows."""
    return {(*key, part.node): show_pool(part) for key, view in tracker.pools.items() for part in view.each()}


def show_pool(view: PoolView) -> ShownPool:
    """What a pool shows."""
    return ShownPool(view.generation, view.incomplete, [_show_device(found) for found in view.devices])


def _show_device(found: EffectiveDevice) -> ShownDevice:
    taints = [(tracked.taint, tracked.rule) for tracked in found.taints]
    return _shown(found.device, found.id.driver, found.slice_name, taints)


def _shown(device: Device, driver: str, slice_name: str, taints: list[tuple[DeviceTaint, str | None]]) -> ShownDevice:
    device = _explicit_last(device)
    attributes = {_qualified(name, driver): value for name, value in device.attributes.items()}
    capacity = {_qualified(name, driver): (value, value.value.as_int64()) for name, value in device.capacity.items()}
    return ShownDevice(device.name, slice_name, attributes, capacity, taints)


def _explicit_last(device: Device) -> Device:
    """If a device has both forms of a name, the explicit one counts."""
    return msgspec.structs.replace(
        device,
        attributes={name: device.attributes[name] for name in sorted(device.attributes, key=_is_explicit)},
        capacity={name: device.capacity[name] for name in sorted(device.capacity, key=_is_explicit)},
    )


def _is_explicit(name: str) -> bool:
    return "/" in name


def _qualified(name: str, driver: str) -> str:
    return name if "/" in name else f"{driver}/{name}"


def _newest(slices: list[ResourceSlice]) -> list[ResourceSlice]:
    generation = max((slice_.spec.pool.generation for slice_ in slices), default=0)
    return [slice_ for slice_ in slices if slice_.spec.pool.generation == generation]


def _is_complete(slices: list[ResourceSlice]) -> bool:
    return {slice_.spec.pool.resource_slice_count for slice_ in slices} == {len(slices)}


def _is_reached(slices: list[ResourceSlice], by: list[ResourceSlice], *, equal: bool = True) -> bool:
    """Whether others are of a higher generation, or (`equal`) of the same."""
    own = slices[0].spec.pool.generation
    return any(other.spec.pool.generation > own - equal for other in by)


class Twin:
    """The same objects as a tracker has."""

    def __init__(self, objects: Iterable[TrackedObject]) -> None:
        self.slices: list[ResourceSlice] = []
        self.rules: list[DeviceTaintRule] = []
        self.patches: list[ResourceSlicePatch] = []
        self.classes: dict[str, DeviceClass] = {}
        for obj in sorted(objects, key=lambda obj: obj.metadata.name):
            if isinstance(obj, ResourceSlice):
                self.slices.append(obj)
            elif isinstance(obj, DeviceTaintRule):
                self.rules.append(obj)
            elif isinstance(obj, ResourceSlicePatch):
                self.patches.append(obj)
            else:
                self.classes[obj.metadata.name] = obj

    def show(self) -> dict[PartKey, ShownPool]:
        """What the tracker must show."""
        return {key: self._show_pool(key, current) for key, current in self._parts().items()}

    def failures(self) -> dict[tuple[str, str, int, str | None], int]:
        """On how many devices each selector fails: by kind and name of its owner, position and class."""
        counts: dict[tuple[str, str, int, str | None], int] = {}
        for slice_, device in self._current_devices():
            for patch in self.patches:
                wanted = patch.spec.devices.filter or DevicePatchFilter()
                _count(counts, "ResourceSlicePatch", patch, self._failure(wanted, slice_, device))
            for rule in self.rules:
                if rule.spec.device_selector is not None:
                    failure = self._failure(rule.spec.device_selector, slice_, self._patched(slice_, device))
                    _count(counts, "DeviceTaintRule", rule, failure)
        return counts

    def _show_pool(self, key: PartKey, current: list[ResourceSlice]) -> ShownPool:
        devices = [
            _shown(self._patched(slice_, device), key[0], slice_.metadata.name, self._taints(current, slice_, device))
            for slice_ in current
            for device in slice_.spec.devices
        ]
        counts = {slice_.spec.pool.resource_slice_count for slice_ in current}
        return ShownPool(current[0].spec.pool.generation, counts != {len(current)}, devices)

    def _parts(self) -> dict[PartKey, list[ResourceSlice]]:
        """The slices that count, by whom they count for."""
        parts: dict[PartKey, list[ResourceSlice]] = {}
        for driver, pool in {pool_of(slice_) for slice_ in self.slices}:
            mine = [slice_ for slice_ in self.slices if pool_of(slice_) == (driver, pool)]
            rest = list(mine)
            newest_own = []
            for node in sorted({slice_.spec.node_name or "" for slice_ in mine}):
                own = [slice_ for slice_ in mine if (slice_.spec.node_name or "") == node]
                is_alone = len(own) == len(mine)
                for_all = [slice_ for slice_ in mine if not slice_.spec.node_name]
                current = _newest(own)
                if is_alone or (node and _is_complete(current) and not _is_reached(current, for_all)):
                    parts[driver, pool, node] = current
                    newest_own.append(current[0])
                    rest = [slice_ for slice_ in rest if slice_ not in own]
            others = _newest(rest)
            for_all = [slice_ for slice_ in rest if not slice_.spec.node_name]
            not_newer = [slice_ for slice_ in rest if _is_reached([slice_], for_all)]
            for fewer in (not_newer, for_all):
                if fewer and not _is_complete(others) and _is_complete(_newest(fewer)):
                    others = _newest(fewer)
            if others and (_is_complete(others) or not _is_reached(others, newest_own, equal=False)):
                parts[driver, pool, ""] = others
        return parts

    def _current_devices(self) -> Iterator[tuple[ResourceSlice, Device]]:
        for current in self._parts().values():
            for slice_ in current:
                for device in slice_.spec.devices:
                    yield slice_, device

    def _taints(
        self, current: list[ResourceSlice], slice_: ResourceSlice, device: Device
    ) -> list[tuple[DeviceTaint, str | None]]:
        published = list(device.taints)
        published += [entry.taint for other in current for entry in other.spec.taints if entry.device == device.name]
        once = [taint for position, taint in enumerate(published) if taint not in published[:position]]
        patched = self._patched(slice_, device)
        from_rules: list[tuple[DeviceTaint, str | None]] = [
            (rule.spec.taint, rule.metadata.name)
            for rule in self.rules
            if rule.spec.device_selector is not None and self._selects(rule.spec.device_selector, slice_, patched)
        ]
        return [*((taint, None) for taint in once), *from_rules]

    def _patched(self, slice_: ResourceSlice, device: Device) -> Device:
        driver = slice_.spec.driver
        shown = _shown(device, driver, slice_.metadata.name, [])
        attributes: dict[str, Any] = dict(shown.attributes)
        capacity = {name: amount for name, (amount, _) in shown.capacity.items()}
        weakest_first = sorted(self.patches, key=_strength, reverse=True)
        for patch in weakest_first:
            devices = patch.spec.devices
            if not self._selects(devices.filter or DevicePatchFilter(), slice_, device):
                continue
            for name, value in devices.attributes.items():
                plain = DeviceAttribute(
                    int_value=value.int_value, bool_value=value.bool_value, string=value.string, version=value.version
                )
                attributes[name] = None if value.null is not None else plain
            capacity |= devices.capacity
        kept = {name: value for name, value in attributes.items() if value is not None}
        return Device(
            name=device.name,
            attributes=kept,
            capacity=capacity,
            allow_multiple_allocations=device.allow_multiple_allocations,
        )

    def _selects(self, wanted: DeviceTaintSelector | DevicePatchFilter, slice_: ResourceSlice, device: Device) -> bool:
        try:
            return self._evaluate(wanted, slice_, device)
        except Failed:
            return False

    def _failure(
        self, wanted: DeviceTaintSelector | DevicePatchFilter, slice_: ResourceSlice, device: Device
    ) -> Failed | None:
        try:
            self._evaluate(wanted, slice_, device)
        except Failed as failure:
            return failure
        return None

    def _evaluate(self, wanted: DeviceTaintSelector | DevicePatchFilter, slice_: ResourceSlice, device: Device) -> bool:
        spec = slice_.spec
        if wanted.driver not in (None, spec.driver) or wanted.pool not in (None, spec.pool.name):
            return False
        if wanted.device not in (None, device.name):
            return False
        selectors: list[tuple[int, str | None, DeviceSelector]] = []
        if wanted.device_class_name is not None:
            device_class = self.classes.get(wanted.device_class_name)
            if device_class is None:
                return False
            selectors += [
                (position, device_class.metadata.name, selector)
                for position, selector in enumerate(device_class.spec.selectors)
            ]
        selectors += [(position, None, selector) for position, selector in enumerate(wanted.selectors)]
        for position, class_name, selector in selectors:
            assert selector.cel is not None
            program = cel.compile(selector.cel.expression, mode="stored")
            try:
                if not program.evaluate(_explicit_last(device), spec.driver):
                    return False
            except cel.EvaluationError as error:
                raise Failed(position, class_name) from error
        return True


def _strength(patch: ResourceSlicePatch) -> tuple[int, bool, str, str]:
    """Sorts the strongest first."""
    created = patch.metadata.creation_timestamp
    return -(patch.spec.devices.priority or 0), created is None, created or "", patch.metadata.name


def _count(
    counts: dict[tuple[str, str, int, str | None], int],
    kind: str,
    owner: DeviceTaintRule | ResourceSlicePatch,
    failure: Failed | None,
) -> None:
    if failure is not None:
        position, class_name = failure.args
        key = (kind, owner.metadata.name, position, class_name)
        counts[key] = counts.get(key, 0) + 1
