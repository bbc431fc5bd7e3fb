"""`dray down`: stops a cluster of this machine; its state stays."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Annotated, Final

import typer

from dray.cli import clusters, completion, output
from dray.cli.taint_options import TIMEOUT, Format, read_timeout

LOOK_SECONDS: Final = 0.02
DEFAULT_TIMEOUT: Final = "30s"


def run(
    name: Annotated[str, clusters.name_argument(completion.running)] = clusters.DEFAULT,
    directory: clusters.Directory = None,
    timeout: Annotated[str, TIMEOUT] = DEFAULT_TIMEOUT,
    format_: Format = output.Format.TEXT,
) -> None:
    """Stop a cluster that `dray up` or `dray server` runs on this machine, and wait until it has. Its state stays.

    Exit code 0: stopped; 1: it does not run, or did not stop in time; 2: cannot.
    """
    if directory is None and "/" in name:  # as `dray ls` names a cluster that is elsewhere
        name, directory = clusters.DEFAULT, Path(name)
    where = clusters.directory_of(name, directory)
    cluster = clusters.look(where)
    stopped = bool(cluster.pid) and _stop(where, cluster, read_timeout(timeout) or float("inf"))
    again = f"dray up {name}" if directory is None else f"dray up --dir {directory}"
    if format_ is output.Format.JSON:
        found = {"name": cluster.name, "directory": str(where), "wasRunning": bool(cluster.pid), "stopped": stopped}
        output.print_json(found, "StoppedCluster")
    elif stopped:
        print(f"Cluster {cluster.name} has stopped. Its state stays; go on with: {again.removesuffix(' default')}")
    elif cluster.pid:
        print(f"Cluster {cluster.name} (pid {cluster.pid}) was told to stop, and still runs after {timeout}.")
    else:
        print(f"No cluster runs on {output.short_path(where)}.")
    raise typer.Exit(output.YES if stopped else output.NO)


def _stop(where: Path, cluster: clusters.LocalCluster, seconds: float) -> bool:
    """Tells it to, and waits; whether it has. Ends with exit code 2 if it belongs to another user."""
    try:
        os.kill(cluster.pid, signal.SIGTERM)
    except ProcessLookupError:
        pass  # it ended by itself meanwhile
    except PermissionError:
        output.fail(f"cluster {cluster.name} is run by another user (pid {cluster.pid}).")
    until = time.monotonic() + seconds
    while clusters.look(where).pid:
        if time.monotonic() > until:
            return False
        time.sleep(LOOK_SECONDS)
    return True
