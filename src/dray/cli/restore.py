"""`dray restore`: a backup as the database of a new state directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dray.cli import output, server_options
from dray.files import home
from dray.prose import wording

if TYPE_CHECKING:
    from dray.store import Corrupt


def run(
    file: Annotated[Path, typer.Argument(help="Backup to restore.")],
    directory: Annotated[
        Path, server_options.directory_option("State directory to restore into; it must hold no database.")
    ],
    *,
    where: server_options.StoreOptions,
) -> None:
    """Restore a backup into a state directory. Clients have to list again: resourceVersions jump ahead.

    With --store etcd=URL,... into etcd, where nothing may be under the prefix. resourceVersions are etcd's then:
    restart whatever has watched before.
    """
    from dray.store import Corrupt, StoreError, restore

    if file.is_dir():
        output.fail(f"cannot restore {file}: it is a directory. Give a file that `dray backup` wrote.")
    etcd = where.etcd()
    if etcd is not None:
        from dray.server.etcd_instance import layout
        from dray.store.etcd import moving

        try:
            count = moving.restore(file, etcd, layout(etcd.prefix))
        except Corrupt as error:
            output.fail(_tell_damaged(file, error))
        except StoreError as error:
            output.fail(str(error))
        told = f"{wording.count(count, 'object')} of {file} restored into {etcd}."
        print(f"{told} Start with: dray server {' '.join(where.words())}")
        return
    directory = home.expand(directory)
    try:
        restore(file, directory)
    except Corrupt as error:
        output.fail(_tell_damaged(file, error))
    except StoreError as error:
        output.fail(str(error))
    print(f"{file} restored into {directory}. Start with: dray server --dir {directory}")


def _tell_damaged(file: Path, error: Corrupt) -> str:
    """Of a database it would be said to restore a backup: here the backup is what cannot be read."""
    return (
        f"cannot restore {file}: it is damaged, or nothing that `dray backup` wrote ({error.problem}). "
        "Give another backup; nothing was changed."
    )
