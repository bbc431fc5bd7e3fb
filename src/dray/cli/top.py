"""`dray top`: a running cluster full screen in a terminal."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from dray.cli import completion, inputs, live, names, output, terminal
from dray.cli.running_cluster import RunningCluster

if TYPE_CHECKING:
    from dray.client.kubeconfig import Connection
    from dray.top.session import TopSession


class ViewName(StrEnum):
    """What to look at first."""

    FLEET = "fleet"
    DEVICES = "devices"
    PENDING = "pending"
    EVICTIONS = "evictions"


def run(
    view: Annotated[
        ViewName, typer.Option(help="What to show first; 1 to 4 and Tab go to the others.")
    ] = ViewName.FLEET,
    cel: Annotated[
        str, typer.Option(metavar="EXPRESSION", help="Only devices of which this CEL expression is true.")
    ] = "",
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace",
            "-n",
            help="For those who may see claims and pods of one namespace only.",
            autocompletion=completion.namespaces,
        ),
    ] = "",
    all_namespaces: names.AllNamespaces = False,
    once: Annotated[bool, typer.Option("--once", help="Print the view once, whole, and end.")] = False,
    *,
    cluster: RunningCluster,
) -> None:
    """Show a running cluster full screen: the map of devices, devices, pending pods and why, evictions under way.

    Everything is live, with the rights of the kubeconfig's user; ? shows the keys. d takes devices out of service,
    after a preview and a question. Without colour if NO_COLOR is set.

    Exit code 0: seen enough; 2: the cluster cannot be read, or standard output is no terminal and --once is not given.
    """
    namespace = names.one_of(namespace, all_namespaces=all_namespaces)
    if not once and not (sys.stdin.isatty() and sys.stdout.isatty()):
        output.fail("dray top needs a terminal. Give --once to print what there is.")
    if not once and os.environ.get("TERM", "dumb") in ("", "dumb"):
        output.fail("this terminal (TERM=dumb) has no full screen. Give --once to print what there is.")
    asyncio.run(_run(cluster.connect(), view, cel, namespace, once=once))


async def _run(connection: Connection, view: ViewName, cel: str, namespace: str, *, once: bool) -> None:
    from dray.reconcile import RealClock
    from dray.top.session import TopSession
    from dray.views.grouping import GroupingError

    async with live.client_of(connection, "top") as client:
        session = TopSession(client, RealClock(), connection.server, namespace)
        try:
            with live.failing(connection):
                with inputs.busy("Reading the cluster"):
                    await session.start(list(ViewName).index(view), cel)
                await _show(session, once=once)
        except GroupingError as error:
            output.fail(f"--cel: {error}.")
        finally:
            await session.stop()


async def _show(session: TopSession, *, once: bool) -> None:
    from dray.top.screen import text_of
    from dray.top.tty import Terminal

    if once:
        print("\n".join(map(text_of, session.once(shutil.get_terminal_size().columns))))
        return
    logging.getLogger().addHandler(logging.NullHandler())  # lines of a log would tear the screen
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, session.leave)
    await session.run(Terminal(terminal.unguarded(sys.stdout), colour="NO_COLOR" not in os.environ))
