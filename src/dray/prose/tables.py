"""Tables as plain text that fit a width: the last column takes what is left, and wraps."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

INDENT = "  "
_GAP = "  "
_LEAST_LAST = 16
"""The last column is not made narrower than this, however narrow the terminal."""


def lay_out(rows: Sequence[Sequence[str]], width: int | None = None) -> list[str]:
    """Rows of cells (the header first) as lines. Without a width nothing wraps and nothing is cut."""
    *sizes, _ = (max(len(row[column]) for row in rows) for column in range(len(rows[0])))
    if width is not None:
        sizes = _narrow(sizes, width - len(INDENT) - len(_GAP) * len(sizes) - _LEAST_LAST)
    lines: list[str] = []
    for row in rows:
        cells = [_cut(cell, size).ljust(size) for cell, size in zip(row, sizes, strict=False)]
        start = INDENT + "".join(f"{cell}{_GAP}" for cell in cells)
        lines += _hang(start, row[-1], width)
    return lines


def wrap(text: str, width: int | None) -> str:
    """A paragraph in lines of at most `width`; as it is without one."""
    return text if width is None else "\n".join(textwrap.wrap(text, width, break_on_hyphens=False) or [""])


def _narrow(sizes: list[int], room: int) -> list[int]:
    """Takes from the widest column until the columns fit the room."""
    sizes = list(sizes)
    while sum(sizes) > max(room, 4 * len(sizes)):
        sizes[sizes.index(max(sizes))] -= 1
    return sizes


def _cut(cell: str, size: int) -> str:
    return cell if len(cell) <= size else f"{cell[: size - 1]}…"


def _hang(start: str, text: str, width: int | None) -> list[str]:
    if width is None:
        return [(start + text).rstrip()]
    room = max(width - len(start), _LEAST_LAST)
    first, *rest = textwrap.wrap(text, room, break_on_hyphens=False) or [""]
    return [(start + first).rstrip(), *(" " * len(start) + line for line in rest)]
