"""Bars: so many of so many, one below the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from dray.reports.shapes import FILLS, INK, LETTER_WIDTH, QUIET, Picture, Rect, Shape, Text

WIDTH: Final = 760
ROW: Final = 24
BAR: Final = 420


class Bar(NamedTuple):
    """Pieces of a whole, by state."""

    name: str
    pieces: tuple[tuple[str, int], ...]
    of: int
    told: str


def draw(bars: Iterable[Bar], title: str) -> Picture:
    """A picture of bars; all have the length of their whole."""
    them = list(bars)
    label = min(28, max((len(bar.name) for bar in them), default=0))
    shapes = [shape for number, bar in enumerate(them) for shape in _bar(bar, 8 + number * ROW, label)]
    told = "; ".join(f"{bar.name}: {bar.told}" for bar in them)
    return Picture(WIDTH, 16 + ROW * len(them), tuple(shapes), f"{title}: {told}")


def _bar(bar: Bar, y: int, label: int) -> Iterator[Shape]:
    name = bar.name if len(bar.name) <= label else f"{bar.name[: label - 1]}…"
    yield Text(8, y + 4, name, INK)
    x = 20 + label * LETTER_WIDTH
    yield Rect(x, y, BAR, ROW - 8, "#e8ebef")
    done = 0
    for word, number in bar.pieces:
        start, end = (BAR * part // max(1, bar.of) for part in (done, done + number))
        yield Rect(x + start, y, end - start, ROW - 8, FILLS[word])
        done += number
    yield Text(x + BAR + 8, y + 4, bar.told, QUIET)
