"""`dray backup`: a copy of a state directory's database, also while a server uses it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dray.cli import output
from dray.cli.server_options import DEFAULT_DIRECTORY


def run(
    file: Annotated[Path, typer.Argument(help="File to write; it must not exist.")],
    directory: Annotated[Path, typer.Option("--dir", help="State directory to back up.")] = DEFAULT_DIRECTORY,
) -> None:
    """Copy everything stored to a file, while the server runs or not. Keys and certificates are not in it."""
    from dray.store import StoreError, backup

    directory = directory.expanduser()
    try:
        backup(directory, file)
    except StoreError as error:
        output.fail(str(error))
    print(f"Backup of {directory} written to {file} ({file.stat().st_size:,} bytes).")
