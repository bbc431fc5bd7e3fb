"""The entry point: knows every subcommand, imports only the one that is asked for."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from dray import __version__, extras
from dray.cli import help, output, terminal, values

values.read_plainly()

app = typer.Typer(
    name="dray",
    help="A control plane for devices, behind the Kubernetes API.",
    epilog="Exit codes: 0 yes, 1 no, 2 bad input or cannot run.",
    cls=help.Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": help.WIDEST},
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"dray {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """A control plane for devices, behind the Kubernetes API."""


def main() -> None:
    """Runs the command line. A closed pipe ends quietly, and like Ctrl-C with the usual code: it is no answer."""
    terminal.guard()
    try:
        try:
            app(prog_name=_program())
        finally:
            sys.stdout.flush()  # nobody may read what is left
    except extras.MissingExtra as error:
        output.fail(str(error))
    except BrokenPipeError:
        terminal.read_by_nobody()
        raise SystemExit(output.CLOSED_PIPE) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _program() -> str:
    """What people typed: kubectl finds `kubectl-dray` on the path and offers it as `kubectl dray`."""
    return "kubectl dray" if os.path.basename(sys.argv[0]) == "kubectl-dray" else "dray"
