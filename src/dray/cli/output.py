"""What all commands share in talking to people and programs: exit codes, consoles, the one way to fail."""

from __future__ import annotations

import sys
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, NoReturn

import msgspec

if TYPE_CHECKING:
    from rich.console import Console

YES, NO, CANNOT = 0, 1, 2


class Format(StrEnum):
    """How a command prints its answer."""

    TEXT = "text"
    JSON = "json"


class TableFormat(StrEnum):
    """How a command prints objects."""

    TABLE = "table"
    YAML = "yaml"
    JSON = "json"


def fail(message: str) -> NoReturn:
    """Says on standard error what is wrong and what to do, and ends with exit code 2."""
    print(f"dray: {message}", file=sys.stderr)
    raise SystemExit(CANNOT)


@cache
def console() -> Console:
    """Standard output for people: tables and colour on a terminal, plain text otherwise."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=not sys.stdout.isatty())


def print_json(value: object) -> None:
    """Any plain value as indented JSON on standard output."""
    text = msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode()
    print(text)


def plural(count: int, noun: str) -> str:
    """`1 object`, `2 objects`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
