"""``"%d of %s".format([1, "x"])``: the clauses, what they accept, and how they write values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from dray.cel.library.standard import to_string
from dray.cel.library.times import duration_text, timestamp_text
from dray.cel.values import (
    CelError,
    ConcatList,
    CostLimitExceeded,
    Duration,
    ListValue,
    MapValue,
    Timestamp,
    TypeValue,
    Uint,
    is_list,
    list_size,
    type_name,
)

__all__ = ["CLAUSES", "Clause", "FormatError", "format_text", "parse_format"]

CLAUSES: Final = {
    "s": "strings, bools, bytes, ints, doubles, maps, lists, types, durations and timestamps",
    "d": "integers",
    "f": "doubles",
    "e": "doubles",
    "b": "integers and bools",
    "x": "integers, bytes and strings",
    "X": "integers, bytes and strings",
    "o": "integers",
}
"""The clauses and what each can write."""

_CLAUSE: Final = re.compile(r"%(?:(?P<percent>%)|(?:\.(?P<precision>[0-9]*))?(?P<letter>.)?)", re.DOTALL)
_DEFAULT_PRECISION: Final = 6
_MAX_PRECISION: Final = 1_000
_MOST_LETTERS: Final = 100_000
"""Of what one call writes, and of every value in it: texts that are in others again and again are paid for as if they
were short, and nobody can stop the writing."""
_DOUBLES_AS_TEXT: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_SUPERSCRIPT: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_THIN: Final = "\u202f"
_ESCAPES: Final = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


class FormatError(ValueError):
    """A format string that is malformed, or a value that its clause cannot write."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One ``%`` clause."""

    letter: str
    precision: int | None


def parse_format(text: str) -> Iterator[str | Clause]:
    """The literal parts and clauses of a format string; raises FormatError where it is malformed."""
    position = 0
    for match in _CLAUSE.finditer(text):
        if match.start() > position:
            yield text[position : match.start()]
        position = match.end()
        yield "%" if match["percent"] else _clause(match)
    if position < len(text):
        yield text[position:]


def format_text(text: str, args: ListValue) -> Any:
    """The text with its clauses replaced by the arguments, in order."""
    parts: list[str] = []
    used = 0
    length = 0
    try:
        for part in parse_format(text):
            if isinstance(part, Clause):
                if used >= list_size(args):
                    raise FormatError(f"index {used} out of range")
                part = _write(part, args[used], {})
                used += 1
            length += len(part)
            _limit(length)
            parts.append(part)
    except FormatError as error:
        return CelError(str(error))
    return "".join(parts)


def _clause(match: re.Match[str]) -> Clause:
    letter, precision = match["letter"], match["precision"]
    if letter is None:
        raise FormatError("the format string ends within a clause")
    if letter not in CLAUSES:
        raise FormatError(f"unrecognized formatting clause {letter!r}")
    if precision == "" or (precision is not None and int(precision[:6]) > _MAX_PRECISION):
        raise FormatError(f"the precision of a clause must be a number up to {_MAX_PRECISION}")
    return Clause(letter, None if precision is None else int(precision))


def _refuse(letter: str, value: Any) -> FormatError:
    return FormatError(f"clause %{letter} can only be used on {CLAUSES[letter]}, was given {type_name(value)}")


_Known: TypeAlias = dict[int, tuple[Any, str]]
"""Texts of lists and maps by identity: one may stand in many places of another, and is written once."""


def _write(clause: Clause, value: Any, known: _Known) -> str:
    letter = clause.letter
    kind = value.__class__
    is_integer = kind is int or kind is Uint
    if letter == "s":
        return _text(value, known)
    if letter in "fe":
        return _double(clause, value)
    if letter == "d" and is_integer:
        return str(int(value))
    if letter == "o" and is_integer:
        return format(int(value), "o")
    if letter == "b" and (is_integer or kind is bool):
        return format(int(value), "b")
    if letter in "xX" and (is_integer or kind is str or kind is bytes):
        written = format(int(value), "x") if is_integer else (value.encode() if kind is str else value).hex()
        return written.upper() if letter == "X" else written
    raise _refuse(letter, value)


def _text(value: Any, known: _Known) -> str:
    if isinstance(value, MapValue) or is_list(value):
        found = known.get(id(value))
        if found is None:
            text = _map(value, known) if isinstance(value, MapValue) else _list(value, known)
            found = known[id(value)] = value, text
        return found[1]
    if value is None:
        return "null"
    written = to_string(value)
    if written.__class__ is not str:
        raise _refuse("s", value)
    return str(written)


def _double(clause: Clause, value: Any) -> str:
    if value.__class__ is str and value in _DOUBLES_AS_TEXT:
        value = _DOUBLES_AS_TEXT[value]
    if value.__class__ is not float:
        raise _refuse(clause.letter, value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if clause.letter == "f":
        precision = _DEFAULT_PRECISION if clause.precision is None else clause.precision
        return format(value, f",.{precision}f")
    # The precision of %e is ignored, as it is in Kubernetes.
    mantissa, _, exponent = format(value, f".{_DEFAULT_PRECISION}e").partition("e")
    digits = f"{int(exponent):03d}" if exponent.startswith("-") else f"{int(exponent):02d}"
    return f"{mantissa}{_THIN}×{_THIN}10{digits.translate(_SUPERSCRIPT)}"


def _list(values: list[Any] | ConcatList, known: _Known) -> str:
    parts: list[str] = []
    length = 0
    for value in values:
        parts.append(_nested(value, known))
        length += len(parts[-1]) + 2
        _limit(length)
    return f"[{', '.join(parts)}]"


def _map(values: MapValue, known: _Known) -> str:
    pairs = []
    length = 0
    for key in values.keys():  # noqa: SIM118 - a MapValue is no Python mapping
        if key.__class__ not in (str, bool, int, Uint):
            raise FormatError(f"a map key of type {type_name(key)} cannot be formatted")
        pairs.append((_nested(key, known), _nested(values.find(key), known)))
        length += sum(map(len, pairs[-1])) + 3
        _limit(length)
    return "{" + ", ".join(f"{key}:{value}" for key, value in sorted(pairs, key=lambda pair: pair[0])) + "}"


def _nested(value: Any, known: _Known) -> str:
    """A value inside a list or map: strings quoted, times spelled as calls."""
    kind = value.__class__
    if kind is str:
        return quoted(value)
    if kind is bytes:
        return "b" + quoted(_text(value, known))
    if kind is float:
        if math.isnan(value) or math.isinf(value):
            return quoted("NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf"))
        return format(value, ".6f")
    if kind is Timestamp:
        return f"timestamp({quoted(timestamp_text(value))})"
    if kind is Duration:
        return f"duration({quoted(duration_text(value))})"
    if value is None or kind in (int, Uint, bool, TypeValue) or is_list(value) or isinstance(value, MapValue):
        return _text(value, known)
    raise FormatError(f"no formatting function for {type_name(value)}")


def _limit(length: int) -> None:
    if length > _MOST_LETTERS:
        raise CostLimitExceeded


def quoted(text: str) -> str:
    """The text in double quotes with escapes for what does not print."""
    _limit(len(text))
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
