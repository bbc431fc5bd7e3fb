"""The paths of printer columns: `.spec.replicas`, `.status.conditions[?(@.type=="Ready")].status`, `..name`.

All of what Kubernetes calls JSONPath, with its peculiarities, because a column shows what an API server would show: a
key in brackets is a path of its own (`['a.b']` is `.a.b`; a backslash before the dot makes it one key), an index out of
bounds and values that cannot be compared make the whole path lead nowhere. A path becomes a list of functions from
values to values, once.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec

Values: TypeAlias = list[Any]
_Step: TypeAlias = Callable[[Values], Values]

LONGEST: Final = 2048
_NAME = re.compile(r"(?:\\.|[^\\\s.,\[\]$@{}])*")
_NUMBER = re.compile(r"[+-]?[0-9.]+")
_WORD = re.compile(r"[^\W](?:[^\s.,\[\]$@{}])*")
_QUOTED = re.compile(r"'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"")
_SLICE = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_FILTER = re.compile(r"\[\?\(((?:'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|[^)'\"])*)\)\]")
_COMPARISON = re.compile(r"([^!<>=]+)([!<>=]+)(.+)")
_OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class JsonPathError(ValueError):
    """A path that cannot be read."""


class _Nowhere(Exception):
    """The path does not suit the document."""


def compile_path(path: str) -> Callable[[Any], Values]:
    """The function that finds what a path leads to. Raises JsonPathError."""
    if len(path) > LONGEST:
        raise JsonPathError("the path is too long")
    steps = _steps(path)

    def find(document: Any) -> Values:
        try:
            return _walk(steps, [document])
        except _Nowhere:
            return []

    return find


def _walk(steps: list[_Step], values: Values) -> Values:
    for step in steps:
        values = step(values)
    return values


def _steps(path: str) -> list[_Step]:
    steps: list[_Step] = []
    at = 0
    while at < len(path):
        step, at = _step(path, at)
        if step is not None:
            steps.append(step)
    return steps


def _step(path: str, at: int) -> tuple[_Step | None, int]:
    """What begins at a place, and where it ends. Raises JsonPathError."""
    if path[at] in " @$":
        return None, at + 1
    if path.startswith("..", at):
        is_named = path[at + 2 : at + 3].isalnum() or path[at + 2 : at + 3] == "_"
        return _all_below, at + (1 if is_named else 2)
    if path[at] == ".":
        name = _NAME.match(path, at + 1)
        assert name is not None, "it matches the empty text"
        return _named(name[0]), name.end()
    if path.startswith("[?(", at):
        found = _FILTER.match(path, at)
        if found is None:
            raise JsonPathError(f"cannot read the filter {path[at:]!r}")
        return _filtered(found[1]), found.end()
    if path[at] == "[":
        end = path.find("]", at)
        if end < 0:
            raise JsonPathError(f"nothing closes {path[at:]!r}")
        return _bracketed(path[at + 1 : end]), end + 1
    return _literal(path, at)


def _literal(path: str, at: int) -> tuple[_Step, int]:
    """A constant, to compare with."""
    if found := _QUOTED.match(path, at):
        return _constant(re.sub(r"\\(.)", r"\1", found[0][1:-1])), found.end()
    if found := _NUMBER.match(path, at):
        try:
            return _constant(msgspec.json.decode(found[0].removeprefix("+"))), found.end()
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            raise JsonPathError(f"cannot read the number {found[0]!r}") from None
    found = _WORD.match(path, at)
    if found is None:
        raise JsonPathError(f"cannot read {path[at:]!r}")
    return _constant(found[0] == "true") if found[0] in ("true", "false") else _unknown, found.end()


def _constant(value: Any) -> _Step:
    return lambda _values: [value]


def _unknown(_values: Values) -> Values:
    raise _Nowhere


def _named(name: str) -> _Step:
    if name == "*":
        return lambda values: [child for value in values for child in _children(value)]
    key = name.replace("\\", "")
    return lambda values: [value[key] for value in values if isinstance(value, dict) and key in value]


def _children(value: Any) -> Values:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _all_below(values: Values) -> Values:
    found = []
    for value in values:
        children = _children(value)
        if children:
            found += [value, *_all_below(children)]
    return found


def _bracketed(text: str) -> _Step:
    parts = text.split(",")
    if len(parts) > 1:
        chosen = [_bracketed(part.strip(" ")) for part in parts]
        return lambda values: [found for choose in chosen for found in choose(values)]
    if len(text) > 1 and text[0] == text[-1] == "'":
        steps = _steps(f".{text[1:-1]}")
        return lambda values: _walk(steps, values)
    found = _SLICE.fullmatch(":" if text == "*" else text)
    if found is None:
        raise JsonPathError(f"cannot read the index {text!r}")
    start, stop, step = (
        int(part) if part else None for part in (found[1], *((g or "")[1:] for g in found.groups()[1:]))
    )
    return _sliced(start or 0, stop, step, is_index=found[2] is None)


def _sliced(start: int, stop: int | None, step: int | None, *, is_index: bool) -> _Step:
    def cut(value: Any) -> Values:
        if not isinstance(value, list):
            raise _Nowhere
        first = start + len(value) if start < 0 else start
        end = first + 1 if is_index else len(value) if stop is None else stop + len(value) if stop < 0 else stop
        if first != end and not 0 <= first < end <= len(value):
            raise _Nowhere
        return value[first : end : 1 if step is None else step]

    if step is not None and step <= 0:
        return _unknown
    return lambda values: [found for value in values if value is not None for found in cut(value)]


def _filtered(text: str) -> _Step:
    compared = _COMPARISON.fullmatch(text)
    left = _steps(compared[1] if compared else text)
    right = _steps(compared[3]) if compared else []
    compare = _OPERATORS.get(compared[2]) if compared else None

    def holds(item: Any) -> bool:
        if compared is None:
            try:
                return bool(_walk(left, [item]))
            except _Nowhere:
                return True  # Kubernetes only looks for what is missing
        lefts, rights = _walk(left, [item]), _walk(right, [item])
        if not lefts or not rights:
            return False
        if compare is None or len(lefts) > 1 or len(rights) > 1:
            raise _Nowhere
        return _compare(lefts[0], compare, rights[0])

    def choose(value: Any) -> Values:
        if not isinstance(value, list):
            raise _Nowhere
        return [item for item in value if holds(item)]

    return lambda values: [found for value in values for found in choose(value)]


def _compare(left: Any, compare: Callable[[Any, Any], Any], right: Any) -> bool:
    """Numbers, texts and truths are compared with their like; truths have no order."""
    is_ordered = compare not in (operator.eq, operator.ne)
    if type(left) is not type(right) or type(left) not in (
        (int, float, str) if is_ordered else (int, float, str, bool)
    ):
        raise _Nowhere
    return bool(compare(left, right))
