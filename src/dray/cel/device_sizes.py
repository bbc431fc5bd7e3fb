"""How large the parts of a device can be, which cost estimates start from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from dray.cel.ranges import Range

__all__ = ["Path", "device_size"]

Path: TypeAlias = tuple[str, ...]
"""Where a value comes from: a variable, then field names or ``@items``, ``@keys``, ``@values``, ``@indices``."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the device: its largest size and what is in it."""

    size: int
    key: _Part | None = None
    element: _Part | None = None
    fields: dict[str, _Part] = field(default_factory=dict)


_ATTRIBUTE: Final = _Part(64)
_IDENTIFIER: Final = _Part(32)
_DOMAIN: Final = _Part(63)
_ATTRIBUTES: Final = _Part(32, key=_DOMAIN, element=_Part(32, key=_IDENTIFIER, element=_ATTRIBUTE))
_CAPACITIES: Final = _Part(32, key=_DOMAIN, element=_Part(32, key=_IDENTIFIER, element=_Part(0)))
_DEVICE: Final = _Part(
    0,
    fields={
        "driver": _Part(63),
        "allowMultipleAllocations": _Part(1),
        "attributes": _ATTRIBUTES,
        "capacity": _CAPACITIES,
    },
)


def device_size(path: Path) -> Range | None:
    """The size of what the path leads to, or None if it leads to no known part of the device."""
    if not path or path[0] != "device":
        return None
    part: _Part | None = _DEVICE
    for name in path[1:]:
        part = _follow(part, name)
        if part is None:
            return None
    return Range(0, part.size) if part is not None else None


def _follow(part: _Part | None, name: str) -> _Part | None:
    if part is None:
        return None
    if name in ("@items", "@values"):
        return part.element
    if name == "@keys":
        return part.key
    # Every attribute has the same limit, whatever its name. Capacities are no strings and have none.
    return part.fields.get(name) or (_ATTRIBUTE if part.element is _ATTRIBUTE else None)
