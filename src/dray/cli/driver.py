"""`dray driver new`: the files of a new driver, with tests that pass."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dray.cli import output

app = typer.Typer(help="Begin a driver for devices of your own.", no_args_is_help=True, rich_markup_mode=None)


@app.command("new")
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The driver's name, such as fans.example.com.")],
    directory: Annotated[
        Path | None,
        typer.Option("--dir", metavar="DIR", help="Where to write; by default a new directory named after the driver."),
    ] = None,
) -> None:
    """Write the files of a new driver: class, tests, deployment, example.

    The tests pass as they are, the rules of `dray driver-test` included; then replace what is made up.

    Exit code 0: written; 2: no driver can have that name, or there is something in the directory already.
    """
    from dray.driver_scaffold import Names, ScaffoldError, files_of

    try:
        names = Names.of(name)
    except ScaffoldError as error:
        output.fail(str(error))
    where = directory or Path(names.project)
    try:
        _write(where, files_of(names))
    except OSError as error:
        output.fail(f"{where} cannot be written: {(error.strerror or str(error)).lower()}. Give another --dir.")
    print(f"The driver {name} is in {where}. Next:")
    print(f"  cd {where}")
    print("  pytest                    its tests, and every rule that drivers keep")
    print(f"  $EDITOR {names.module}.py")


def _write(where: Path, files: dict[str, str]) -> None:
    """Writes files below a directory in which there is nothing yet. Raises OSError."""
    if where.exists() and (not where.is_dir() or any(where.iterdir())):
        what = "is not empty" if where.is_dir() else "is a file"
        output.fail(f"{where} {what}. Give another --dir, or move what is there.")
    for path, text in files.items():
        file = where / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
