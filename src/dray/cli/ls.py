"""`dray ls`: the clusters on this machine."""

from __future__ import annotations

import typer

from dray.cli import clusters, output, tables
from dray.cli.taint_options import Format


def run(format_: Format = output.Format.TEXT) -> None:
    """List the clusters of this machine, whether they run, and how to reach them.

    Those that were started by name, and those on directories of their own (--dir) while they run.
    Exit code 0: there are some; 1: there are none.
    """
    found = clusters.find_all()
    if format_ is output.Format.JSON:
        items = [
            {
                "name": one.name,
                "directory": str(one.directory),
                "running": bool(one.pid),
                "pid": one.pid or None,
                "server": one.url() or None,
                "kubeconfig": str(one.kubeconfig),
            }
            for one in found
        ]
        output.print_json(items, "LocalClusterList")
    elif found:
        rows = [
            (
                one.label,
                "running" if one.pid else "stopped",
                str(one.pid or tables.NOTHING),
                one.url() if one.pid else tables.NOTHING,
                output.short_path(one.kubeconfig),
            )
            for one in found
        ]
        tables.print_table(("NAME", "STATE", "PID", "SERVER", "KUBECONFIG"), rows)
    else:
        print("No clusters. Start one with: dray up --detach")
    raise typer.Exit(output.YES if found else output.NO)
