"""`dray schema`: the JSON Schema of what commands print with `-o json`."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from dray.cli import completion, output, tables


def run(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="One of the kinds that it lists without one.",
            autocompletion=completion.documents,
        ),
    ] = "",
) -> None:
    """Print the JSON Schema of a kind of document that commands print with -o json, or list the kinds.

    Exit code 0: done; 2: there is no such kind.
    """
    from dray.cli.shapes import SHAPES, schema

    if not kind:
        rows = [(name, ", ".join(f"dray {one}" for one in printed.commands)) for name, printed in SHAPES.items()]
        tables.print_table(("KIND", "PRINTED BY"), rows)
        return
    if kind not in SHAPES:
        output.fail(f"there is no kind {kind!r}; there is {', '.join(SHAPES)}.")
    print(msgspec.json.format(msgspec.json.encode(schema(kind)), indent=2).decode())
