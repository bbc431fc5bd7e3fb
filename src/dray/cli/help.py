"""How `--help` looks: commands in groups with whole sentences, at the terminal's width, in words of users."""

from __future__ import annotations

import re
from typing import Any, Final, get_args

from typer import BadParameter
from typer.core import TyperGroup

from dray.cli import output, terminal
from dray.cli.commands import COMMANDS, CommandsByName

WIDEST: Final = 120
SECTIONS: Final = {
    "A cluster on this machine": ("up", "down", "ls", "nodes", "backup", "restore"),
    "Look": ("dashboard", "top", "get", "explain", "devices", "placement", "report", "record"),
    "Without a cluster, or before anything is done": (
        "validate",
        "lint",
        "cel",
        "allocate",
        "what-if",
        "scale-up",
        "replay",
        "plan",
    ),
    "Take out of service, and put back": (
        "taint",
        "drain",
        "untaint",
        "apply",
        "confirm",
        "cancel",
        "stop-evictions",
    ),
    "On a Kubernetes cluster": ("doctor", "install", "uninstall"),
    "Run one part": ("server", "scheduler", "controllers", "node", "node-kubeconfig"),
    "For authors of drivers and programs": ("driver", "driver-test", "schema"),
}
"""The commands by what people want; a test knows that none is missing."""
_METAVARS: Final = {"int": "N", "float": "N", "Path": "PATH"}

_SENTENCE: Final = re.compile(r"(?<=\.) ")


class Commands(TyperGroup):
    """The commands of dray. Commands are `Any`: typer brings a click of its own, without public types."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.commands: Any = CommandsByName(_finish)

    def invoke(self, ctx: Any) -> Any:
        """As always; what is wrong with a value is said without the word of the library that found it.

        A closed pipe ends the program here: the library takes it for an answer, and ends with 1.
        """
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            terminal.read_by_nobody()
            raise SystemExit(output.CLOSED_PIPE) from None
        except BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - as click calls it
        """Each group under its title; a command is described by its first sentence, however long that is."""
        for title, names in SECTIONS.items():
            rows = [(name, COMMANDS[name].sentence) for name in names]
            with formatter.section(title):
                formatter.write_dl(rows, col_max=max(map(len, COMMANDS)))


def _finish(command: Any) -> None:
    """Says what a value is in a word of users, not of Python, and whole sentences, for a command and all below it."""
    for below in getattr(command, "commands", {}).values():
        below.short_help = first_sentence(below.help or "")
        _finish(below)
    for one in command.params:
        if one.param_type_name == "argument":
            one.display_type_rich = lambda **_: ""
            one.metavar = one.metavar or _argument(one)
        elif one.metavar is None and not one.is_flag and not one.count:
            one.metavar = _metavar(one)


def _argument(argument: Any) -> str:
    """The word for an argument that has none of its own: what may be given, or its name."""
    choices = argument.type_descriptor.choices
    return "|".join(map(str, choices)) if choices else argument.name.upper()


def first_sentence(text: str) -> str:
    """What a command does, in one sentence, however long that is."""
    return _SENTENCE.split(" ".join(text.split()), maxsplit=1)[0]


def _metavar(option: Any) -> str | None:
    """The word for a value; None for a choice, whose words are shown as they are."""
    described = option.type_descriptor
    if described.is_ranged:
        return "N"
    if getattr(described, "is_path", False):
        return "PATH"
    inner = next(iter(get_args(described.annotation)), described.annotation) if described.is_list else None
    kind = getattr(inner or described.annotation, "__name__", "")
    if kind == "str":
        return str(max(option.opts, key=len).rpartition("-")[2].upper())  # NODE for --node, GATES for --feature-gates
    return _METAVARS.get(kind)
