"""Message classes of the protobuf runtime, made of the tables when they are first asked for."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from dray.server.protobuf import tables

RECURSIVE = frozenset(
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps",
        "io.k8s.api.scheduling.v1alpha3.CompositePodGroupTemplate",
        "io.k8s.api.scheduling.v1beta1.CompositePodGroupTemplate",
    )
)
"""Messages that hold themselves, at any depth, where the runtime ends at a hundred levels: to it, they are bytes."""

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "text": _Field.TYPE_STRING,
    "int": _Field.TYPE_INT64,
    "bool": _Field.TYPE_BOOL,
    "double": _Field.TYPE_DOUBLE,
    "bytes": _Field.TYPE_BYTES,
}
# Values that are messages: their fields by number, from one on.
_VALUES = {
    "time": (("seconds", "int"), ("nanos", "int")),
    "microtime": (("seconds", "int"), ("nanos", "int")),
    "quantity": (("string", "text"),),
    "json": (("raw", "bytes"),),
    "int-or-string": (("type", "int"), ("intVal", "int"), ("strVal", "text")),
    "texts": (("items", "*text"),),
}
_ROOT = "dray.wire"
_VALUES_FILE = "values.proto"

_pool = descriptor_pool.DescriptorPool()
_lock = threading.Lock()


@cache
def message_class(name: str) -> Any:
    """The class of a message by its full name."""
    with _lock:  # whoever comes from several threads must not add one package twice
        _add_values()
        _add_package(name.rpartition(".")[0])
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{_ROOT}.{identifier(name)}"))


def identifier(name: str) -> str:
    """A name that the runtime takes: `$ref` and `x-kubernetes-map-type` are none."""
    return name.replace("$", "_").replace("-", "_").replace(".", "_")


def _new_file(name: str) -> descriptor_pb2.FileDescriptorProto:
    made = descriptor_pb2.FileDescriptorProto(name=name, package=_ROOT, syntax="editions")
    made.edition = descriptor_pb2.EDITION_2023  # which checks that text is UTF-8, and tells absent from empty
    made.options.features.repeated_field_encoding = descriptor_pb2.FeatureSet.EXPANDED
    return made


@cache
def _add_values() -> None:
    made = _new_file(_VALUES_FILE)
    for name, fields in _VALUES.items():
        message = made.message_type.add(name=identifier(name))
        for number, (of, kind) in enumerate(fields, start=1):
            _add_field(message, of, tables.Field(of, number, kind.lstrip("*"), "*" if kind.startswith("*") else ""))
    _pool.Add(made)


@cache
def _add_package(package: str) -> None:
    """Adds a package, after those that it uses."""
    messages = tables.package(package)
    made = _new_file(f"{package}.proto")
    used = {field.type.rpartition(".")[0] for fields in messages.values() for field in fields if "." in field.type}
    made.dependency.append(_VALUES_FILE)
    for other in sorted(used - {package}):
        _add_package(other)
        made.dependency.append(f"{other}.proto")
    for short, fields in messages.items():
        message = made.message_type.add(name=identifier(f"{package}.{short}"))
        for field in fields:
            _add_field(message, identifier(field.name), field)
    _pool.Add(made)


def _add_field(message: descriptor_pb2.DescriptorProto, name: str, field: tables.Field) -> None:
    is_many = field.many in ("*", "@")
    label = _Field.LABEL_REPEATED if is_many else _Field.LABEL_OPTIONAL
    made = message.field.add(name=name, number=field.number, label=label)
    if field.many != "@":
        _set_type(made, field.type)
        return
    # The runtime wants the entry of `matchLabels` to be called MatchLabelsEntry.
    words = [word[:1].upper() + word[1:] for word in name.split("_")]
    entry = message.nested_type.add(name=f"{''.join(words)}Entry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=_Field.TYPE_STRING, label=_Field.LABEL_OPTIONAL)
    _set_type(entry.field.add(name="value", number=2, label=_Field.LABEL_OPTIONAL), field.type)
    made.type, made.type_name = _Field.TYPE_MESSAGE, f".{_ROOT}.{message.name}.{entry.name}"


def _set_type(made: descriptor_pb2.FieldDescriptorProto, kind: str) -> None:
    if kind in _SCALARS or kind in RECURSIVE:
        made.type = _SCALARS.get(kind, _Field.TYPE_BYTES)
    else:
        made.type, made.type_name = _Field.TYPE_MESSAGE, f".{_ROOT}.{identifier(kind)}"
