"""What a schema says of values: types, ranges, lengths, patterns, required fields, alternatives.

`compile_checks` makes one function of a schema, once; parts that say nothing have none. Messages are those of
kube-apiserver, which says where a value is twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from dray.api.field import FieldError, Reason, invalid, not_supported, required, too_long, too_many
from dray.api.generated.apiextensions import JSONSchemaProps
from dray.cel.library.regex import compile_regex
from dray.custom.problems import Check, Problem, below
from dray.custom.text_formats import text_format

_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", list: "array"}
_BEYOND = 2**63
_EXACT = 2**53
_NEARLY = 1e-9
"""How far a number with a point may be from a multiple: 0.3 is one of 0.1."""
_NOWHERE = "<nil>"
"""Where kube-apiserver puts errors of alternatives."""


def _one(build: Callable[[str], FieldError]) -> list[Problem]:
    return [Problem((), build)]


def wrong_type(wanted: str, given: str) -> list[Problem]:
    """A value of another type, or in another format."""

    def build(path: str) -> FieldError:
        said = f"{path} in body must be of type {wanted}: {msgspec.json.encode(given).decode()}"
        return FieldError(Reason.TYPE_INVALID, path, f"Invalid value: {msgspec.json.encode(given).decode()}: {said}")

    return _one(build)


def _rule(value: Any, said: str) -> list[Problem]:
    return _one(lambda path: invalid(path, value, f"{path} in body {said}"))


def compile_checks(schema: JSONSchemaProps) -> Check | None:
    """The function that judges values of a schema; None if every value will do."""
    checks = [check for check in (*_own_checks(schema), *_alternatives(schema)) if check is not None]
    types = _types(schema)
    if not types and not checks:
        return None
    return _typed(types, schema, tuple(checks))


def _types(schema: JSONSchemaProps) -> str:
    return "integer,string" if schema.x_kubernetes_int_or_string else schema.type


_CLASSES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "integer,string": (int, str),
}


def _typed(types: str, schema: JSONSchemaProps, checks: tuple[Check, ...]) -> Check:
    """A value of a wrong type is judged by the rest, too: what is allowed at all, and alternatives."""
    classes = frozenset(_CLASSES.get(types, ()))
    takes_whole_numbers = int in classes and float not in classes
    judge = checks[0] if len(checks) == 1 else _all(checks)
    allows = _enum(schema.enum) if schema.enum else None
    takes_null = schema.nullable or not types

    def check(value: Any) -> list[Problem] | None:
        if value.__class__ in classes:
            return judge(value) if checks else None
        if value is None:
            wrong = [] if takes_null else wrong_type(types, "null")
            return wrong + ((allows(None) if allows is not None else None) or []) or None
        if types and not (takes_whole_numbers and _is_whole(value)):
            return wrong_type(types, _NAMES[value.__class__]) + ((judge(value) if checks else None) or [])
        return judge(value)

    return check


def _is_whole(value: Any) -> bool:
    """Whether a number with a point is a whole one, of a size that whole numbers have."""
    return value.__class__ is float and value.is_integer() and -_BEYOND <= value < _BEYOND


def _all(checks: tuple[Check, ...]) -> Check:
    def check(value: Any) -> list[Problem] | None:
        found: list[Problem] = []
        for judge in checks:
            found += judge(value) or ()
        return found or None

    return check


def _own_checks(schema: JSONSchemaProps) -> list[Check | None]:
    return [
        _enum(schema.enum) if schema.enum else None,
        _text(schema),
        _number(schema),
        _list(schema),
        _object(schema),
    ]


def _enum(values: Sequence[Any]) -> Check:
    texts = tuple(value if isinstance(value, str) else msgspec.json.encode(value).decode() for value in values)
    strings = frozenset(value for value in values if isinstance(value, str))
    others = frozenset(msgspec.json.encode(value, order="sorted") for value in values if not isinstance(value, str))

    def check(value: Any) -> list[Problem] | None:
        if value.__class__ is str:
            if value in strings:
                return None
        elif msgspec.json.encode(value, order="sorted") in others:
            return None
        return _one(lambda path: not_supported(path, value, texts))

    return check


def _text(schema: JSONSchemaProps) -> Check | None:
    least, most, pattern = schema.min_length, schema.max_length, schema.pattern
    is_text = schema.type in ("", "string") or schema.x_kubernetes_int_or_string
    fits = text_format(schema.format) if schema.format and is_text else None
    if least is None and most is None and not pattern and fits is None:
        return None
    search = compile_regex(pattern).search if pattern else None

    def check(value: Any) -> list[Problem] | None:
        if value.__class__ is not str:
            return None
        found: list[Problem] = []
        if most is not None and len(value) > most:  # of these three the first is told
            found += _one(lambda path: too_long(path, most))
        elif least is not None and len(value) < least:
            found += _rule(value, f"should be at least {least} chars long")
        elif search is not None and search(value) is None:
            found += _rule(value, f"should match '{pattern}'")
        if fits is not None and not fits(value):
            found += wrong_type(schema.format, value)
        return found or None

    return check


def _plain(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else str(number)


def _number(schema: JSONSchemaProps) -> Check | None:
    least, most, step = schema.minimum, schema.maximum, schema.multiple_of
    if least is None and most is None and step is None:
        return None

    def check(value: Any) -> list[Problem] | None:
        if value.__class__ is not int and value.__class__ is not float:
            return None
        found: list[Problem] = []
        if most is not None and (value > most or (schema.exclusive_maximum and value == most)):
            said = "less than" if schema.exclusive_maximum else "less than or equal to"
            found += _rule(value, f"should be {said} {_plain(most)}")
        if least is not None and (value < least or (schema.exclusive_minimum and value == least)):
            said = "greater than" if schema.exclusive_minimum else "greater than or equal to"
            found += _rule(value, f"should be {said} {_plain(least)}")
        if step is not None and not _is_multiple(value, step):
            found += _rule(value, f"should be a multiple of {_plain(step)}")
        return found or None

    return check


def _is_multiple(value: float, step: float) -> bool:
    if isinstance(value, int) and isinstance(step, int):
        return value % step == 0
    count = value / step if step >= 1 else 1 / step * value
    whole = round(count) if abs(count) < _EXACT else 0
    return abs(count) < _EXACT and (count == whole or abs(count - whole) < _NEARLY * abs(whole))


def _list(schema: JSONSchemaProps) -> Check | None:
    least, most = schema.min_items, schema.max_items
    item = compile_checks(schema.items) if isinstance(schema.items, JSONSchemaProps) else None
    if least is None and most is None and item is None:
        return None

    def check(value: Any) -> list[Problem] | None:
        if value.__class__ is not list:
            return None
        found: list[Problem] = []
        count = len(value)
        if item is not None:
            for index, element in enumerate(value):
                problems = item(element)
                if problems is not None:
                    found += below(index, problems)
        if least is not None and count < least:
            found += _rule(count, f"should have at least {least} items")
        if most is not None and count > most:
            found += _one(lambda path: too_many(path, count, most))
        return found or None

    return check


def _object(schema: JSONSchemaProps) -> Check | None:
    parts = {name: made for name, found in schema.properties.items() if (made := compile_checks(found)) is not None}
    needed = tuple(schema.required)
    least, most = schema.min_properties, schema.max_properties
    others = schema.additional_properties
    values = compile_checks(others) if isinstance(others, JSONSchemaProps) else None
    declared = frozenset(schema.properties)
    if not parts and not needed and values is None and least is None and most is None:
        return None

    def check(value: Any) -> list[Problem] | None:
        if value.__class__ is not dict:
            return None
        found: list[Problem] = []
        for name, part in value.items():
            judge = parts.get(name)
            if judge is None:
                if values is None or name in declared:
                    continue
                judge = values
            problems = judge(part)
            if problems is not None:
                found += below(name, problems)
        for name in needed:
            if name not in value:
                found.append(_missing(name))
        if least is not None and len(value) < least:
            found += _rule(len(value), f"should have at least {least} properties")
        if most is not None and len(value) > most:
            count = len(value)
            found += _one(lambda path: too_many(path, count, most))
        return found or None

    return check


def _missing(name: str) -> Problem:
    return Problem((), lambda path: required(f"{path}.{name}" if path else name))


def _alternatives(schema: JSONSchemaProps) -> list[Check]:
    found = []
    if schema.any_of:
        found.append(_any_of([compile_checks(one) for one in schema.any_of]))
    if schema.one_of:
        found.append(_one_of([compile_checks(one) for one in schema.one_of]))
    if schema.all_of:
        found.append(_all_of([compile_checks(one) for one in schema.all_of]))
    if schema.not_ is not None:
        found.append(_none_of(compile_checks(schema.not_)))
    return found


def _nowhere(said: Callable[[str], str]) -> list[Problem]:
    return _one(lambda path: FieldError(Reason.INVALID, _NOWHERE, f'Invalid value: "": {said(path)}'))


def _verdicts(checks: Sequence[Check | None], value: Any) -> list[list[Problem] | None]:
    return [None if check is None else check(value) for check in checks]


def _any_of(checks: Sequence[Check | None]) -> Check:
    def check(value: Any) -> list[Problem] | None:
        verdicts = _verdicts(checks, value)
        best = min((len(one) for one in verdicts if one is not None), default=0)
        if None in verdicts:
            return None
        closest = next(one for one in verdicts if one is not None and len(one) == best)
        return [*_nowhere(lambda path: f'"{path}" must validate at least one schema (anyOf)'), *closest]

    return check


def _one_of(checks: Sequence[Check | None]) -> Check:
    def check(value: Any) -> list[Problem] | None:
        verdicts = _verdicts(checks, value)
        count = sum(one is None for one in verdicts)
        if count == 1:
            return None
        how = f"Found {count} valid alternatives" if count else "Found none valid"
        found = _nowhere(lambda path: f'"{path}" must validate one and only one schema (oneOf). {how}')
        if not count:
            failures: list[list[Problem]] = [one for one in verdicts if one is not None]
            found += sorted(failures, key=len)[0]
        return found

    return check


def _all_of(checks: Sequence[Check | None]) -> Check:
    def check(value: Any) -> list[Problem] | None:
        verdicts = _verdicts(checks, value)
        failed = [one for one in verdicts if one is not None]
        if not failed:
            return None
        how = ". None validated" if len(failed) == len(verdicts) else ""
        found = [problem for problems in failed for problem in problems]
        return [*found, *_nowhere(lambda path: f'"{path}" must validate all the schemas (allOf){how}')]

    return check


def _none_of(inner: Check | None) -> Check:
    def check(value: Any) -> list[Problem] | None:
        if inner is not None and inner(value) is not None:
            return None
        return _nowhere(lambda path: f'"{path}" must not validate the schema (not)')

    return check
