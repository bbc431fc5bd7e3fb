"""Writes `docs/commands.md`: every command of the CLI with every option, read from the commands themselves.

    python -m tools.commands_page

A test checks that the page is current. Commands are `Any`: typer brings a click of its own, without public types.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from dray.cli.main import app

PAGE = Path(__file__).parent.parent / "docs" / "commands.md"
INTRODUCTION = """\
# Commands

Every command with every option, as `--help` has them. Made by `make generate`; do not edit.

Exit codes everywhere: 0 yes, 1 no, 2 bad input or cannot run.
"""


def render_page() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for path, command in commands():
        parts.append(_section(path, command))
    return "\n".join(parts)


def commands() -> list[tuple[tuple[str, ...], Any]]:
    """Every command, with the words that call it."""
    return _commands(typer.main.get_command(app), ("dray",))


def _commands(command: Any, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], Any]]:
    """The commands below a group, each with the words that call it."""
    subcommands = getattr(command, "commands", None)
    if subcommands is None:
        return [(path, command)]
    return [found for name, one in subcommands.items() if not one.hidden for found in _commands(one, (*path, name))]


def _section(path: tuple[str, ...], command: Any) -> str:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and not getattr(one, "hidden", False)]
    words = [*path, *(_argument(one) for one in arguments), *(["[OPTIONS]"] if options else [])]
    lines = [f"## {' '.join(path)}", "", f"`{' '.join(words)}`", "", _text(command.help or ""), ""]
    explained = [(_argument(one), _text(getattr(one, "help", "") or "")) for one in arguments]
    rows = [(f"`{_text(word)}`", text) for word, text in explained if text]
    rows += [(_names(one), _text(getattr(one, "help", "") or "")) for one in options]
    if rows:
        lines += ["| Option | Meaning |", "|---|---|", *(f"| {name} | {text} |" for name, text in rows), ""]
    return "\n".join(lines)


def _argument(argument: Any) -> str:
    word: str = (argument.metavar or argument.name.upper()) + ("..." if argument.nargs != 1 else "")
    return word if argument.required or word.startswith("[") else f"[{word}]"


def _names(option: Any) -> str:
    return ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))


def _text(text: str) -> str:
    """One line of Markdown: paragraphs joined, table bars escaped."""
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(render_page())
