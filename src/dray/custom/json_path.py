"""The paths of printer columns: `.spec.replicas`, `.status.conditions[?(@.type=="Ready")].status`, `.spec.ports[*]`.

What kubectl calls JSONPath, as far as columns use it: names, names in brackets, indexes, slices, wildcards, and filters
that compare a field with a constant. A path becomes a list of functions from values to
values, once; what is missing gives nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

Values: TypeAlias = list[Any]
_Step: TypeAlias = Callable[[Any], Values]

_TOKEN = re.compile(
    r"""
      \.(?P<name>(?:[^.\[\\]|\\.)+)                      # .name, with \. for a dot in it
    | \[\s*'(?P<single>(?:[^'\\]|\\.)*)'\s*\]            # ['name']
    | \[\s*"(?P<double>(?:[^"\\]|\\.)*)"\s*\]            # ["name"]
    | \[\s*(?P<index>-?[0-9]+)\s*\]                      # [0]
    | \[\s*(?P<start>-?[0-9]*)\s*:\s*(?P<stop>-?[0-9]*)\s*\]
    | (?P<all>\[\s*\*\s*\])                              # [*]
    | \[\?\(\s*(?P<filter>[^\]]*?)\s*\)\s*\]             # [?(@.type=="Ready")]
    """,
    re.VERBOSE,
)
_FILTER = re.compile(r"@(?P<path>[^\s=!<>]*)\s*(?:(?P<operator>==|!=|<=|>=|<|>)\s*(?P<value>.+))?")
LONGEST = 2048


class JsonPathError(ValueError):
    """A path that cannot be read."""


def compile_path(path: str) -> Callable[[Any], Values]:
    """The function that finds what a path leads to. Raises JsonPathError."""
    if len(path) > LONGEST:
        raise JsonPathError("the path is too long")
    steps = _steps(path if path.startswith((".", "[")) else f".{path}")

    def find(document: Any) -> Values:
        values: Values = [document]
        for step in steps:
            values = [found for value in values for found in step(value)]
        return values

    return find


def _steps(path: str) -> list[_Step]:
    steps = []
    at = 0
    while at < len(path):
        if path[at:] == ".":
            break
        found = _TOKEN.match(path, at)
        if found is None:
            raise JsonPathError(f"cannot read {path[at:]!r}")
        steps.append(_step(found))
        at = found.end()
    return steps


def _step(found: re.Match[str]) -> _Step:
    groups = found.groupdict()
    name = next((groups[key] for key in ("name", "single", "double") if groups[key] is not None), None)
    if name == "*" or groups["all"]:
        return _children
    if name is not None:
        return _named(re.sub(r"\\(.)", r"\1", name))
    if groups["index"] is not None:
        return _sliced(_element(int(groups["index"])))
    if groups["filter"] is not None:
        return _filtered(groups["filter"])
    start, stop = (int(groups[key]) if groups[key] else None for key in ("start", "stop"))
    return _sliced(slice(start, stop))


def _element(index: int) -> slice:
    return slice(index, index + 1 or None)


def _named(name: str) -> _Step:
    def step(value: Any) -> Values:
        return [value[name]] if isinstance(value, dict) and name in value else []

    return step


def _children(value: Any) -> Values:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list) else []


def _sliced(wanted: slice) -> _Step:
    return lambda value: value[wanted] if isinstance(value, list) else []


def _filtered(text: str) -> _Step:
    found = _FILTER.fullmatch(text)
    if found is None:
        raise JsonPathError(f"cannot read the filter {text!r}")
    path = compile_path(found["path"]) if found["path"] else (lambda value: [value])
    operator = found["operator"]
    wanted = _constant(found["value"]) if operator else None

    def holds(value: Any) -> bool:
        values = path(value)
        if not operator or not values:
            return bool(values) and not operator
        return _compare(values[0], operator, wanted)

    return lambda value: [one for one in _children(value) if holds(one)]


def _constant(text: str) -> Any:
    text = text.strip()
    if text[:1] == "'" and text[-1:] == "'" and len(text) > 1:
        return text[1:-1]
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        raise JsonPathError(f"cannot read the value {text!r}") from None


def _compare(value: Any, operator: str, wanted: Any) -> bool:
    if operator == "==":
        return bool(value == wanted)
    if operator == "!=":
        return bool(value != wanted)
    if not isinstance(value, int | float) or not isinstance(wanted, int | float):
        return False
    return {"<": value < wanted, "<=": value <= wanted, ">": value > wanted, ">=": value >= wanted}[operator]
