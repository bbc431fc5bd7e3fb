"""What all commands share in talking to people and programs: exit codes, consoles, the one way to fail."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

import msgspec

from dray.cli import terminal
from dray.files import home

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

YES, NO, CANNOT = 0, 1, 2
CLOSED_PIPE = 141
"""No answer: nobody reads it. What shells say of programs that a pipe ends."""


class Format(StrEnum):
    """How a command prints its answer."""

    TEXT = "text"
    JSON = "json"


class TableFormat(StrEnum):
    """How a command prints objects."""

    TABLE = "table"
    YAML = "yaml"
    JSON = "json"


class ListFormat(StrEnum):
    """How a command prints a list that may go on."""

    TABLE = "table"
    YAML = "yaml"
    JSON = "json"
    JSONL = "jsonl"
    NAME = "name"


def fail(message: str) -> NoReturn:
    """Says on standard error what is wrong and what to do, and ends with exit code 2."""
    print(f"dray: {message}", file=sys.stderr)
    raise SystemExit(CANNOT)


@cache
def console() -> Console:
    """Standard output for people: tables and colour on a terminal, plain text otherwise."""
    return console_on(sys.stdout if sys.stdout.isatty() else None)


def console_on(screen: IO[str] | None) -> Console:
    """A terminal for tables, bars and spinners, guarded or not; without one, whatever standard output is then."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class VisibleConsole(Console):
        """Control sequences are its own; none comes from what it shows."""

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                text = segment.text if segment.control else terminal.visible_lines(segment.text)
                yield segment if text is segment.text else segment._replace(text=text)

    file = terminal.unguarded(screen) if screen is not None else None
    return VisibleConsole(highlight=False, soft_wrap=screen is None, file=file)


API_VERSION = "dray.dev/v1"
"""Of every document that commands print for programs. What is added keeps it; what is taken away changes it."""


def document(value: object, kind: str) -> dict[str, Any]:
    """What a command prints for programs: an object that says what it is. A list is its `items`."""
    header = {"apiVersion": API_VERSION, "kind": kind}
    return {**header, **value} if isinstance(value, dict) else {**header, "items": value}


def print_json(value: object, kind: str) -> None:
    """A document of some kind (`shapes`) as indented JSON on standard output."""
    print(to_json(document(value, kind)))


def to_json(value: object) -> str:
    """Indented JSON. A file's name that is not UTF-8 is in it as Python holds such names, as `\\udcff`."""
    try:
        return msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode()
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value, enc_hook=str), indent=2)


def short_path(path: Path) -> str:
    """A path with the home directory as `~`."""
    own = home.expand("~")
    return f"~/{path.relative_to(own)}" if path.is_relative_to(own) else str(path)
