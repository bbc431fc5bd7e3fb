"""Running one component alone, against any API server: the way in, leader election, health and metrics, a clean end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec
import typer

from dray.api.well_known import OWN_SERVER
from dray.cli import output
from dray.cli.option_groups import OptionGroup

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from dray.client.http import HttpClient
    from dray.client.kubeconfig import Connection
    from dray.reconcile import Clock

log = logging.getLogger(__name__)

MetricsPort: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        help="Serve /metrics, /healthz, /livez and /readyz here; 0 takes a free port.",
        min=0,
        max=65535,
    ),
]
MetricsBind: TypeAlias = Annotated[
    str, typer.Option("--bind", metavar="ADDRESS", help="Address for --metrics-port. Whoever reaches it may read.")
]


class ComponentOptions(OptionGroup, frozen=True):
    """What every component that others stand by for can be told."""

    leader_elect: Annotated[bool, typer.Option(help="Work only while holding the lease; others wait.")] = True
    lease_seconds: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="So long nobody works after the one with the lease was killed; who cannot renew it for most of that "
            "stands by. By default 2 on dray's server, 15 on others.",
            min=2,
            max=3600,
        ),
    ] = None
    metrics_port: MetricsPort = None
    bind: MetricsBind = "127.0.0.1"
    verbosity: Annotated[
        int, typer.Option("--verbosity", "-v", help="1 logs details, 4 every pod, 5 every step of it.", min=0)
    ] = 0


Work = Callable[[], Coroutine[Any, Any, None]]
"""Until cancelled."""


class Duties(msgspec.Struct, frozen=True):
    """What a component does: `lead`, which may be called again, is the work; `follow` runs all the time, and keeps what
    is known of the cluster current, so that whoever takes over has nothing to list first."""

    lead: Work
    follow: Work | None = None


class Component(msgspec.Struct, frozen=True):
    """What to run: `lease`, with or without its namespace, is what replicas compete for, if they do.

    `duties` are there for as long as the component runs. `problems` says, by part, why it is not ready; an empty text
    if it is.
    """

    name: str
    duties: Callable[[HttpClient, Clock], contextlib.AbstractAsyncContextManager[Duties]]
    registry: CollectorRegistry
    problems: Callable[[], Mapping[str, str]]
    lease: str
    options: ComponentOptions


def run(component: Component, connection: Connection) -> None:
    """Runs a component until it is told to stop. Ends with exit code 2 if it cannot go on."""
    import uvloop

    from dray.process import logs

    logs.configure(json=False, verbosity=component.options.verbosity)
    problem = uvloop.run(_run(component, connection))
    if problem:
        output.fail(problem)


async def _run(component: Component, connection: Connection) -> str:
    """Why the component ended; empty if it was told to."""
    from dray.api.status import ApiError
    from dray.client.http import HttpClient
    from dray.client.kubeconfig import KubeconfigError
    from dray.process.watchdog import watched
    from dray.reconcile import RealClock

    try:
        client = HttpClient(connection, agent=f"dray {component.name}")
    except KubeconfigError as error:
        return str(error)
    async with client, _endpoints(component) as problem:
        if problem:
            return problem
        loop = asyncio.get_running_loop()
        task = loop.create_task(_work(component, client, RealClock()))
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, task.cancel)
        try:
            print(f"dray {component.name} · {connection.server}", flush=True)
            with watched(component.registry):
                await task
        except asyncio.CancelledError:
            return ""
        except (ApiError, OSError, TimeoutError) as error:
            return f"{component.name} stopped: {connection.server}: {error}"
    return ""


@contextlib.asynccontextmanager
async def _endpoints(component: Component) -> AsyncIterator[str]:
    """Health and metrics, if they are wanted; gives what is in the way, empty if nothing is."""
    from dray.process.component_endpoints import ComponentEndpoints

    bind, wanted = component.options.bind, component.options.metrics_port
    if wanted is None:
        yield ""
        return
    endpoints = ComponentEndpoints(component.registry, component.problems)
    try:
        try:
            port = await endpoints.start(bind, wanted)
        except OSError as error:
            yield f"--metrics-port: cannot listen on {bind}:{wanted}: {error.strerror or error}."
            return
        host = f"[{bind}]" if ":" in bind else bind
        print(f"metrics http://{host}:{port}/metrics", flush=True)
        yield ""
    finally:
        await endpoints.stop()


async def _work(component: Component, client: HttpClient, clock: Clock) -> None:
    from dray.process.tasks import run_until_first

    async with component.duties(client, clock) as duties:
        leading = _lead(component, duties.lead, client, clock) if component.options.leader_elect else duties.lead()
        await (leading if duties.follow is None else run_until_first(duties.follow(), leading))


async def _lead(component: Component, lead: Work, client: HttpClient, clock: Clock) -> None:
    from dray.reconcile import leader
    from dray.reconcile.leader import NAMESPACE, LeaderElector, LeadershipLost

    identity = f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}"
    namespace, _, name = component.lease.rpartition("/")

    def say(reason: str) -> None:
        print(f"waiting for lease {namespace or NAMESPACE}/{name}: {reason}", flush=True)

    seconds = component.options.lease_seconds or await _default_lease_seconds(client, clock, say)
    elector = LeaderElector(
        client,
        name,
        identity,
        clock,
        lease_seconds=seconds,
        longest=leader.USUAL_SECONDS if component.options.lease_seconds is None else 0,
        renew=leader.SHORT_RENEW_SECONDS if seconds == leader.SHORT_SECONDS else None,
        namespace=namespace or NAMESPACE,
        on_wait=say,
    )

    async def leading() -> None:
        print(f"leading as {identity}", flush=True)
        await lead()

    while True:
        try:
            await elector.run(leading)
            return
        except LeadershipLost as error:  # the work has ended; somebody else may do it, or nobody if the server is away
            print(f"standing by: {error}", flush=True)


async def _default_lease_seconds(client: HttpClient, clock: Clock, say: Callable[[str], None]) -> int:
    """How long a lease is, by whose server it is. It is waited for; one that does not tell is none of ours."""
    from dray.api.status import ApiError
    from dray.reconcile.leader import SHORT_SECONDS, USUAL_SECONDS

    told = ""
    while True:
        try:
            is_ours = OWN_SERVER in await client.server_version()
        except (ApiError, OSError, TimeoutError) as error:
            if isinstance(error, ApiError) and error.code in (401, 403, 404):
                return USUAL_SECONDS
            if str(error) != told:
                told = str(error)
                say(told)
            await clock.sleep(SHORT_SECONDS)
        else:
            return SHORT_SECONDS if is_ours else USUAL_SECONDS
