"""When something is still the same, so that its objects are kept: by value, and by how quantities are written."""

from __future__ import annotations

from collections.abc import Mapping

from dray.api.quantity import Quantity
from dray.api.resource import Device, DeviceCapacity, ResourceSlice, ResourceSlicePatch


def canonical(devices: tuple[Device, ...], known: Mapping[str, Device]) -> tuple[Device, ...]:
    """The same devices, with those that did not change replaced by the objects already known."""

    def canonical_one(device: Device) -> Device:
        old = known.get(device.name)
        return old if old is not None and same_device(old, device) else device

    return tuple([canonical_one(device) for device in devices])


def same_device(one: Device, other: Device) -> bool:
    """Equal in everything, also in how quantities are written, because expressions can see that."""
    return one is other or (one == other and same_notation(one.capacity, other.capacity))


def same_notation(one: Mapping[str, DeviceCapacity], other: Mapping[str, DeviceCapacity]) -> bool:
    """Whether equal capacities are also written alike."""
    return all(_written_alike(capacity.value, other[name].value) for name, capacity in one.items())


def _written_alike(one: Quantity, other: Quantity) -> bool:
    return one is other or (
        one.format == other.format
        and one.as_int64() == other.as_int64()
        and one.approximate_float() == other.approximate_float()
    )


def same_slice(one: ResourceSlice, other: ResourceSlice) -> bool:
    """Whether both publish the same, so that nothing has to be done."""
    return one is other or (one.spec == other.spec and all(map(same_device, one.spec.devices, other.spec.devices)))


def same_patch(one: ResourceSlicePatch, other: ResourceSlicePatch) -> bool:
    """Whether both have the same effect."""
    return (
        one.metadata.creation_timestamp == other.metadata.creation_timestamp
        and one.spec == other.spec
        and same_notation(one.spec.devices.capacity, other.spec.devices.capacity)
    )
