"""What pictures are made of, whoever draws them: rectangles, lines and texts on a plane of pixels."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

INK: Final = "#1f2933"
QUIET: Final = "#5b6672"
PAPER: Final = "#ffffff"
ACCENT: Final = "#b3006b"
FILLS: Final = {
    "free": "#d8efe0",
    "held": "#2f6fd0",
    "tainted": "#f5c04a",
    "blocked": "#b6bdc6",
    "leaving": "#d6498a",
}
MARKS: Final = {"free": "#35946a", "tainted": "#8a5a00", "blocked": "#5b6672", "leaving": "#ffffff"}
"""Besides its colour, every state but held has a mark of its own."""

TEXT_HEIGHT: Final = 9
LETTER_WIDTH: Final = 6


class Rect(NamedTuple):
    """Filled."""

    x: int
    y: int
    width: int
    height: int
    colour: str


class Stroke(NamedTuple):
    """A line between two pixels."""

    x: int
    y: int
    to_x: int
    to_y: int
    colour: str


class Text(NamedTuple):
    """`y` is its upper edge."""

    x: int
    y: int
    text: str
    colour: str = INK
    bold: bool = False


Shape: TypeAlias = Rect | Stroke | Text


class Picture(NamedTuple):
    """Shapes, in the order in which they are drawn; `told` says in words what is to be seen."""

    width: int
    height: int
    shapes: tuple[Shape, ...]
    told: str


def frame(x: int, y: int, width: int, height: int, colour: str) -> tuple[Rect, ...]:
    """The four sides of a rectangle."""
    return (
        Rect(x, y, width, 1, colour),
        Rect(x, y + height - 1, width, 1, colour),
        Rect(x, y, 1, height, colour),
        Rect(x + width - 1, y, 1, height, colour),
    )
