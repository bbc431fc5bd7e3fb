"""Run-time values.

===========  =====================  ============  ==============================
CEL          Python                 CEL           Python
===========  =====================  ============  ==============================
bool         bool                   duration      Duration
int          int                    timestamp     Timestamp
uint         Uint                   type          TypeValue
double       float                  optional      Optional
string       str                    Quantity      Quantity, ComputedQuantity
bytes        bytes                  Semver        Semver
null         None                   IP, CIDR      IPAddress, NetworkPrefix
list         list, ConcatList       URL, format   Url, NamedFormat
map          MapValue               an error      CelError
===========  =====================  ============  ==============================

Types are told apart by the exact Python class: in Python ``True == 1``, in CEL not. Errors are values, because
``&&``, ``||`` and the comprehension macros can absorb them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias, TypeGuard

from dray.api.quantity import Quantity
from dray.api.semver import Semver
from dray.cel import types

__all__ = [
    "COST_LIMIT", "INT_MAX", "INT_MIN", "MISSING", "NO_SUCH_OVERLOAD", "UINT_MAX",
    "CelError", "ComputedQuantity", "ConcatList", "CostLimitExceeded", "DomainMap", "Duration", "IPAddress",
    "InternalError", "ListValue", "LiteralMap", "MapValue", "MutableList", "MutableMap", "NamedFormat",
    "NetworkPrefix", "Optional", "StringMap", "StructValue", "Timestamp", "TypeValue", "Uint", "Url",
    "is_list", "limit_elements", "limit_text", "list_size", "size_of", "type_name", "type_value",
]  # fmt: skip

INT_MAX: Final = 2**63 - 1
INT_MIN: Final = -(2**63)
UINT_MAX: Final = 2**64 - 1

COST_LIMIT: Final = 1_000_000
"""What one evaluation may cost (4381-51, 4381-87), and how many list elements one function may walk."""


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""Stands for "no value", where None would be CEL's null."""


class CelError:
    """A failed sub-expression."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message

    def __repr__(self) -> str:
        return f"CelError({self.message!r})"


NO_SUCH_OVERLOAD: Final = CelError("no such overload")


class CostLimitExceeded(Exception):
    """An evaluation used up its budget; unlike a CelError nothing absorbs this."""


class InternalError(Exception):
    """An evaluation that Kubernetes aborts as broken; like a used-up budget it is not absorbed."""


class Uint(int):
    """An unsigned 64-bit integer. Never equal in type to an int; compare through ``equality``."""

    __slots__ = ()


class Duration:
    """A signed span of nanoseconds in 64 bits."""

    __slots__ = ("nanos",)

    def __init__(self, nanos: int) -> None:
        self.nanos = nanos

    def __repr__(self) -> str:
        return f"Duration({self.nanos})"


class Timestamp:
    """A point in time with nanoseconds, and the offset from UTC in which it is written."""

    __slots__ = ("nanos", "offset_seconds")

    def __init__(self, nanos: int, offset_seconds: int = 0) -> None:
        self.nanos = nanos
        self.offset_seconds = offset_seconds

    def __repr__(self) -> str:
        return f"Timestamp({self.nanos})"


class Optional:
    """A value or the lack of one."""

    __slots__ = ("value",)

    def __init__(self, value: Any = MISSING) -> None:
        self.value = value

    @property
    def has_value(self) -> bool:
        return self.value is not MISSING

    def __repr__(self) -> str:
        return f"Optional({self.value!r})"


class TypeValue:
    """A type as a value, known by its name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"TypeValue({self.name!r})"


class ComputedQuantity:
    """A quantity that ``add`` or ``sub`` returned.

    Kubernetes cannot compare such a value when it is the right side of ``==``, so it is kept apart.
    """

    __slots__ = ("quantity",)

    def __init__(self, quantity: Quantity) -> None:
        self.quantity = quantity

    def __repr__(self) -> str:
        return f"ComputedQuantity({str(self.quantity)!r})"


