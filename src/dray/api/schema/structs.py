"""Facts of the hand-written kinds, read off their structs.

Kubernetes' OpenAPI says nothing of the fields that only dray has (`spec.taints` of a ResourceSlice, the description
of a taint, …) and of kinds that Kubernetes does not ship. Where OpenAPI does know a field, its word counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import inspect

from dray.api import registry
from dray.api.meta import Condition
from dray.api.quantity import Quantity
from dray.api.schema.facts import META_PACKAGE, Definition, GroupVersionKind, Property
from dray.api.times import MicroTime, Time

_PACKAGE_OF_MODULE = {"dray.api.meta": META_PACKAGE, "dray.api.node_selector": "io.k8s.api.core.v1"}
_REF_OF_VALUE = {
    Quantity: "io.k8s.apimachinery.pkg.api.resource.Quantity",
    Time: f"{META_PACKAGE}.Time",
    MicroTime: f"{META_PACKAGE}.MicroTime",
}
_FREE_FORM = Property(ref="io.k8s.apimachinery.pkg.runtime.RawExtension")

# Lists whose elements merge by key under server-side apply; all others are replaced as a whole.
_MAP_KEYS = {
    ("AddOnPlacementScoreStatus", "scores"): ("name",),
    ("ManagedClusterSetSpec", "managedNamespaces"): ("name",),
    ("ManagedClusterStatus", "managedNamespaces"): ("clusterSet", "name"),
}


def extend(package: str, group: str, version: str, known: Mapping[str, Definition]) -> dict[str, Definition]:
    """The definitions of a package by short name: the known ones with what the structs of its kinds add."""
    extended = dict(known)
    for kind in registry.kinds():
        if kind.group == group and version in kind.versions:
            _Walk(package, extended).add(kind.type_of(version))
            gvk = GroupVersionKind(group, version, kind.kind)
            extended[kind.kind] = msgspec.structs.replace(extended[kind.kind], kinds=(gvk,))
            extended.setdefault(f"{kind.kind}List", _list_of(package, gvk))
    return extended


class _Walk:
    """Adds a struct and the structs that it uses to a package."""

    def __init__(self, package: str, definitions: dict[str, Definition]) -> None:
        self._package = package
        self._definitions = definitions
        self._seen: set[type] = set()

    def add(self, struct: type) -> None:
        if struct in self._seen:
            return
        self._seen.add(struct)
        found = self._definition(struct)
        known = self._definitions.get(struct.__name__)
        if known is not None:
            found = msgspec.structs.replace(known, properties=found.properties | known.properties)
        self._definitions[struct.__name__] = found

    def _definition(self, struct: type) -> Definition:
        info = inspect.type_info(struct)
        if not isinstance(info, inspect.StructType):
            raise TypeError(f"{struct.__name__} is no struct")
        properties = {field.encode_name: self._field(struct, field.encode_name, field.type) for field in info.fields}
        return Definition(
            name=f"{self._package}.{struct.__name__}",
            type="object",
            required=tuple(field.encode_name for field in info.fields if _is_required(field)),
            properties=properties,
        )

    def _field(self, struct: type, name: str, info: inspect.Type) -> Property:
        found = self._property(info)
        if found.type != "array":
            return found
        keys = _MAP_KEYS.get((struct.__name__, name), ())
        if found.items is not None and found.items.ref == f"{META_PACKAGE}.{Condition.__name__}":
            keys = ("type",)
        return msgspec.structs.replace(found, list_type="map" if keys else "atomic", map_keys=keys)

    def _property(self, info: inspect.Type) -> Property:
        match info:
            case inspect.StrType():
                return Property(type="string")
            case inspect.BoolType():
                return Property(type="boolean")
            case inspect.IntType():
                return Property(type="integer", format="int64")
            case inspect.FloatType():
                return Property(type="number", format="double")
            case inspect.VarTupleType(item_type=item):
                return Property(type="array", items=self._property(item))
            case inspect.DictType(value_type=value):
                return Property(type="object", values=self._property(value))
            case inspect.CustomType(cls=cls):
                return Property(ref=_REF_OF_VALUE[cls])
            case inspect.StructType(cls=cls):
                return Property(ref=self._reference(cls))
            case inspect.UnionType(types=types):
                return self._property(next(one for one in types if not isinstance(one, inspect.NoneType)))
            case inspect.AnyType():
                return _FREE_FORM
        raise TypeError(f"no schema for {info!r}")

    def _reference(self, struct: type) -> str:
        elsewhere = _PACKAGE_OF_MODULE.get(struct.__module__)
        if elsewhere is None:
            self.add(struct)
        return f"{elsewhere or self._package}.{struct.__name__}"


def _is_required(field: inspect.Field) -> bool:
    """Scalars that are always on the wire are those that a valid object must have."""
    return field.default_factory in (str, int, bool)


def _list_of(package: str, gvk: GroupVersionKind) -> Definition:
    items: dict[str, Any] = {
        "apiVersion": Property(type="string"),
        "items": Property(type="array", items=Property(ref=f"{package}.{gvk.kind}")),
        "kind": Property(type="string"),
        "metadata": Property(ref=f"{META_PACKAGE}.ListMeta"),
    }
    name = f"{gvk.kind}List"
    return Definition(
        name=f"{package}.{name}",
        type="object",
        kinds=(gvk._replace(kind=name),),
        required=("items",),
        properties=items,
    )
