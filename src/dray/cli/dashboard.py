"""`dray dashboard`: the page for any cluster that a kubeconfig leads to, on this machine."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
from typing import TYPE_CHECKING, Annotated

import typer

from dray.cli import output
from dray.cli.running_cluster import RunningCluster

if TYPE_CHECKING:
    from dray.client.kubeconfig import Connection


def run(
    *,
    cluster: RunningCluster,
    port: Annotated[int, typer.Option(help="Where to listen; 0 takes a free port.", min=0, max=65535)] = 6480,
    bind: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="A loopback address: the page comes in plain HTTP, and must not leave this machine."
        ),
    ] = "127.0.0.1",
    link: Annotated[
        bool,
        typer.Option("--link/--no-link", help="Whether there is such a link, or everybody has to have a token."),
    ] = True,
) -> None:
    """Serve the dashboard of a cluster, dray's or any other, on this machine, and print a link that logs you in.

    The link works once, within an hour, and whoever opens it has the rights of the kubeconfig's user. Others log in
    with a token of their own. Exit code 2: cannot listen, or cannot use the kubeconfig.
    """
    import uvloop

    if not _is_loopback(bind):
        output.fail(
            f"--bind {bind}: plain HTTP is served on loopback only. Use 127.0.0.1, and a tunnel from elsewhere."
        )
    uvloop.run(_serve(cluster.connect(), bind, port, with_link=link))


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return address == "localhost"


async def _serve(connection: Connection, bind: str, port: int, *, with_link: bool) -> None:
    from dray.dashboard.access import OWN, HttpAccess
    from dray.dashboard.app import PREFIX, Dashboard
    from dray.process.http import Limits, Listener, Server
    from dray.reconcile import RealClock

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    dashboard = Dashboard(HttpAccess(connection), RealClock(), is_encrypted=False)
    server = Server(dashboard, Limits(connections=200), dashboard.admit)
    try:
        try:
            bound = await server.listen(Listener(bind.strip("[]"), port))
        except OSError as error:
            output.fail(f"cannot listen on {bind}:{port}: {error.strerror or error}. Give another --port.")
        host = f"[{bind.strip('[]')}]" if ":" in bind else bind
        address = f"http://{host}:{bound}"
        entry = (
            f"{dashboard.link(OWN, address)}   (logs you in once, within an hour)" if with_link else address + PREFIX
        )
        print(f"dashboard of {connection.server}\n  {entry}", flush=True)
        await stop.wait()
    finally:
        await dashboard.close()
        await server.stop(patience=0.5)
