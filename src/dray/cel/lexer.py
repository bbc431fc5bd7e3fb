"""From text to tokens.

The longest token wins, as in the language definition: ``1e`` is the number 1 and the name e. Text that starts
no token becomes one ``error`` token that ends the list, so that the parser can first report what comes before.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

__all__ = ["Token", "tokenize"]


class Token(NamedTuple):
    """``kind`` is a name for tokens with many texts, and the text itself for operators and keywords."""

    kind: str
    text: str
    offset: int


_ESCAPE: Final = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_STRING: Final = (
    rf'(?:"""(?:{_ESCAPE}|[^\\])*?"""'
    rf"|'''(?:{_ESCAPE}|[^\\])*?'''"
    rf'|"(?:{_ESCAPE}|[^\\"\n\r])*"'
    rf"|'(?:{_ESCAPE}|[^\\'\n\r])*'"
    r'|[rR]"""(?s:.)*?"""'
    r"|[rR]'''(?s:.)*?'''"
    r'|[rR]"[^"\n\r]*"'
    r"|[rR]'[^'\n\r]*')"
)
_TOKEN: Final = re.compile(
    r"(?P<skip>[\t \r\n\f]+|//[^\n]*)"
    rf"|(?P<bytes>[bB]{_STRING})"
    rf"|(?P<string>{_STRING})"
    r"|(?P<identifier>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<uint>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])"
    r"|(?P<int>0x[0-9a-fA-F]+|[0-9]+)"
    r"|(?P<escaped>`[A-Za-z0-9_.\-/ ]+`)"
    r"|(?P<operator>==|!=|<=|>=|&&|\|\||[<>\[\]{}().,\-!?:+*/%])"
)
_KEYWORDS: Final = frozenset({"true", "false", "null", "in"})


def tokenize(text: str) -> list[Token]:
    """The tokens of the text, ending with one of kind ``end`` or ``error``."""
    tokens = []
    position = 0
    end = len(text)
    match_at = _TOKEN.match
    while position < end:
        match = match_at(text, position)
        if match is None:
            tokens.append(Token("error", _describe(text, position), position))
            return tokens
        kind = match.lastgroup
        if kind != "skip":
            lexeme = match.group()
            if kind == "operator" or (kind == "identifier" and lexeme in _KEYWORDS):
                kind = lexeme
            tokens.append(Token(kind or "", lexeme, position))
        position = match.end()
    tokens.append(Token("end", "the end", end))
    return tokens


def _describe(text: str, position: int) -> str:
    """What is wrong with the text at a position where no token starts."""
    char = text[position]
    if char in "\"'":
        return "unterminated string, or an escape sequence in it that does not exist"
    if char == "`":
        return "unterminated name in backticks"
    if char == "=":
        return "unexpected '='; use '==' to compare"
    if char in "&|":
        return f"unexpected {char!r}; use '{char}{char}'"
    return f"unexpected character {char!r}"
