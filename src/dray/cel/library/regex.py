"""Regular expressions with RE2's syntax: ``matches`` and ``find`` in linear time, ``findAll`` within a bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import re2

from dray.api.text_memory import remember_texts
from dray.cel import types
from dray.cel.declarations import function, member, overload
from dray.cel.library.regex_size import LARGEST, regex_size
from dray.cel.types import BOOL, INT, STRING
from dray.cel.values import NO_SUCH_OVERLOAD, CelError

__all__ = ["FUNCTIONS", "NAMES", "RegexError", "compile_regex", "specialise"]

_MAX_PROGRAM_BYTES: Final = 2 << 20
_MOST_SEARCHED: Final = 16_000_000
"""Letters that `findAll` may look at, some hundredths of a second. Each match may look to the end of the text for a
longer one (`a*b|a`), so that a text twice as long may take four times as long."""
_TOO_MUCH: Final = CelError("findAll: the text is too long, or has too many matches, to be searched")
_TOO_LARGE: Final = "the regular expression is too large; write fewer repetitions, such as `+` for `{1,1000}`"


class RegexError(ValueError):
    """A pattern that is no regular expression, or one whose program would be too large."""


@remember_texts(64)
def compile_regex(pattern: str) -> Any:
    """The compiled pattern; raises RegexError."""
    if regex_size(pattern) > LARGEST:
        raise RegexError(_TOO_LARGE)
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_PROGRAM_BYTES
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        raise RegexError(f"invalid regular expression: {_reason(error)}") from None


def specialise(name: str, pattern: str) -> Callable[..., Any]:
    """An implementation of ``matches``, ``find`` or ``findAll`` for a constant pattern; raises RegexError."""
    compiled = compile_regex(pattern)
    operation: Callable[..., Any] = _OPERATIONS[name]

    def call(text: Any, _pattern: Any, *rest: Any) -> Any:
        if text.__class__ is not str or (rest and rest[0].__class__ is not int):
            return NO_SUCH_OVERLOAD
        return operation(compiled, text, *rest)

    return call


def _reason(error: Exception) -> str:
    message = error.args[0] if error.args else "not UTF-8"
    return message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)


def _matches(compiled: Any, text: str) -> bool:
    return compiled.search(text) is not None


def _find(compiled: Any, text: str) -> str:
    found = compiled.search(text)
    return "" if found is None else found.group()


def _find_all(compiled: Any, text: str, limit: int = -1) -> list[str] | CelError:
    """Matches from left to right; an empty match right after another match does not count."""
    data = text.encode()
    found: list[str] = []
    position, previous_end = 0, -1
    left = _MOST_SEARCHED
    while position <= len(data) and (limit < 0 or len(found) < limit):
        left -= len(data) - position
        if left < 0:
            return _TOO_MUCH
        match = compiled.search(data, position)
        if match is None:
            break
        start, end = match.span()
        counts = True
        if end == position:
            counts = start != previous_end
            position += 1
            while position < len(data) and data[position] & 0xC0 == 0x80:
                position += 1
        else:
            position = end
        previous_end = end
        if counts:
            found.append(data[start:end].decode())
    return found


_OPERATIONS: Final[dict[str, Callable[..., Any]]] = {"matches": _matches, "find": _find, "findAll": _find_all}
NAMES: Final = frozenset(_OPERATIONS)
"""Of the functions that take a pattern."""


def _dynamic(name: str) -> Callable[..., Any]:
    operation = _OPERATIONS[name]

    def call(text: Any, pattern: Any, *rest: Any) -> Any:
        if text.__class__ is not str or pattern.__class__ is not str:
            return NO_SUCH_OVERLOAD
        try:
            compiled = compile_regex(pattern)
        except RegexError as error:
            return CelError(str(error))
        return operation(compiled, text, *rest)

    return call


_STRINGS: Final = types.list_of(STRING)

FUNCTIONS: Final = (
    function(
        "matches",
        overload("matches", (STRING, STRING), BOOL),
        member("matches_string", (STRING, STRING), BOOL),
        implementation=_dynamic("matches"),
    ),
    function("find", member("string_find_string", (STRING, STRING), STRING, _dynamic("find"))),
    function(
        "findAll",
        member("string_find_all_string", (STRING, STRING), _STRINGS, _dynamic("findAll")),
        member("string_find_all_string_int", (STRING, STRING, INT), _STRINGS, _dynamic("findAll"), is_lazy=True),
    ),
)
