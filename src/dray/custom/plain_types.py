"""Schemas as types of msgspec: values that it takes are as the schema wants them, and nobody has to look at them again.

Nearly all objects are right as they come. msgspec sees that in C, where the functions of `pruning`, `defaulting` and
`value_checks` go from part to part; what it does not take is looked at by those, which know what to do or to say. So a
type may be too strict, but never takes what they would change or refuse. A schema that no type can be made of, or that
would need very many, has none.

A scalar with a pattern, a format or alternatives is left to its own check, which msgspec calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Annotated, Any, Final, Literal, TypeAlias, Union

import msgspec
from msgspec import Meta

from dray.api.generated.apiextensions import JSONSchemaProps
from dray.custom.problems import Check
from dray.custom.value_checks import compile_checks

Fits: TypeAlias = Callable[[Any], bool]
"""Whether the content of an object has nothing to be dropped, misses nothing that has a default, and is right."""

MOST_TYPES: Final = 500
"""Of one schema: each takes some kilobytes."""
MOST_FIELDS: Final = 64
"""Of one object: msgspec looks for a name among all of them, and nobody else runs meanwhile."""
LARGEST: Final = 32 * 1024
"""Bytes of an object that is looked at so: what is larger is looked at part by part, and others have their turns."""
_EXACT: Final = 2**53
_LIST: Final[Any] = list
_MAP: Final[Any] = dict
_ONE_OF: Final[Any] = Union
_LIMITED: Final[Any] = Annotated
_CHOICE: Final[Any] = Literal
"""What types are made of, while the program runs."""
_SCALARS: Final[dict[str, Any]] = {"string": str, "integer": int, "boolean": bool, "number": int | float}


class _NoType(Exception):
    """There is no type for a schema."""


class _Judged:
    """A scalar that its own check judges; each check has a subclass."""

    check: Check


def compile_fits(schema: JSONSchemaProps) -> Fits | None:
    """The function for values of a schema, which are objects; None if they have to be looked at part by part."""
    try:
        found = _object(schema, iter(range(MOST_TYPES)))
        msgspec.convert({}, found, dec_hook=_judge)  # what msgspec finds out about the types, it finds out now
    except msgspec.ValidationError:
        pass
    except (_NoType, TypeError, ValueError):  # the last two: names and limits that msgspec does not have
        return None
    convert = msgspec.convert
    right: Any = None  # what was found right last: whoever reads an object asks, and then whoever validates it

    def fits(value: Any) -> bool:
        nonlocal right
        if value is right and value is not None:
            right = None
            return True
        try:
            convert(value, found, dec_hook=_judge)
        except (ValueError, OverflowError, RecursionError):
            return False
        right = value
        return True

    return fits


def _judge(kind: type[_Judged], value: Any) -> Any:
    if kind.check(value) is not None:
        raise ValueError
    return value


def _type(schema: JSONSchemaProps, numbers: Iterator[int]) -> Any:
    """The type of values of a schema. Raises _NoType."""
    if schema.type in ("object", "array"):
        found = _object(schema, numbers) if schema.type == "object" else _list(schema, numbers)
    elif schema.x_kubernetes_embedded_resource:
        raise _NoType
    elif schema.type or schema.x_kubernetes_int_or_string:
        found = _scalar(schema)
    elif compile_checks(schema) is None and schema.x_kubernetes_preserve_unknown_fields and not schema.properties:
        return Any
    else:
        raise _NoType
    return _ONE_OF[found, None] if schema.nullable and not schema.enum else found  # null may not be among the choices


def _scalar(schema: JSONSchemaProps) -> Any:
    plain = _SCALARS.get(schema.type)
    limits = _limits(schema)
    if plain is None or limits is None:
        check = compile_checks(schema)
        assert check is not None  # at least its type is checked
        return type("Judged", (_Judged,), {"check": staticmethod(check)})
    if schema.enum:
        return _CHOICE[schema.enum]
    return _LIMITED[plain, Meta(**limits)] if limits else plain


def _limits(schema: JSONSchemaProps) -> dict[str, Any] | None:
    """What is said of a scalar, as msgspec says it; None if it cannot."""
    if schema.pattern or (schema.format and schema.type == "string") or schema.multiple_of is not None:
        return None
    if schema.any_of or schema.one_of or schema.all_of or schema.not_ is not None:
        return None
    if schema.enum:
        are_texts = schema.type == "string" and all(isinstance(value, str) for value in schema.enum)
        is_alone = schema.min_length is None and schema.max_length is None
        return {} if are_texts and is_alone else None
    limits = {
        "min_length": schema.min_length,
        "max_length": schema.max_length,
        "gt" if schema.exclusive_minimum else "ge": schema.minimum,
        "lt" if schema.exclusive_maximum else "le": schema.maximum,
    }
    given = {name: value for name, value in limits.items() if value is not None}
    known = ("min_length", "max_length") if schema.type == "string" else ("gt", "ge", "lt", "le")
    if (schema.type not in ("string", "integer") and given) or not given.keys() <= set(known):
        return None
    if any(abs(value) >= _EXACT or value != int(value) for value in given.values()):
        return None
    return {name: int(value) for name, value in given.items()}


def _has_more_to_say(schema: JSONSchemaProps) -> bool:
    """Whether a list or an object is judged by more than its parts and their number."""
    return bool(schema.enum or schema.any_of or schema.one_of or schema.all_of or schema.not_ is not None)


def _list(schema: JSONSchemaProps, numbers: Iterator[int]) -> Any:
    if _has_more_to_say(schema):
        raise _NoType
    item = _type(schema.items, numbers) if isinstance(schema.items, JSONSchemaProps) else Any
    return _sized(_LIST[item], schema.min_items, schema.max_items)


def _sized(kind: Any, least: int | None, most: int | None) -> Any:
    return kind if least is None and most is None else _LIMITED[kind, Meta(min_length=least, max_length=most)]


def _object(schema: JSONSchemaProps, numbers: Iterator[int]) -> Any:
    if _has_more_to_say(schema) or schema.x_kubernetes_embedded_resource:
        raise _NoType
    others = schema.additional_properties
    if isinstance(others, JSONSchemaProps):
        if schema.properties or schema.required:
            raise _NoType
        return _sized(_MAP[str, _type(others, numbers)], schema.min_properties, schema.max_properties)
    if schema.min_properties is not None or schema.max_properties is not None:
        raise _NoType
    if not schema.properties.keys() >= set(schema.required) or len(schema.properties) > MOST_FIELDS:
        raise _NoType
    if next(numbers, None) is None:
        raise _NoType
    names = dict(zip((f"field_{number}" for number in count()), schema.properties, strict=False))
    return msgspec.defstruct(
        "Plain",
        [_field(field, name, schema, numbers) for field, name in names.items()],
        rename=names,
        forbid_unknown_fields=not (schema.x_kubernetes_preserve_unknown_fields or others is True),
        kw_only=True,
    )


def _field(
    field: str, name: str, schema: JSONSchemaProps, numbers: Iterator[int]
) -> tuple[str, Any] | tuple[str, Any, None]:
    """A field that is not required is nothing where it is not given; what has a default has to be given."""
    part = schema.properties[name]
    found = _type(part, numbers)
    return (field, found) if name in schema.required or part.default is not None else (field, found, None)
