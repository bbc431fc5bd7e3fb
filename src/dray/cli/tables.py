"""Tables and values on standard output: within the terminal's width, or plain and whole in a pipe."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dray.cli import output
from dray.prose.tables import LEAST, cut_middle, least_sizes, paragraphs
from dray.prose.tables import NOTHING as NOTHING

if TYPE_CHECKING:
    from rich.console import RenderableType

REST: Final = "-o json has them all"
"""Where the rows are that a table leaves out."""
GAP: Final = 2
STYLES: Final = (
    ("not ready", "red"),
    ("unreachable", "red"),
    ("unavailable", "red"),
    ("blocked", "magenta"),
    ("gone", "red"),
    ("draining", "yellow"),
    ("drained", "yellow"),
    ("tainted", "yellow"),
    ("unschedulable", "yellow"),
    ("pending", "yellow"),
    ("deleting", "dim"),
    ("free", "green"),
    ("ready", "green"),
    ("available", "green"),
    ("running", "green"),
)
"""Of states, by the first word that is in them: what is wrong before what is well."""


class Table(NamedTuple):
    """A table; the first column says what a row is about."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def width() -> int | None:
    """How wide the terminal is; None if standard output is none, where nothing wraps."""
    return output.console().width if sys.stdout.isatty() else None


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table under its header; on a terminal long cells wrap."""
    if not sys.stdout.isatty():
        _print_plain([header, *rows])
        return
    output.console().print(rich_table(header, rows))


def rich_table(header: Sequence[str], rows: Sequence[Sequence[str]], space: int | None = None) -> RenderableType:
    """A table for a terminal: states have colours, long names are cut in the middle, and other long cells wrap.

    Where not even the headings have room, every row is a paragraph.
    """
    from rich.table import Table as RichTable
    from rich.text import Text

    room = space or output.console().width
    cut = cut_names(header, rows, room)
    least = least_sizes([header, *cut])
    if sum(least) + GAP * (len(least) - 1) > room:
        return _coloured("\n".join(paragraphs([header, *rows], room)), header, rows)
    table = RichTable(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    name, *others = least
    is_whole = max((len(row[0]) for row in cut), default=0) + sum(others) + GAP * len(others) <= room
    table.add_column(header[0], overflow="fold", min_width=name, no_wrap=is_whole)  # cut and wrapped nobody can read
    for title, size in zip(header[1:], others, strict=True):
        table.add_column(title, overflow="fold", min_width=size)
    for row in cut:
        cells = [Text(cell, style=style_of(title, cell)) for title, cell in zip(header, row, strict=True)]
        table.add_row(*cells)
    return table


def _coloured(text: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> RenderableType:
    """Paragraphs with what each is about in bold, and states in their colours."""
    from rich.text import Text

    shown = Text(text)
    shown.highlight_regex(r"(?m)^\S.*$", "bold")
    for cell in {cell for row in rows for title, cell in zip(header, row, strict=True) if style_of(title, cell)}:
        shown.highlight_regex(rf"(?<=state: ){re.escape(cell)}", style_of("STATE", cell))
    return shown


def style_of(title: str, cell: str) -> str:
    """The colour of a state; none for anything else. Without a terminal nobody sees it."""
    if title.upper() != "STATE":
        return ""
    return next((style for word, style in STYLES if word in cell), "")


def cut_names(header: Sequence[str], rows: Sequence[Sequence[str]], space: int) -> Sequence[Sequence[str]]:
    """The rows with names, the first column, cut in the middle where they leave the other columns too little room.

    What differs is never hidden: names that would look alike are left as they are, and wrap.
    """
    longest = max((len(row[0]) for row in rows), default=0)
    others = sum(max(len(title), LEAST) + GAP for title in header[1:])
    room = max(space - others, LEAST)
    if longest <= room:
        return rows
    names = [cut_middle(row[0], room) for row in rows]
    if len(set(names)) < len({row[0] for row in rows}):
        return rows
    return [(name, *row[1:]) for name, row in zip(names, rows, strict=True)]


def print_yaml(value: Any) -> None:
    """Any plain value as YAML on standard output."""
    import yaml

    print(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120), end="")


def print_value(value: Any, kind: str, *, as_yaml: bool) -> None:
    """A document for programs: the same tree in either notation."""
    if as_yaml:
        print_yaml(output.document(value, kind))
    else:
        output.print_json(value, kind)


def _print_plain(rows: Sequence[Sequence[str]]) -> None:
    sizes = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(size) for cell, size in zip(row, sizes, strict=True)).rstrip())
