"""Devices as a driver author writes them, in plain Python values, and how they become those of the API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dray.api import resource
from dray.api.quantity import Quantity, QuantityError
from dray.api.resource import Counter, DeviceAttribute, DeviceCapacity, DeviceCounterConsumption, DeviceTaint
from dray.driver.errors import DriverError

Taint = DeviceTaint
"""A mark on a device: `Taint(key="gpu.example.com/overheated", effect="NoSchedule")`."""

Amount: TypeAlias = str | int | Quantity
"""A quantity: `"80Gi"`, `80`."""


class Version(str):
    """A semantic version as the value of an attribute: `Version("2.1.0")`."""

    __slots__ = ()


Value: TypeAlias = bool | int | str | Version | Sequence[int] | Sequence[str] | Sequence[bool] | Sequence[Version]
"""What an attribute can be. Lists are of one type."""


@dataclass(frozen=True)
class Device:
    """A device that a driver has found.

    Attributes and capacities belong to the driver unless their name has a domain, as standard ones have
    (`resource.kubernetes.io/pcieRoot`). The pool is that of the node, unless another is named. `consumes` says what the
    device takes from shared counters while it is allocated (`{"board-0": {"memory": "10Gi"}}`), `shareable` that
    several claims may use it at once. Whatever else the API offers goes into `more`, by the names of
    `dray.api.resource.Device`.
    """

    name: str
    attributes: Mapping[str, Value] = field(default_factory=dict)
    capacity: Mapping[str, Amount | DeviceCapacity] = field(default_factory=dict)
    taints: Iterable[Taint] | None = ()
    pool: str = ""
    consumes: Mapping[str, Mapping[str, Amount]] = field(default_factory=dict)
    shareable: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CounterSet:
    """Counters that several devices of a pool draw from: `CounterSet("board-0", {"memory": "80Gi"})`."""

    name: str
    counters: Mapping[str, Amount]
    pool: str = ""


def to_api(device: Device) -> resource.Device:
    """The device as a slice has it, without its taints. Raises DriverError, naming device and field."""
    where = f'device "{device.name}"'
    consumed = tuple(
        DeviceCounterConsumption(counter_set=name, counters=_counters(counters, f"{where}: consumes {name}"))
        for name, counters in device.consumes.items()
    )
    return resource.Device(
        name=device.name,
        attributes={name: _attribute(value, f"{where}: {name}") for name, value in device.attributes.items()},
        capacity={name: _capacity(amount, f"{where}: {name}") for name, amount in device.capacity.items()},
        consumes_counters=consumed,
        allow_multiple_allocations=True if device.shareable else None,
        **device.more,
    )


def counter_set_to_api(counter_set: CounterSet) -> resource.CounterSet:
    """The counters as a slice has them. Raises DriverError."""
    where = f'counter set "{counter_set.name}"'
    return resource.CounterSet(name=counter_set.name, counters=_counters(counter_set.counters, where))


def _attribute(value: Value, where: str) -> DeviceAttribute:
    # bool is an int and Version a str in Python; the narrower type comes first.
    if isinstance(value, bool):
        return DeviceAttribute(bool_value=value)
    if isinstance(value, int):
        return DeviceAttribute(int_value=value)
    if isinstance(value, Version):
        return DeviceAttribute(version=str(value))
    if isinstance(value, str):
        return DeviceAttribute(string=value)
    items: tuple[Any, ...] = tuple(value) if isinstance(value, Sequence) else ()
    kinds = {type(item) for item in items}
    if kinds == {bool}:
        return DeviceAttribute(bools=items)
    if kinds == {int}:
        return DeviceAttribute(ints=items)
    if kinds == {Version}:
        return DeviceAttribute(versions=tuple(map(str, items)))
    if kinds == {str}:
        return DeviceAttribute(strings=items)
    raise DriverError(f"{where}: {value!r} is no attribute value; use bool, int, str, Version or a list of one of them")


def _capacity(amount: Amount | DeviceCapacity, where: str) -> DeviceCapacity:
    return amount if isinstance(amount, DeviceCapacity) else DeviceCapacity(value=_quantity(amount, where))


def _counters(counters: Mapping[str, Amount], where: str) -> dict[str, Counter]:
    return {name: Counter(value=_quantity(amount, f"{where}.{name}")) for name, amount in counters.items()}


def _quantity(amount: Amount, where: str) -> Quantity:
    if isinstance(amount, Quantity):
        return amount
    try:
        return Quantity.parse(amount)
    except (QuantityError, TypeError) as error:
        raise DriverError(f"{where}: {error}") from None
