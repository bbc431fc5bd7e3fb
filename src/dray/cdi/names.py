"""Names in CDI: kinds such as `example.com/gpu`, and qualified device ids such as `example.com/gpu=gpu-0`."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from dray.cdi.errors import CdiError

_VENDOR_OR_CLASS: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_DEVICE: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.:-]*[A-Za-z0-9])?")

_BAD_VENDOR_OR_CLASS: Final = "must be letters, digits, '_', '-' and '.', a letter first and a letter or digit last"
_BAD_DEVICE: Final = "must be letters, digits, '_', '-', '.' and ':', a letter or digit at both ends"


class DeviceId(NamedTuple):
    """A qualified device name in its three parts."""

    vendor: str
    device_class: str
    name: str

    @classmethod
    def parse(cls, text: str) -> DeviceId:
        """The parts of `vendor/class=name`. Raises CdiError."""
        kind, equals, name = text.partition("=")
        vendor, slash, device_class = kind.partition("/")
        if not (equals and slash):
            raise CdiError(f'CDI device "{text}" is not qualified: it must be <vendor>/<class>=<name>')
        problems = [*check_kind(kind), *(f"name {problem}" for problem in check_device_name(name))]
        if problems:
            raise CdiError(f'CDI device "{text}": {"; ".join(problems)}')
        return cls(vendor, device_class, name)

    @property
    def kind(self) -> str:
        """Vendor and class, as in a spec."""
        return f"{self.vendor}/{self.device_class}"

    def __str__(self) -> str:
        return f"{self.vendor}/{self.device_class}={self.name}"


def is_vendor_of(vendor: str, driver: str) -> bool:
    """Whether CDI devices of a vendor are a driver's own, by their domains.

    A driver's vendor is its own name (`gpu.example.com`), something below it (`k8s.gpu.example.com`, which is what
    drivers call the devices that they make for claims) or above it (`example.com`), but no top-level domain.
    """
    own, other = driver.lower(), vendor.lower()
    return other == own or other.endswith(f".{own}") or (own.endswith(f".{other}") and "." in other)


def qualify(kind: str, name: str) -> str:
    """The qualified id of a device of a kind."""
    return f"{kind}={name}"


def check_kind(kind: str) -> list[str]:
    """What is wrong with a kind; nothing if it is good."""
    vendor, slash, device_class = kind.partition("/")
    if not slash:
        return ["must be <vendor>/<class>"]
    parts = (("vendor", vendor), ("class", device_class))
    return [f"{part} {_BAD_VENDOR_OR_CLASS}" for part, value in parts if not _VENDOR_OR_CLASS.fullmatch(value)]


def check_device_name(name: str) -> list[str]:
    """What is wrong with a device's name; nothing if it is good."""
    return [] if _DEVICE.fullmatch(name) else [_BAD_DEVICE]
