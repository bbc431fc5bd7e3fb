"""`dray restore`: a backup as the database of a new state directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dray.cli import output
from dray.cli.server_options import DEFAULT_DIRECTORY


def run(
    file: Annotated[Path, typer.Argument(help="Backup to restore.")],
    directory: Annotated[
        Path, typer.Option("--dir", help="State directory to restore into; it must hold no database.")
    ] = DEFAULT_DIRECTORY,
) -> None:
    """Restore a backup into a state directory. Clients have to list again: resourceVersions jump ahead."""
    from dray.store import StoreError, restore

    directory = directory.expanduser()
    try:
        restore(file, directory)
    except StoreError as error:
        output.fail(str(error))
    print(f"{file} restored into {directory}. Start with: dray server --dir {directory}")
