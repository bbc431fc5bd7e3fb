"""DeviceClass: an admin's selection of devices and their configuration, which requests refer to by name."""

from __future__ import annotations

from typing import Any

from msgspec import field

from dray.api.meta import Object
from dray.api.struct import Struct

SELECTORS = 32
CONFIGS = 32
EXPRESSION_BYTES = 10 * 1024
OPAQUE_PARAMETER_BYTES = 10 * 1024


class CELDeviceSelector(Struct):
    """A CEL expression over `device`; it must evaluate to true for a device to be selected."""

    expression: str = field(default_factory=str)


class DeviceSelector(Struct):
    """One selection criterion. Exactly one field is set; today there is only `cel`."""

    cel: CELDeviceSelector | None = None


class OpaqueDeviceConfiguration(Struct):
    """Parameters for one driver; dray passes them on unread."""

    driver: str = field(default_factory=str)
    parameters: Any = field(default_factory=lambda: None)


class DeviceClassConfiguration(Struct):
    """Configuration for every device allocated through the class."""

    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(Struct):
    """What a class selects. A device must satisfy all selectors."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(Object):
    """A named selection of devices. Cluster-scoped; may change at any time, allocations made keep what they got."""

    spec: DeviceClassSpec = field(default_factory=DeviceClassSpec)
