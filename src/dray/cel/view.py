"""A device as expressions see it: ``device.driver``, ``.attributes``, ``.capacity`` and so on.

All values are converted once, when the view is built. A value that cannot be converted, such as a bad version,
makes every expression on the device fail, even one that does not look at it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from dray.api.quantity import Quantity, QuantityError
from dray.api.semver import Semver, SemverError
from dray.cel.values import INT_MAX, INT_MIN, DomainMap, StringMap

__all__ = ["DeviceView", "device_view"]

_JSON_NAMES: Final = ("ints", "bools", "strings", "versions", "int", "bool", "string", "version")
"""The fields of an attribute. Only one is to be set; if there are more, the first counts."""


class _BadDevice(ValueError):
    """A device value that cannot be converted."""


class DeviceView:
    """The input of an evaluation. ``error`` is set if the device cannot be evaluated at all.

    ``attributes`` and ``capacity`` are plain dictionaries by domain and then by name.
    """

    __slots__ = ("_root", "allow_multiple_allocations", "attributes", "capacity", "driver", "error")

    def __init__(
        self,
        driver: str,
        attributes: dict[str, dict[str, Any]],
        capacity: dict[str, dict[str, Any]],
        *,
        allow_multiple_allocations: bool = False,
        error: str | None = None,
    ) -> None:
        self.driver = driver
        self.attributes = attributes
        self.capacity = capacity
        self.allow_multiple_allocations = allow_multiple_allocations
        self.error = error
        self._root: StringMap | None = None

    @property
    def root(self) -> StringMap:
        """The device as a CEL value."""
        if self._root is None:
            self._root = StringMap(
                {
                    "driver": self.driver,
                    "allowMultipleAllocations": self.allow_multiple_allocations,
                    "attributes": _domains(self.attributes),
                    "capacity": _domains(self.capacity),
                }
            )
        return self._root


def device_view(device: Any, driver: str) -> DeviceView:
    """Prepare a device, given as an entry of a ResourceSlice's ``devices`` or as the typed object.

    Names without a domain belong to the driver's domain (4381-82).
    """
    convert: Callable[[str, Any], Any]
    if isinstance(device, Mapping):
        attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
        is_shared = bool(device.get("allowMultipleAllocations"))
        convert = _attribute_from_json
    else:
        attributes, capacity = device.attributes, device.capacity
        is_shared = bool(device.allow_multiple_allocations)
        convert = _attribute_from_struct
    try:
        return DeviceView(
            driver,
            _by_domain(attributes, driver, convert),
            _by_domain(capacity, driver, _capacity),
            allow_multiple_allocations=is_shared,
        )
    except _BadDevice as error:
        return DeviceView(driver, {}, {}, allow_multiple_allocations=is_shared, error=str(error))


def _domains(values: dict[str, dict[str, Any]]) -> DomainMap:
    return DomainMap({domain: StringMap(entries) for domain, entries in values.items()})


def _by_domain(
    entries: Mapping[str, Any], driver: str, convert: Callable[[str, Any], Any]
) -> dict[str, dict[str, Any]]:
    domains: dict[str, dict[str, Any]] = {}
    for name, entry in entries.items():
        if entry is None:
            continue  # a removed attribute: expressions never see null (5027-24)
        domain, slash, identifier = name.partition("/")
        value = convert(name, entry)
        if slash:
            domains.setdefault(domain, {})[identifier] = value
        else:
            # Of `x` and `<driver>/x`, which mean the same, the one with the domain counts (SVS-39).
            domains.setdefault(driver, {}).setdefault(name, value)
    return domains


def _attribute_from_json(name: str, attribute: Any) -> Any:
    for json_name in _JSON_NAMES if len(attribute) > 1 else attribute:
        value = attribute.get(json_name)
        if value is not None and json_name in _CONVERTERS:
            return _CONVERTERS[json_name](name, value)
    raise _BadDevice(f"attribute {name}: unsupported attribute value")


def _attribute_from_struct(name: str, attribute: Any) -> Any:
    for values in (attribute.ints, attribute.bools, attribute.strings):
        if values:
            return list(values)
    if attribute.versions:
        return [_version(name, text) for text in attribute.versions]
    for value in (attribute.int_value, attribute.bool_value, attribute.string):
        if value is not None:
            return value
    if attribute.version is not None:
        return _version(name, attribute.version)
    raise _BadDevice(f"attribute {name}: unsupported attribute value")


def _capacity(name: str, capacity: Any) -> Quantity:
    value = capacity.get("value") if isinstance(capacity, Mapping) else capacity.value
    if isinstance(value, Quantity):
        return value
    try:
        return Quantity.from_json(value)
    except QuantityError as error:
        raise _BadDevice(f"capacity {name}: {error}") from None


def _version(name: str, text: Any) -> Semver:
    try:
        return Semver.parse(_checked(name, text, str))
    except SemverError as error:
        raise _BadDevice(f"attribute {name}: {error}") from None


def _checked(name: str, value: Any, wanted: type) -> Any:
    if type(value) is not wanted:
        raise _BadDevice(f"attribute {name}: expected {wanted.__name__}, not {type(value).__name__}")
    if isinstance(value, int) and not INT_MIN <= value <= INT_MAX:
        raise _BadDevice(f"attribute {name}: the number does not fit 64 bits")
    return value


def _scalar(wanted: type) -> Callable[[str, Any], Any]:
    return lambda name, value: _checked(name, value, wanted)


def _list(convert: Callable[[str, Any], Any]) -> Callable[[str, Iterable[Any]], list[Any]]:
    return lambda name, values: [convert(name, value) for value in values]


_CONVERTERS: Final[dict[str, Callable[[str, Any], Any]]] = {
    "int": _scalar(int),
    "bool": _scalar(bool),
    "string": _scalar(str),
    "version": _version,
    "ints": _list(_scalar(int)),
    "bools": _list(_scalar(bool)),
    "strings": _list(_scalar(str)),
    "versions": _list(_version),
}
