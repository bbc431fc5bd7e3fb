"""`dray backup`: a copy of a state directory's database, also while a server uses it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dray.cli import output, server_options
from dray.files import home
from dray.prose import wording


def run(
    file: Annotated[Path, typer.Argument(help="File to write; it must not exist.")],
    directory: Annotated[Path, server_options.directory_option("State directory to back up.")],
    *,
    where: server_options.StoreOptions,
) -> None:
    """Copy everything stored to a file, while the server runs or not. Keys and certificates are not in it.

    With --store etcd=URL,... what is in etcd; dray restore puts it into a state directory, or into another etcd.
    """
    from dray.store import StoreError, backup

    etcd = where.etcd()
    if etcd is not None:
        from dray.server.etcd_instance import layout
        from dray.store.etcd import moving

        try:
            count = moving.backup(etcd, layout(etcd.prefix), file)
        except StoreError as error:
            output.fail(str(error))
        print(
            f"Backup of {wording.count(count, 'object')} in {etcd} written to {file} ({file.stat().st_size:,} bytes)."
        )
        return
    directory = home.expand(directory)
    try:
        backup(directory, file)
    except StoreError as error:
        output.fail(str(error))
    print(f"Backup of {directory} written to {file} ({file.stat().st_size:,} bytes).")
