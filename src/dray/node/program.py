"""The agent as a program: from options to the end."""

from __future__ import annotations

import asyncio
import logging
import signal
from pathlib import Path
from typing import Final

import uvloop

from dray.api.status import ApiError
from dray.cdi import Cache
from dray.client.http import HttpClient
from dray.client.kubeconfig import Connection, KubeconfigError, find_connection
from dray.node.agent import Agent, AgentError, NodeSettings
from dray.node.endpoints.server import EndpointSettings
from dray.node.node_object import MAX_PODS
from dray.node.options import Options
from dray.node.runtime import Runtime
from dray.node.runtime.machine import find_machine
from dray.node.runtime.none import NoRuntime
from dray.node.runtime.process import ProcessRuntime
from dray.process import logs, memory, open_files
from dray.reconcile import Clock, RealClock

FEW_FILES: Final = 4 * MAX_PODS
"""A container takes a descriptor while it runs and some more while it starts; a driver takes one per connection."""

log = logging.getLogger(__name__)


def run(options: Options) -> str:
    """Runs the agent until it is told to stop; why it cannot go on, if it cannot."""
    logs.configure()
    memory.give_back_large_blocks()
    try:
        return uvloop.run(_run(options, find_connection(options.kubeconfig, options.context)))
    except KubeconfigError as error:
        return str(error)


async def _run(options: Options, connection: Connection) -> str:
    """Why the agent ended; empty if it was told to."""
    settings = NodeSettings(
        name=options.name,
        root=Path(options.root),
        address=options.address,
        wipe_delay=options.wipe_delay,
        metrics_address=options.metrics_bind,
        metrics_port=options.metrics_port,
        handle_claims=options.handle_claims,
        cdi_vendors=options.cdi_vendors,
        endpoints=_endpoints(options, connection),
    )
    clock = RealClock()
    async with HttpClient(connection, agent="dray node") as client:
        try:
            runtime = _runtime(options, clock)
            open_files.raise_limit(FEW_FILES, f"{MAX_PODS} pods")
            agent = Agent(settings, client, runtime, clock)
            loop = asyncio.get_running_loop()
            task = loop.create_task(agent.run())
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, task.cancel)
            await _announce(agent, task, connection)
            await task
        except asyncio.CancelledError:
            return ""
        except AgentError as error:
            return str(error)
        except (ApiError, OSError) as error:
            return f"node {settings.name} stopped: {connection.server}: {error}"
    return ""


def _endpoints(options: Options, connection: Connection) -> EndpointSettings | None:
    """Raises OSError."""
    if options.port == -1:
        return None
    given = Path(options.client_authority).read_bytes() if options.client_authority else None
    own = (Path(options.serving_certificate), Path(options.serving_key)) if options.serving_certificate else None
    return EndpointSettings(
        port=options.port,
        authority=given or connection.authority,
        certificate=own[0] if own else None,
        key=own[1] if own else None,
    )


def _runtime(options: Options, clock: Clock) -> Runtime:
    """Raises AgentError. The machine is looked at before anything is changed: containers start as the agent did."""
    if options.runtime == NoRuntime.name:
        return NoRuntime(clock)
    try:
        machine = find_machine(
            options.container_user, options.container_ids, options.pod_network, options.most_processes
        )
    except OSError as error:
        raise AgentError(
            f"cannot find out what containers can have on this machine: {error.strerror}. Start the agent again."
        ) from None
    if not machine.is_root and options.container_user is not None:
        raise AgentError("only root can run containers as another user. Leave --container-user out, or be root.")
    for missing in machine.shortcomings():
        log.warning("%s", missing)
    try:
        return ProcessRuntime(Path(options.root), Cache(map(Path, options.cdi)), clock, machine)
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        raise AgentError(f"cannot use {options.root} as root directory: {what}. Give another --root.") from None


async def _announce(agent: Agent, task: asyncio.Task[None], connection: Connection) -> None:
    """Says that the node is ready, once it is."""
    ready = asyncio.get_running_loop().create_task(agent.ready.wait())
    await asyncio.wait({ready, task}, return_when=asyncio.FIRST_COMPLETED)
    if not ready.done():
        ready.cancel()
        return
    port = agent.metrics_port
    metrics = f" · metrics http://{agent.settings.metrics_address}:{port}/metrics" if port is not None else ""
    print(f"dray node {agent.settings.name} · {connection.server} · ready{metrics}", flush=True)
