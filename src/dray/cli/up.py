"""`dray up`: a whole cluster in one process, on a state directory; the same state again when started again."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from dray.cli import (
    clusters,
    completion,
    controller_options,
    detached,
    hub_options,
    kubeconfig_merge,
    output,
    server,
    server_options,
)
from dray.cli import controllers as controllers_command
from dray.prose.wording import count

if TYPE_CHECKING:
    from dray.all_in_one import Cluster, ClusterSettings
    from dray.live.overview import Totals
    from dray.simulation import Profile

DEFAULT_PROFILE = "gpu-8"
PROFILES = ("cpu-only", "gpu-8", "gpu-nic", "mig", "network-fpga")
"""Those that come with dray; a test knows that none is missing."""
LIVE_SECONDS = 0.5
LOG_SECONDS = 5.0


class Manner(NamedTuple):
    """How to go on once the cluster is ready."""

    background: detached.Background | None
    merge_kubeconfig: bool


def run(
    name: Annotated[str, clusters.name_argument(completion.stopped)] = clusters.DEFAULT,
    directory: clusters.Directory = None,
    *,
    options: server_options.ServerOptions,
    nodes: Annotated[
        int, typer.Option(help="Simulated nodes to have; those of an earlier start stay.", min=0, max=100_000)
    ] = 0,
    profile: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE",
            help=f"What kind of machines to simulate: {', '.join(PROFILES)}, or a file.",
            autocompletion=completion.profiles,
        ),
    ] = DEFAULT_PROFILE,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Go on in the background once it is ready; dray down stops it.")
    ] = False,
    merge_kubeconfig: Annotated[
        bool,
        typer.Option("--merge-kubeconfig", help="Add the context dray-NAME to $KUBECONFIG or ~/.kube/config, too."),
    ] = False,
    cluster: hub_options.Cluster = "",
    hub: hub_options.Hub = None,
    hub_lease: hub_options.HubLease = hub_options.DEFAULT_LEASE,
    controllers: controllers_command.Controllers = "*",
    evictions: controller_options.EvictionOptions,
    filter_timeout: server_options.FilterTimeout = 10.0,
) -> None:
    """Run a whole cluster: API server, scheduler, controllers and, with --nodes, simulated nodes.

    kubectl works with the kubeconfig that it writes. Ctrl-C stops it, or dray down; started again, it goes on where it
    was.
    """
    started = time.monotonic()
    import uvloop

    from dray.all_in_one import ClusterSettings

    where = clusters.LocalCluster(directory=clusters.directory_of(name, directory))
    machines = _profile(profile)  # a name that is wrong is told, with --nodes or without
    plan = ClusterSettings(
        server=options.settings(where.directory),
        controllers=controllers_command.read_list(controllers),
        settings=evictions.settings(options.feature_gates),
        filter_seconds=filter_timeout,
        nodes=nodes,
        profile=machines if nodes else None,
        membership=hub_options.membership(cluster, hub, hub_lease),
    )
    options.configure_logs()
    manner = Manner(detached.detach() if detach else None, merge_kubeconfig=merge_kubeconfig)
    uvloop.run(_run(plan, manner, started))


def _profile(name: str) -> Profile:
    from dray.simulation import ProfileError, load_profile

    try:
        return load_profile(name)
    except ProfileError as error:
        output.fail(f"--profile: {error}")


async def _run(plan: ClusterSettings, manner: Manner, started: float) -> None:
    from dray.process import open_files
    from dray.process.watchdog import watched

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    open_files.raise_limit(server_options.FEW_FILES, "many clients")
    cluster = await _start(plan, started)
    try:
        with clusters.remembered(plan.server.directory):
            _announce_ways_in(cluster, manner)
            if manner.background is not None:
                manner.background.ready(plan.server.directory / clusters.LOG_FILE)
            with watched(cluster.instance.metrics.registry):
                await (_show_live if sys.stdout.isatty() else _log_lines)(cluster, stop)
    finally:
        await cluster.stop()


async def _start(plan: ClusterSettings, started: float) -> Cluster:
    """A cluster that is ready, announced. Ends the process with a message if that cannot be."""
    from dray.all_in_one import Cluster
    from dray.api.status import ApiError
    from dray.process import garbage, memory
    from dray.server.security.state_directory import StateDirectoryError
    from dray.simulation.registration import RegistrationError
    from dray.store import StoreError

    memory.give_back_large_blocks()
    with garbage.loading():
        try:
            cluster = Cluster(plan)
        except (StateDirectoryError, StoreError) as error:
            output.fail(str(error))
        try:
            await cluster.start_server()
            _announce_server(cluster, time.monotonic() - started)
            await cluster.start_components()
        except (OSError, StateDirectoryError, StoreError) as error:
            await cluster.stop()
            output.fail(server.explain_start(error, plan.server))
        except (RegistrationError, ApiError) as error:
            await cluster.stop()
            output.fail(f"cannot simulate the nodes of profile {plan.profile.name if plan.profile else ''}: {error}")
    announce_components(cluster, await cluster.totals())
    return cluster


def _announce_server(cluster: Cluster, seconds: float) -> None:
    from dray import __version__

    directory = output.short_path(cluster.plan.server.directory)
    print(f"dray {__version__} · state {directory} · kubeconfig written")
    print(f"  {'API server':<12} {cluster.instance.url:<24} ready in {seconds:.1f} s", flush=True)


def announce_components(cluster: Cluster, totals: Totals) -> None:
    """What runs besides the server, and whether it has read what there is: thousands of nodes take a while."""
    starts = "still starting: they read what there is"
    state = "running" if cluster.has_started else starts if cluster.leads else f"standing by for {cluster.leader}"
    print(f"  {'scheduler, ' + count(len(cluster.manager.controllers), 'controller'):<37} {state}")
    simulated = cluster.simulator.count
    if simulated:
        machines = f"{count(simulated, 'simulated node')}, {count(totals.devices, 'device')}"
        print(f"  {machines:<37} {'ready' if cluster.has_started or not cluster.leads else 'not all ready yet'}")
    if cluster.plan.membership is not None:
        print(f"  {'hub':<12} {cluster.plan.membership.hub.server:<24} joining as {cluster.plan.membership.cluster}")


def _announce_ways_in(cluster: Cluster, manner: Manner) -> None:
    """How to reach the cluster, and how to stop it if nobody stays to press Ctrl-C."""
    here = clusters.LocalCluster(directory=cluster.plan.server.directory)
    kubectl = "kubectl"
    if manner.merge_kubeconfig:
        into = kubeconfig_merge.target()
        try:
            kubeconfig_merge.merge(here.kubeconfig, here.context, into)
        except kubeconfig_merge.MergeError as error:
            print(f"dray: --merge-kubeconfig: {error}.", file=sys.stderr)
        else:
            kubectl = f"kubectl --context {here.context}"
    print(f"\n  {'dashboard':<12} {cluster.dashboard_link()}   (logs you in once, within an hour)")
    if kubectl == "kubectl":
        print(f"\n  export KUBECONFIG={output.short_path(here.kubeconfig)}", end="")
    print(f"\n  {kubectl} get resourceslices\n", flush=True)
    if manner.background is not None:
        of = here.name if here.directory.parent == clusters.place() else f"--dir {here.directory}"
        log = output.short_path(here.directory / clusters.LOG_FILE)
        print(f"It runs in the background (log {log}). Stop it with: dray down {of}".removesuffix(" default"))


async def _show_live(cluster: Cluster, stop: asyncio.Event) -> None:
    """One line at the bottom of the terminal that keeps up with the cluster."""
    from rich.live import Live
    from rich.text import Text

    async def line() -> Text:
        return Text(f"{await _line(cluster)}   (Ctrl-C stops)", no_wrap=True, overflow="ellipsis")

    with Live(await line(), console=output.console(), auto_refresh=False) as live:
        while not await _within(LIVE_SECONDS, stop):
            live.update(await line(), refresh=True)
        live.update(Text(f"{await _line(cluster)}   stopping"), refresh=True)


async def _log_lines(cluster: Cluster, stop: asyncio.Event) -> None:
    """A line every few seconds, if there is anything new."""
    last = ""
    while True:
        line = await _line(cluster)
        if line != last:
            print(line, flush=True)
            last = line
        if await _within(LOG_SECONDS, stop):
            return


async def _line(cluster: Cluster) -> str:
    if not cluster.leads:
        return f"standing by: {cluster.leader or 'nobody'} runs scheduler and controllers"
    problems = "".join(f" · {name}: {problem}" for name, problem in cluster.problems().items())
    return f"{await cluster.totals()}{problems}"


async def _within(seconds: float, event: asyncio.Event) -> bool:
    """Whether an event happens in so many seconds."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
