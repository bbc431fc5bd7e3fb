"""Tables and values on standard output: within the terminal's width, or plain and whole in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from dray.cli import output


def width() -> int | None:
    """How wide the terminal is; None if standard output is none, where nothing wraps."""
    return output.console().width if sys.stdout.isatty() else None


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table under its header; on a terminal long cells wrap."""
    if not sys.stdout.isatty():
        _print_plain([header, *rows])
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in header:
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    output.console().print(table)


def print_yaml(value: Any) -> None:
    """Any plain value as YAML on standard output."""
    import yaml

    print(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120), end="")


def print_value(value: Any, *, as_yaml: bool) -> None:
    """A plain value for programs: the same tree in either notation."""
    if as_yaml:
        print_yaml(value)
    else:
        output.print_json(value)


def _print_plain(rows: Sequence[Sequence[str]]) -> None:
    sizes = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(size) for cell, size in zip(row, sizes, strict=True)).rstrip())
