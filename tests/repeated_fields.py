"""Documents of any kind in which every list and map has a given number of entries, made from the types alone."""

from __future__ import annotations

from base64 import b64encode
from typing import Any
from zlib import crc32

import msgspec
from msgspec import inspect

from dray.api.binary import Base64
from dray.api.generated.apps import ReplicaSet
from dray.api.generated.core import Pod, PodSpec
from dray.api.quantity import Quantity
from dray.api.registry import Kind
from dray.api.times import MicroTime

LONG_LISTS = 1
"""Only the first entries of a list have long lists in them, so that a document grows as its lists do."""


class Filling(msgspec.Struct, frozen=True):
    """How lists and maps are filled: with how many entries, all different or all alike, one list alone or all."""

    size: int
    alike: bool = False
    sparse: int = 0
    """Every so many optional fields is left out of entries of lists, others from one entry to the next; 0: none is."""


def document(kind: Kind, version: str, filling: Filling) -> dict[str, Any]:
    """An object of the kind whose lists and maps have the size that the filling says."""
    info = inspect.type_info(kind.type_of(version))
    assert isinstance(info, inspect.StructType)
    made = _struct(info, filling, "", 0, (), long=True)
    made["apiVersion"], made["kind"] = kind.api_version_of(version), kind.kind
    metadata = made.setdefault("metadata", {})
    metadata["name"] = "thing"
    for field in ("generateName", "deletionTimestamp", "deletionGracePeriodSeconds", "namespace", "resourceVersion"):
        metadata.pop(field, None)
    if kind.namespaced:
        metadata["namespace"] = "default"
    return made


def _value(info: inspect.Type, filling: Filling, path: str, number: int, above: tuple[type, ...], *, long: bool) -> Any:
    match info:
        case inspect.UnionType():
            options = [option for option in info.types if not isinstance(option, inspect.NoneType)]
            return _value(options[0], filling, path, number, above, long=long)
        case inspect.StructType():
            return _struct(info, filling, path, number, above, long=long)
        case inspect.VarTupleType():
            return _entries(info.item_type, filling, path, above, long=long)
        case inspect.DictType():
            entries = _entries(info.value_type, filling, path, above, long=long)
            return {f"{_text(path)}-{index}": entry for index, entry in enumerate(entries)}
        case inspect.AnyType():
            return {f"key-{index}": index for index in range(_size(filling, long=long))}
        case inspect.BoolType():
            return True
        case inspect.IntType() | inspect.FloatType():
            return number + 101  # beyond the small limits of numbers, whatever the size
        case inspect.CustomType() if info.cls is Base64:
            return b64encode(f"{_text(path)}-{number}".encode()).decode()
        case inspect.CustomType():
            return {Quantity: "1", MicroTime: "2026-01-02T03:04:05.000000Z"}.get(info.cls, "2026-01-02T03:04:05Z")
    return f"{_text(path)}-{number}"


def _size(filling: Filling, *, long: bool) -> int:
    return filling.size if long else 1


def _entries(item: inspect.Type, filling: Filling, path: str, above: tuple[type, ...], *, long: bool) -> list[Any]:
    if isinstance(item, inspect.StructType) and item.cls in above:
        return []
    return [
        _value(item, filling, f"{path}[]", 0 if filling.alike else index, above, long=long and index < LONG_LISTS)
        for index in range(_size(filling, long=long))
    ]


def _struct(
    info: inspect.StructType, filling: Filling, path: str, number: int, above: tuple[type, ...], *, long: bool
) -> dict[str, Any]:
    if info.cls in above:
        return {}
    inside = (*above, info.cls)
    long = long and not (info.cls is PodSpec and above[0] not in (Pod, ReplicaSet))  # these stand for all
    return {
        field.encode_name: _value(field.type, filling, f"{path}.{field.encode_name}", number, inside, long=long)
        for field in info.fields
        if not _left_out(field, filling, path, number, long=long)
    }


def _left_out(field: inspect.Field, filling: Filling, path: str, number: int, *, long: bool) -> bool:
    """Whether an entry goes without a field. It is so for every eighth entry again, so that twice as many have twice
    as many fields."""
    if not filling.sparse or "[]" not in path or (long and _holds_lists(field.type)):
        return False
    return crc32(f"{field.name} {number % 8}".encode()) % filling.sparse == 0


def _holds_lists(info: inspect.Type) -> bool:
    if isinstance(info, inspect.UnionType):
        return any(map(_holds_lists, info.types))
    return isinstance(info, inspect.StructType | inspect.VarTupleType | inspect.DictType | inspect.AnyType)


def _text(path: str) -> str:
    """A name that says where it stands; references then find what they refer to only by number."""
    return path.rpartition(".")[2].replace("[]", "").lower()
