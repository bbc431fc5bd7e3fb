"""Running one component alone, against any API server: the way in, leader election, and a clean end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import uuid
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec
import typer

from dray.cli import output

if TYPE_CHECKING:
    from dray.client import Client
    from dray.client.kubeconfig import Connection
    from dray.reconcile import Clock

log = logging.getLogger(__name__)

Kubeconfig: TypeAlias = Annotated[
    Path | None,
    typer.Option("--kubeconfig", help="The cluster; by default $KUBECONFIG, ~/.kube/config, or that of the pod."),
]
Context: TypeAlias = Annotated[str, typer.Option("--context", help="Which context of the kubeconfig.")]
LeaderElect: TypeAlias = Annotated[
    bool, typer.Option("--leader-elect/--no-leader-elect", help="Work only while holding the lease; others wait.")
]

Work = Callable[["Client", "Clock"], Coroutine[Any, Any, None]]
"""The component, until cancelled."""


class Component(msgspec.Struct, frozen=True):
    """What to run: `lease` is what replicas compete for, empty for no competition."""

    name: str
    work: Work
    lease: str = ""


def connect(kubeconfig: Path | None, context: str) -> Connection:
    """The way to the cluster. Ends with exit code 2 if there is none."""
    from dray.client.kubeconfig import KubeconfigError, find_connection

    try:
        return find_connection(kubeconfig, context)
    except KubeconfigError as error:
        output.fail(str(error))


def run(component: Component, connection: Connection) -> None:
    """Runs a component until it is told to stop. Ends with exit code 2 if it cannot go on."""
    import uvloop

    from dray.server import logs

    logs.configure(json=False, verbosity=0)
    problem = uvloop.run(_run(component, connection))
    if problem:
        output.fail(problem)


async def _run(component: Component, connection: Connection) -> str:
    """Why the component ended; empty if it was told to."""
    from dray.api.status import ApiError
    from dray.client.http import HttpClient
    from dray.client.kubeconfig import KubeconfigError
    from dray.reconcile import RealClock
    from dray.reconcile.leader import LeadershipLost

    try:
        client = HttpClient(connection, agent=f"dray {component.name}")
    except KubeconfigError as error:
        return str(error)
    async with client:
        loop = asyncio.get_running_loop()
        task = loop.create_task(_lead(component, client, RealClock()))
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, task.cancel)
        try:
            print(f"dray {component.name} · {connection.server}", flush=True)
            await task
        except asyncio.CancelledError:
            return ""
        except LeadershipLost as error:
            return f"{component.name} stopped: {error}. Start it again to compete for the lease."
        except (ApiError, OSError, TimeoutError) as error:
            return f"{component.name} stopped: {connection.server}: {error}"
    return ""


async def _lead(component: Component, client: Client, clock: Clock) -> None:
    from dray.reconcile.leader import LeaderElector

    if not component.lease:
        await component.work(client, clock)
        return
    identity = f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}"
    elector = LeaderElector(client, component.lease, identity, clock)

    async def leading() -> None:
        print(f"leading as {identity}", flush=True)
        await component.work(client, clock)

    await elector.run(leading)
