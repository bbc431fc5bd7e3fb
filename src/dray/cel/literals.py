"""The values of number and string literals."""

from __future__ import annotations

import re
from typing import Final

from dray.cel.values import INT_MAX, INT_MIN, UINT_MAX, Uint

__all__ = ["LiteralError", "parse_bytes", "parse_double", "parse_int", "parse_string", "parse_uint"]

_ESCAPE: Final = re.compile(r"\\(?:[xX](..)|u(....)|U(........)|([0-3]..)|(.))", re.DOTALL)
_SIMPLE: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?",
}  # fmt: skip


class LiteralError(ValueError):
    """A literal whose form is right but that has no value."""


def parse_int(text: str) -> int:
    """A decimal or ``0x`` literal, with its sign if it has one."""
    value = _integer(text)
    if not INT_MIN <= value <= INT_MAX:
        raise LiteralError(f"the number {text} does not fit a 64-bit int")
    return value


def parse_uint(text: str) -> Uint:
    """A literal that ends in ``u``."""
    value = _integer(text[:-1])
    if value > UINT_MAX:
        raise LiteralError(f"the number {text} does not fit a 64-bit uint")
    return Uint(value)


def parse_double(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise LiteralError(f"the number {text} does not fit a double")
    return value


def parse_string(text: str) -> str:
    """The content of a string literal: quotes stripped, escapes replaced unless it is raw."""
    content, is_raw = _content(text)
    if is_raw or "\\" not in content:
        return content
    return _ESCAPE.sub(_unescape_character, content)


def parse_bytes(text: str) -> bytes:
    """The content of a bytes literal; ``\\x`` and octal escapes are single bytes."""
    content, is_raw = _content(text[1:])
    if is_raw or "\\" not in content:
        return content.encode()
    parts = bytearray()
    position = 0
    for match in _ESCAPE.finditer(content):
        parts += content[position : match.start()].encode()
        parts += _unescape_byte(match)
        position = match.end()
    return bytes(parts + content[position:].encode())


def _integer(text: str) -> int:
    digits = text.lstrip("-")
    if len(digits) > 32:
        raise LiteralError(f"the number {text[:32]}… has too many digits")
    value = int(digits[2:], 16) if digits.startswith("0x") else int(digits)
    return -value if text.startswith("-") else value


def _content(text: str) -> tuple[str, bool]:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    is_raw = text[0] in "rR"
    if is_raw:
        text = text[1:]
    width = 3 if len(text) >= 6 and text.startswith(('"""', "'''")) else 1
    return text[width:-width], is_raw


def _unescape_character(match: re.Match[str]) -> str:
    hexadecimal = match[1] or match[2] or match[3]
    if match[5]:
        return _SIMPLE[match[5]]
    code = int(hexadecimal, 16) if hexadecimal else int(match[4], 8)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise LiteralError(f"{match[0]} is not a Unicode character")
    return chr(code)


def _unescape_byte(match: re.Match[str]) -> bytes:
    if match[2] or match[3]:
        raise LiteralError(f"{match[0]} cannot be used in bytes; write the bytes as \\x escapes")
    if match[5]:
        return _SIMPLE[match[5]].encode()
    return bytes([int(match[1], 16) if match[1] else int(match[4], 8)])
