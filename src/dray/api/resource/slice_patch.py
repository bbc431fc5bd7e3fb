"""ResourceSlicePatch: what an admin says of devices over the heads of their drivers (KEP-5027)."""

from __future__ import annotations

from msgspec import field

from dray.api.meta import Object
from dray.api.resource.device_class import DeviceSelector
from dray.api.resource.slice import DeviceCapacity
from dray.api.struct import Struct


class NullValue(Struct):
    """Marks an attribute as removed, as against one whose content an older client does not know (5027-12)."""


class NullableDeviceAttribute(Struct):
    """An attribute value of exactly one type, or `null`, which removes the attribute."""

    int_value: int | None = field(default=None, name="int")
    bool_value: bool | None = field(default=None, name="bool")
    string: str | None = None
    version: str | None = None
    ints: tuple[int, ...] | None = None
    bools: tuple[bool, ...] | None = None
    strings: tuple[str, ...] | None = None
    versions: tuple[str, ...] | None = None
    null: NullValue | None = None


class DevicePatchFilter(Struct):
    """Devices that a patch changes: every given criterion must hold."""

    device_class_name: str | None = None
    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    selectors: tuple[DeviceSelector, ...] = ()


class DevicePatch(Struct):
    """Attributes and capacities to set, under fully qualified names. Without a filter it matches all devices.

    Of several patches the higher priority wins per name, then the older patch (5027-21, 5027-22).
    """

    filter: DevicePatchFilter | None = None
    priority: int | None = None
    attributes: dict[str, NullableDeviceAttribute] = field(default_factory=dict)
    capacity: dict[str, DeviceCapacity] = field(default_factory=dict)


class ResourceSlicePatchSpec(Struct):
    """How to patch devices."""

    devices: DevicePatch = field(default_factory=DevicePatch)


class ResourceSlicePatch(Object):
    """Overrides or extends what drivers publish, in the view of the scheduler only. Cluster-scoped."""

    spec: ResourceSlicePatchSpec = field(default_factory=ResourceSlicePatchSpec)
