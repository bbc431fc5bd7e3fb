"""Lines of styled text, cut to a width, and the control sequences that show them. Pure.

What comes from a cluster is made visible here: nothing in it moves the cursor or changes a colour.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from dray.api.visible import visible

PLAIN: Final = ""
BOLD: Final = "bold"
DIM: Final = "dim"
CHOSEN: Final = "chosen"
PROBLEM: Final = "problem"

_WEIGHTS: Final = {BOLD: "1", DIM: "2", CHOSEN: "7", PROBLEM: "1"}
"""Without colour, too."""
_COLOURS: Final = {
    "free": "32",
    "held": "34",
    "tainted": "33",
    "blocked": "35",
    "leaving": "31",
    PROBLEM: "1;31",
}
RESET: Final = "\x1b[0m"


class Span(NamedTuple):
    """Text in one style."""

    text: str
    style: str = PLAIN


Line: TypeAlias = tuple[Span, ...]


def line(*parts: str | Span) -> Line:
    """A line of texts and spans."""
    return tuple(Span(part) if isinstance(part, str) else part for part in parts)


def text_of(shown: Line) -> str:
    """Without styles."""
    return "".join(visible(span.text) for span in shown).rstrip()


def cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, width: int) -> str:
    """At most so many columns; what is cut is told by `…`."""
    text = visible(text)
    if cells(text) <= width:
        return text
    kept = ""
    for character in text:
        if cells(kept + character) > width - 1:
            break
        kept += character
    return f"{kept}…" if width > 0 else ""


def pad(text: str, width: int) -> str:
    """Exactly so many columns."""
    shown = cut(text, width)
    return shown + " " * (width - cells(shown))


def clip(shown: Line, width: int) -> Line:
    """A line of at most so many columns."""
    found: list[Span] = []
    room = width
    for span in shown:
        text = visible(span.text)
        if cells(text) > room:
            found.append(Span(cut(text, room), span.style))
            break
        found.append(Span(text, span.style))
        room -= cells(text)
    return tuple(found)


def columns(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """How wide columns are so that rows fit: the widest give first; the last one gets what is left."""
    sizes = [max(cells(visible(row[index])) for row in rows) for index in range(len(rows[0]) - 1)]
    room = max(width - 2 * len(sizes) - min(24, width // 3), 4 * len(sizes))
    while sum(sizes) > room:
        sizes[sizes.index(max(sizes))] -= 1
    return [*sizes, max(1, width - sum(sizes) - 2 * len(sizes))]


def encode(shown: Line, *, colour: bool) -> str:
    """With control sequences."""
    parts = []
    for span in shown:
        code = (_COLOURS.get(span.style) if colour else None) or _WEIGHTS.get(span.style)
        text = visible(span.text)
        parts.append(f"\x1b[{code}m{text}{RESET}" if code and text else text)
    return "".join(parts)


def update(before: Sequence[Line], after: Sequence[Line], *, colour: bool) -> str:
    """What turns one picture into another: the lines that are different, whole."""
    parts = []
    for number, shown in enumerate(after):
        if number >= len(before) or before[number] != shown:
            parts.append(f"\x1b[{number + 1};1H\x1b[2K{encode(shown, colour=colour)}")
    if len(after) < len(before):
        parts.append(f"\x1b[{len(after) + 1};1H\x1b[J")
    return "".join(parts)


def fill(shown: Iterable[Line], width: int, height: int) -> list[Line]:
    """A picture of exactly so many lines."""
    found = [clip(one, width) for one in shown][:height]
    return found + [()] * (height - len(found))