class IPAddress:
    """An IPv4 or IPv6 address without a zone."""

    __slots__ = ("address",)

    def __init__(self, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
        self.address = address

    def __repr__(self) -> str:
        return f"IPAddress({str(self.address)!r})"


class NetworkPrefix:
    """An address and the number of its leading bits that name the network; host bits may be set."""

    __slots__ = ("address", "bits")

    def __init__(self, address: ipaddress.IPv4Address | ipaddress.IPv6Address, bits: int) -> None:
        self.address = address
        self.bits = bits

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"

    def __repr__(self) -> str:
        return f"NetworkPrefix({str(self)!r})"


class Url:
    """A parsed URL: the parts that selectors can ask for, and the text by which two compare."""

    __slots__ = ("escaped_path", "host", "query", "scheme", "text")

    def __init__(self, *, scheme: str, host: str, escaped_path: str, query: str, text: str) -> None:
        self.scheme = scheme
        self.host = host
        self.escaped_path = escaped_path
        self.query = query
        self.text = text

    def __repr__(self) -> str:
        return f"Url({self.text!r})"


class NamedFormat:
    """A named rule for strings: ``violations`` says what is wrong with a text.

    ``regex_size`` is the length that the cost model assumes for the rule's regular expression.
    """

    __slots__ = ("name", "regex_size", "violations")

    def __init__(self, name: str, regex_size: int, violations: Callable[[str], list[str]]) -> None:
        self.name = name
        self.regex_size = regex_size
        self.violations = violations

    def __repr__(self) -> str:
        return f"NamedFormat({self.name!r})"


class MutableList(list[Any]):
    """The accumulator of a comprehension that gathers a list; ``+`` appends to it in place."""

    __slots__ = ()


class ConcatList:
    """Two lists in a row. Lazy, so that ``a + a`` costs the same however long ``a`` is."""

    __slots__ = ("_size", "left", "right")

    def __init__(self, left: ListValue, right: ListValue) -> None:
        self.left = left
        self.right = right
        self._size = list_size(left) + list_size(right)

    @property
    def size(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> Any:
        part: ListValue = self
        while isinstance(part, ConcatList):
            boundary = list_size(part.left)
            if index < boundary:
                part = part.left
            else:
                index -= boundary
                part = part.right
        return part[index]

    def __iter__(self) -> Iterator[Any]:
        pending: list[ListValue] = [self]
        while pending:
            part = pending.pop()
            if isinstance(part, ConcatList):
                pending.append(part.right)
                pending.append(part.left)
            else:
                yield from part

    def __repr__(self) -> str:
        return f"ConcatList({self._size} elements)"


ListValue: TypeAlias = list[Any] | ConcatList


def list_size(value: ListValue) -> int:
    """The number of elements; not ``len()``, which fails beyond what fits memory."""
    return value.size if isinstance(value, ConcatList) else len(value)


def is_list(value: object) -> TypeGuard[ListValue]:
    return isinstance(value, (list, ConcatList))


def limit_elements(values: ListValue) -> ListValue:
    """The list itself, if it is short enough to be walked within the cost limit."""
    if list_size(values) > COST_LIMIT:
        raise CostLimitExceeded
    return values


def limit_text(length: int) -> None:
    """Refuse to build a string of this length, if walking it once would use up the whole budget."""
    if length > 10 * COST_LIMIT:
        raise CostLimitExceeded


class MapValue:
    """A map. Subclasses differ in their keys, and in how they come by their values."""

    __slots__ = ()

    type_name = "map"

    def find(self, key: Any) -> Any:  # noqa: ARG002 - what subclasses need
        """The value of the key, or MISSING."""
        raise AssertionError("abstract")

    def has(self, key: Any) -> bool:
        """Whether ``key in map``."""
        return self.find(key) is not MISSING

    def keys(self) -> Iterator[Any]:
        raise AssertionError("abstract")

    def __len__(self) -> int:
        raise AssertionError("abstract")


class StringMap(MapValue):
    """A map of the input: all keys are strings."""

    __slots__ = ("entries",)

    def __init__(self, entries: dict[str, Any]) -> None:
        self.entries = entries

    def find(self, key: Any) -> Any:
        return self.entries.get(key, MISSING) if key.__class__ is str else MISSING

    def keys(self) -> Iterator[Any]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        return f"StringMap({self.entries!r})"


class StructValue(StringMap):
    """What ``Name{field: value}`` makes: a map of its fields with a type of its own."""

    __slots__ = ("type_name",)

    def __init__(self, type_name: str, entries: dict[str, Any]) -> None:
        super().__init__(entries)
        self.type_name = type_name

    def __repr__(self) -> str:
        return f"{self.type_name}({self.entries!r})"


class DomainMap(StringMap):
    """Attributes or capacities by domain: any other key finds an empty map but is not ``in`` the map."""

    __slots__ = ()

    def find(self, key: Any) -> Any:
        found = self.entries.get(key) if key.__class__ is str else None
        return _EMPTY if found is None else found

    def has(self, key: Any) -> bool:
        return key.__class__ is str and key in self.entries


_EMPTY: Final = StringMap({})


class LiteralMap(MapValue):
    """A map that the expression builds; keys are told apart by type, except that numbers find each other."""

    __slots__ = ("_entries",)

    def __init__(self, items: list[tuple[Any, Any]] | None = None) -> None:
        self._entries: dict[Any, tuple[Any, Any]] = {}
        for key, value in items or ():
            self._entries[_identity(key)] = (key, value)

    def find(self, key: Any) -> Any:
        entries = self._entries
        if not entries:
            return MISSING
        entry = entries.get(_identity(key))
        if entry is None:
            for candidate in _equal_numbers(key):
                entry = entries.get(_identity(candidate))
                if entry is not None:
                    break
        return MISSING if entry is None else entry[1]

    def keys(self) -> Iterator[Any]:
        return (key for key, _ in self._entries.values())

    def items(self) -> list[tuple[Any, Any]]:
        return list(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"LiteralMap({self.items()!r})"


class MutableMap(LiteralMap):
    """The accumulator of a comprehension that gathers a map."""

    __slots__ = ()

    def insert(self, key: Any, value: Any) -> None:
        self._entries[_identity(key)] = (key, value)


_PLAIN_KEYS: Final = frozenset({int, bool, Uint, float, type(None)})
_UNHASHABLE_KEYS: Final = frozenset({bytes, Semver, NamedFormat})


def _identity(key: Any) -> Any:
    """What makes two keys the same key; of some types no value can be looked up in a map at all."""
    kind = key.__class__
    if kind is str:
        return key
    if kind in _PLAIN_KEYS:
        return (kind, key)
    if kind in _UNHASHABLE_KEYS:
        raise InternalError(f"a {type_name(key)} cannot be a key")
    if kind in (Duration, Timestamp):
        return (kind, key.nanos)
    if kind is IPAddress:
        return (kind, key.address)
    if kind is NetworkPrefix:
        return (kind, key.address, key.bits)
    return (kind, key.name) if kind is TypeValue else (kind, id(key))


def _equal_numbers(key: Any) -> list[Any]:
    """The same number in the other integer types."""
    if key.__class__ is float:
        if key != key or key in (float("inf"), float("-inf")) or int(key) != key:
            return []
        whole = int(key)
    elif key.__class__ is int or key.__class__ is Uint:
        whole = int(key)
    else:
        return []
    candidates: list[Any] = []
    if key.__class__ is not int and INT_MIN <= whole <= INT_MAX:
        candidates.append(whole)
    if key.__class__ is not Uint and 0 <= whole <= UINT_MAX:
        candidates.append(Uint(whole))
    return candidates


_TYPES: Final[dict[type, types.Type]] = {
    bool: types.BOOL,
    int: types.INT,
    Uint: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
    list: types.list_of(types.DYN),
    MutableList: types.list_of(types.DYN),
    ConcatList: types.list_of(types.DYN),
    StringMap: types.map_of(types.DYN, types.DYN),
    DomainMap: types.map_of(types.DYN, types.DYN),
    LiteralMap: types.map_of(types.DYN, types.DYN),
    MutableMap: types.map_of(types.DYN, types.DYN),
    Duration: types.DURATION,
    Timestamp: types.TIMESTAMP,
    TypeValue: types.TYPE,
    Optional: types.optional_of(types.DYN),
    Quantity: types.QUANTITY,
    ComputedQuantity: types.QUANTITY,
    Semver: types.SEMVER,
    IPAddress: types.IP,
    NetworkPrefix: types.CIDR,
    Url: types.URL,
    NamedFormat: types.FORMAT,
}


def type_name(value: Any) -> str:
    """The name of a value's type, as ``type()`` shows it. Values that are not in the table say it themselves."""
    known = _TYPES.get(value.__class__)
    if known is not None:
        return known.name
    name: str = value.type_name
    return name


def type_value(value: Any) -> TypeValue:
    return TypeValue(type_name(value))


def size_of(value: Any) -> int:
    """The size that costs are computed from: characters, bytes, elements, entries; 1 for all else."""
    kind = value.__class__
    if kind is str or kind is bytes or kind is list:
        return len(value)
    if kind is ConcatList:
        return list_size(value)
    if isinstance(value, (list, MapValue)):
        return len(value)
    if kind is IPAddress:
        return 4 if value.address.version == 4 else 16
    if kind is NetworkPrefix:
        return -(-int(value.bits) // 8)
    return 1
