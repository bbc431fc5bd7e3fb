"""Text with placeholders, and entries that stand for many: how a few lines of a profile describe a rack of devices.

`{node}` is replaced by a value; `{gpu/2}`, `{gpu%2}`, `{gpu*2}`, `{gpu+2}` and `{gpu-2}` compute with a number first
(whole numbers only). `{{` and `}}` stand for the braces themselves.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

Values = Mapping[str, str | int]

MAX_REPEATED: Final = 10_000

_PART: Final = re.compile(r"\{\{|\}\}|\{(?P<name>[A-Za-z]\w*)(?:(?P<operator>[-+*/%])(?P<number>[0-9]{1,9}))?\}|[{}]")
_OPERATORS: Final[dict[str, Callable[[int, int], int]]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left // right,
    "%": lambda left, right: left % right,
}


class TemplateError(ValueError):
    """A placeholder or a repetition that cannot be meant; the message says which and what would do."""


def fill(value: Any, values: Values) -> Any:
    """A plain value with every placeholder in its texts, also in keys, replaced. Raises TemplateError."""
    if isinstance(value, str):
        return _fill_text(value, values) if "{" in value or "}" in value else value
    if isinstance(value, dict):
        return {fill(key, values): fill(entry, values) for key, entry in value.items()}
    if isinstance(value, list):
        return [fill(entry, values) for entry in value]
    return value


def _fill_text(text: str, values: Values) -> str:
    def replacement(found: re.Match[str]) -> str:
        part = found[0]
        if part in ("{{", "}}"):
            return part[0]
        if found["name"] is None:
            raise TemplateError(f"{text!r} has a brace that is no placeholder; write it twice to mean the brace itself")
        return str(_value(found, values))

    return _PART.sub(replacement, text)


def _value(found: re.Match[str], values: Values) -> str | int:
    name, operator = found["name"], found["operator"]
    if name not in values:
        raise TemplateError(f"{found[0]} is not known here; there is {', '.join(sorted(values))}")
    value = values[name]
    if operator is None:
        return value
    if not isinstance(value, int):
        raise TemplateError(f"{found[0]} computes with {name}, which is no number")
    number = int(found["number"])
    if operator in "/%" and number == 0:
        raise TemplateError(f"{found[0]} divides by zero")
    return _OPERATORS[operator](value, number)


def repeat(entry: Mapping[str, Any], values: Values) -> Iterator[dict[str, Any]]:
    """The entries that one entry of a profile stands for, filled in.

    `count: 8` makes eight, numbered by `{index}`; `each: {gpu: 8, slot: 7}` makes 56, numbered by `{gpu}` and `{slot}`;
    numbers start at 0. Raises TemplateError.
    """
    body = {key: value for key, value in entry.items() if key not in ("count", "each")}
    ranges = _ranges(entry)
    for numbers in itertools.product(*(range(count) for count in ranges.values())):
        yield fill(body, {**values, **dict(zip(ranges, numbers, strict=True))})


def _ranges(entry: Mapping[str, Any]) -> dict[str, int]:
    if "count" in entry and "each" in entry:
        raise TemplateError("count and each exclude each other")
    ranges = {"index": entry["count"]} if "count" in entry else entry.get("each", {})
    if not isinstance(ranges, dict):
        raise TemplateError("each must be a map of names to counts, such as {gpu: 8, slot: 7}")
    total = 1
    for name, count in ranges.items():
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= MAX_REPEATED:
            raise TemplateError(f"{name} must be counted by a number from 0 to {MAX_REPEATED}, not {count!r}")
        total *= count
    if total > MAX_REPEATED:
        raise TemplateError(f"one entry stands for {total} devices; at most {MAX_REPEATED} are possible")
    return ranges
