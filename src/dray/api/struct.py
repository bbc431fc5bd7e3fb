"""The base of every API type, and the hooks that let msgspec read and write the value types.

How a Kubernetes field becomes an attribute:

    optional scalar           value: str = ""                                    left out when empty
    always on the wire        generation: int = field(default_factory=int)       zero when absent, always written
    optional, absent ≠ zero   count: int | None = None
    list                      devices: tuple[Device, ...] = ()
    map                       attributes: dict[str, X] = field(default_factory=dict)   never changed in place
    free-form JSON            parameters: Any = None

An always-written field works because msgspec leaves out a field only if its value *is* the default object, and a
factory has none (empty lists and maps excepted).
"""

from typing import Any, dataclass_transform

import msgspec

from dray.api.binary import NOTHING, Base64
from dray.api.quantity import Quantity
from dray.api.times import MicroTime, Time


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Struct(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    rename="camel",
    gc=False,
):
    """An immutable API value. Objects are trees, so the garbage collector need not track them."""


def decode_value(kind: type, value: Any) -> Any:
    """msgspec's hook for the types it does not know; raises ValueError with a reason a person can act on."""
    if kind is Quantity:
        return Quantity.from_json(value)
    if kind is Time:
        return Time.parse(value)
    if kind is MicroTime:
        return MicroTime.parse(value)
    if kind is Base64:
        return NOTHING if value == "" else Base64.parse(value)
    raise TypeError(f"no decoder for {kind.__name__}")


def encode_value(value: Any) -> Any:
    """msgspec's hook for writing: the inverse of `decode_value`."""
    kind = type(value)
    if kind is Quantity:
        return value.text or str(value)
    if kind is Time or kind is MicroTime or kind is Base64:
        return str(value)
    raise TypeError(f"no encoder for {type(value).__name__}")
