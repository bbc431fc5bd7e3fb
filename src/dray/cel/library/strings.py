"""The string extension library, version 2. Positions count code points."""

from __future__ import annotations

from typing import Any, Final

from dray.cel import types
from dray.cel.declarations import function, member, overload
from dray.cel.library.text_format import format_text
from dray.cel.types import DYN, INT, STRING
from dray.cel.values import CelError, ConcatList, limit_elements, limit_text

__all__ = ["FUNCTIONS"]

_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
_QUOTED: Final = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)
_LOWER: Final = str.maketrans({chr(code): chr(code + 32) for code in range(ord("A"), ord("Z") + 1)})
_UPPER: Final = str.maketrans({chr(code): chr(code - 32) for code in range(ord("a"), ord("z") + 1)})


def _out_of_range(index: int) -> CelError:
    return CelError(f"index out of range: {index}")


def _char_at(text: str, index: int) -> Any:
    if not 0 <= index <= len(text):
        return _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, offset: int = 0) -> Any:
    if offset < 0:
        return _out_of_range(offset)
    if not part:
        return min(offset, len(text))
    return text.find(part, offset)


def _last_index_of(text: str, part: str) -> Any:
    return text.rfind(part)


def _last_index_of_before(text: str, part: str, offset: int) -> Any:
    if offset < 0:
        return _out_of_range(offset)
    if not part:
        return min(offset, len(text))
    if offset >= len(text):
        return -1
    return text.rfind(part, 0, offset + len(part))


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    count = text.count(old) if limit < 0 else min(limit, text.count(old))
    limit_text(len(text) + count * (len(new) - len(old)))
    return text.replace(old, new, max(limit, -1))


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if 0 < limit < len(text):
        return [*text[: limit - 1], text[limit - 1 :]]
    return list(text)


def _substring(text: str, start: int) -> Any:
    if not 0 <= start <= len(text):
        return _out_of_range(start)
    return text[start:]


def _substring_range(text: str, start: int, end: int) -> Any:
    if start > end:
        return CelError(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        return _out_of_range(start)
    if end > len(text):
        return _out_of_range(end)
    return text[start:end]


def _trim(text: str) -> str:
    return text.strip(_SPACE)


def _lower(text: str) -> str:
    return text.translate(_LOWER)


def _upper(text: str) -> str:
    return text.translate(_UPPER)


def _quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


def _join(values: list[Any] | ConcatList, separator: str = "") -> Any:
    parts = list(limit_elements(values))
    if not all(part.__class__ is str for part in parts):
        return CelError("join: invalid input: not all elements are strings")
    limit_text(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


_STRINGS: Final = types.list_of(STRING)

FUNCTIONS: Final = (
    function("charAt", member("string_char_at_int", (STRING, INT), STRING, _char_at)),
    function(
        "indexOf",
        member("string_index_of_string", (STRING, STRING), INT, _index_of),
        member("string_index_of_string_int", (STRING, STRING, INT), INT, _index_of, is_lazy=True),
    ),
    function(
        "lastIndexOf",
        member("string_last_index_of_string", (STRING, STRING), INT, _last_index_of),
        member("string_last_index_of_string_int", (STRING, STRING, INT), INT, _last_index_of_before, is_lazy=True),
    ),
    function("lowerAscii", member("string_lower_ascii", (STRING,), STRING, _lower)),
    function("upperAscii", member("string_upper_ascii", (STRING,), STRING, _upper)),
    function(
        "replace",
        member("string_replace_string_string", (STRING, STRING, STRING), STRING, _replace, is_lazy=True),
        member("string_replace_string_string_int", (STRING, STRING, STRING, INT), STRING, _replace, is_lazy=True),
    ),
    function(
        "split",
        member("string_split_string", (STRING, STRING), _STRINGS, _split),
        member("string_split_string_int", (STRING, STRING, INT), _STRINGS, _split, is_lazy=True),
    ),
    function(
        "substring",
        member("string_substring_int", (STRING, INT), STRING, _substring),
        member("string_substring_int_int", (STRING, INT, INT), STRING, _substring_range, is_lazy=True),
    ),
    function("trim", member("string_trim", (STRING,), STRING, _trim)),
    function("format", member("string_format", (STRING, types.list_of(DYN)), STRING, format_text, is_lazy=True)),
    function("strings.quote", overload("strings_quote", (STRING,), STRING, _quote)),
    function(
        "join",
        member("list_join", (_STRINGS,), STRING, _join),
        member("list_join_string", (_STRINGS, STRING), STRING, _join),
    ),
)
