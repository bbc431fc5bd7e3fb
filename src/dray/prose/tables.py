"""Tables as plain text that fit a width: the last column takes what is left, and wraps.

Long cells are cut in the middle, as long as that hides nothing that differs. Where not even the headings have room, or
cells would look alike, there is no table: every row is a paragraph of its own.

    node-1
      state: ready · devices: 40 · free: 8
      held: 4 · blocked: 28
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

INDENT = "  "
NOTHING: Final = "–"
LEAST: Final = 12
"""Letters that a column gets at least, if its cells are that long, before rows become paragraphs."""
_GAP = "  "
_LEAST_LAST = 16
"""The last column is not made narrower than this, however narrow the terminal."""


def lay_out(rows: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """Rows of cells (the header first) as lines. Without a width nothing wraps and nothing is cut."""
    *sizes, last = (max(len(row[column]) for row in rows) for column in range(len(rows[0])))
    if width is not None:
        room = width - len(INDENT) - len(_GAP) * len(sizes) - min(last, _LEAST_LAST)
        *least, _ = least_sizes(rows)
        sizes = _narrow(sizes, least, room)
        if sum(sizes) > room or any(_hides(rows, column, size) for column, size in enumerate(sizes)):
            return [INDENT + line for line in paragraphs(rows, width - len(INDENT))]
    lines: list[str] = []
    for row in rows:
        cells = [cut_middle(cell, size).ljust(size) for cell, size in zip(row, sizes, strict=False)]
        start = INDENT + "".join(f"{cell}{_GAP}" for cell in cells)
        lines += _hang(start, row[-1], width)
    return lines


def least_sizes(rows: Sequence[Sequence[str]]) -> list[int]:
    """How wide each column must be at least: its heading is whole, and so are its short cells."""
    header, *others = rows
    longest = (max((len(row[column]) for row in others), default=0) for column in range(len(header)))
    return [max(len(title), min(size, LEAST)) for title, size in zip(header, longest, strict=True)]


def paragraphs(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Rows (the header first) as paragraphs: what a row is about, and below it what there is to say, by heading."""
    header, *others = rows
    for name, *cells in others:
        yield from textwrap.wrap(name, max(width, 1), break_on_hyphens=False) or [""]
        told = " · ".join(
            f"{title.lower()}: {cell}" if title else cell
            for title, cell in zip(header[1:], cells, strict=True)
            if cell not in ("", NOTHING)
        )
        for line in textwrap.wrap(told, max(width - len(INDENT), 1), break_on_hyphens=False):
            yield INDENT + line


def cut_middle(text: str, size: int) -> str:
    """A text of at most so many letters, with its beginning and its end."""
    if len(text) <= size:
        return text
    end = size // 2
    return f"{text[: size - end - 1]}…{text[-end:]}"


def wrap(text: str, width: int | None) -> str:
    """A paragraph in lines of at most `width`; as it is without one."""
    return text if width is None else "\n".join(textwrap.wrap(text, width, break_on_hyphens=False) or [""])


def _narrow(sizes: list[int], least: list[int], room: int) -> list[int]:
    """Takes from the widest column until the columns fit the room, or have no more to give."""
    sizes = list(sizes)
    while sum(sizes) > room and (spare := [index for index, size in enumerate(sizes) if size > least[index]]):
        sizes[max(spare, key=lambda index: sizes[index])] -= 1
    return sizes


def _hides(rows: Sequence[Sequence[str]], column: int, size: int) -> bool:
    """Whether cells of a column that differ would look alike."""
    cells = {row[column] for row in rows}
    return len({cut_middle(cell, size) for cell in cells}) < len(cells)


def _hang(start: str, text: str, width: int | None) -> list[str]:
    if width is None:
        return [(start + text).rstrip()]
    room = max(width - len(start), _LEAST_LAST)
    first, *rest = textwrap.wrap(text, room, break_on_hyphens=False) or [""]
    return [(start + first).rstrip(), *(" " * len(start) + line for line in rest)]
