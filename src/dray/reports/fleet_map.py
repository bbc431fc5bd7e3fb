"""The fleet as a picture: a block for each node or pool, a square for each device, as on the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final

import msgspec

from dray.prose.wording import count
from dray.reports.shapes import (
    ACCENT,
    FILLS,
    INK,
    LETTER_WIDTH,
    MARKS,
    QUIET,
    Picture,
    Rect,
    Shape,
    Stroke,
    Text,
    frame,
)
from dray.tracker.view import EffectiveDevice, PoolView
from dray.views.fleet import FleetRow, FleetTotals, shown_as

WIDTH: Final = 960
MARGIN: Final = 12
SIZES: Final = ((14, 400), (8, 2_000), (4, 1_000_000))
"""Sizes of squares, each for at most so many blocks."""
LABELLED: Final = 14
LEGEND: Final = 560
HEADING: Final = 22

Group = Callable[[EffectiveDevice], str]


class Block(msgspec.Struct, frozen=True):
    """Devices that are drawn together."""

    group: str
    name: str
    words: tuple[str, ...]
    marked: frozenset[int] = frozenset()
    """Positions with a frame around them."""


def blocks(rows: Iterable[FleetRow], views: dict[str, PoolView], group: Group, marked: Collection[str]) -> list[Block]:
    """Blocks in order; `marked` are devices as `driver/pool/device`."""
    found: list[Block] = []
    for row in rows:
        parts: dict[str, list[int]] = {}
        for position, device in enumerate(views[row.key].devices):
            parts.setdefault(group(device), []).append(position)
        for name, positions in parts.items():
            words = tuple(shown_as(row.states[one]) for one in positions)
            hit = frozenset(
                number
                for number, one in enumerate(positions)
                if marked and f"{row.driver}/{row.pool}/{row.names[one]}" in marked
            )
            found.append(Block(name, row.node or row.pool, words, hit))
    return sorted(found, key=lambda block: block.group)


def draw(found: Iterable[Block], title: str) -> Picture:
    """The map with a title, and a legend that counts what is shown."""
    them = list(found)
    numbers = Counter(word for block in them for word in block.words)
    size = next(size for size, most in SIZES if len(them) <= most)
    shapes: list[Shape] = [Text(MARGIN, MARGIN, title, INK, bold=True), *_legend(numbers, MARGIN + 18)]
    y = MARGIN + 44
    names = {block.group for block in them}
    for name in dict.fromkeys(block.group for block in them):
        if len(names) > 1 or name:
            shapes.append(Text(MARGIN, y + 4, name or "(none)", INK, bold=True))
            y += HEADING
        y = _place([block for block in them if block.group == name], size, y, shapes)
    right = max(shape.x + shape.width for shape in shapes if isinstance(shape, Rect))
    told = ", ".join(f"{numbers[word]} {word}" for word in FILLS)
    width = max(right + MARGIN, MARGIN + LEGEND)
    return Picture(width, y, tuple(shapes), f"{title}: {count(numbers.total(), 'device')}, {told}")


def tell(numbers: FleetTotals) -> str:
    """The fleet in numbers: a device counts for everything that it is."""
    parts = [f"{getattr(numbers, word)} {word}" for word in FILLS]
    return f"{count(numbers.devices, 'device')}, {', '.join(parts)}"


def _legend(numbers: Counter[str], y: int) -> Iterator[Shape]:
    x = MARGIN
    for word in FILLS:
        yield from square(x, y, 12, word)
        told = f"{numbers[word]} {word}"
        yield Text(x + 18, y + 2, told, QUIET)
        x += 18 + LETTER_WIDTH * len(told) + 22


def _place(them: list[Block], size: int, y: int, shapes: list[Shape]) -> int:
    """Draws blocks from left to right and from top to bottom; where it ends."""
    step = size + 1
    label = 13 if size >= LABELLED else 0
    gap = 12 if label else 4
    x, tallest = MARGIN, 0
    for block in them:
        columns = min(len(block.words), 16 if len(block.words) > 32 else 8)
        width = max(columns * step, 76 if label else 0)
        height = -(-len(block.words) // max(1, columns)) * step + label
        if x > MARGIN and x + width > WIDTH - MARGIN:
            x, y, tallest = MARGIN, y + tallest + gap, 0
        if label:
            shapes.append(Text(x, y, _fit(block.name, width), QUIET))
        for number, word in enumerate(block.words):
            left, top = x + number % columns * step, y + label + number // columns * step
            shapes += square(left, top, size, word)
            if number in block.marked:
                shapes += frame(left - 1, top - 1, size + 2, size + 2, ACCENT)
        x += width + gap
        tallest = max(tallest, height)
    return y + tallest + gap


def _fit(name: str, width: int) -> str:
    most = max(3, width // LETTER_WIDTH)
    return name if len(name) <= most else f"…{name[1 - most :]}"


def square(x: int, y: int, size: int, word: str) -> Iterator[Shape]:
    """A device: the colour of its state, and its mark where there is room for one."""
    yield Rect(x, y, size, size, FILLS[word])
    if size < 8 or word not in MARKS:
        return
    mark, end = MARKS[word], size - 1
    if word == "free":
        yield from frame(x, y, size, size, mark)
    elif word == "tainted":
        yield Stroke(x, y + end, x + end, y, mark)
        yield Stroke(x, y + end // 2, x + end // 2, y, mark)
        yield Stroke(x + end // 2, y + end, x + end, y + end // 2, mark)
    elif word == "blocked":
        yield Rect(x + size // 4, y + size // 2 - 1, size - 2 * (size // 4), 2, mark)
    else:
        for step in range(size // 4):
            yield Rect(x + size // 3 + step, y + size // 4 + step, 1, size - 2 * (size // 4) - 2 * step, mark)
