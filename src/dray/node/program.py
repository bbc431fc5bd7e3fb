"""The agent as a program: from options to the end."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import uvloop

from dray.api.status import ApiError
from dray.cdi import Cache
from dray.client.http import HttpClient
from dray.client.kubeconfig import Connection, KubeconfigError, find_connection
from dray.node.agent import Agent, AgentError, Settings
from dray.node.options import Options
from dray.node.runtime import Runtime
from dray.node.runtime.none import NoRuntime
from dray.node.runtime.process import ProcessRuntime
from dray.reconcile import Clock, RealClock
from dray.server import logs


def run(options: Options) -> str:
    """Runs the agent until it is told to stop; why it cannot go on, if it cannot."""
    logs.configure()
    try:
        return uvloop.run(_run(options, find_connection(options.kubeconfig, options.context)))
    except KubeconfigError as error:
        return str(error)


async def _run(options: Options, connection: Connection) -> str:
    """Why the agent ended; empty if it was told to."""
    settings = Settings(
        name=options.name,
        root=Path(options.root),
        address=options.address,
        wipe_delay=options.wipe_delay,
        metrics_address=options.metrics_bind,
        metrics_port=options.metrics_port,
        handle_claims=options.handle_claims,
    )
    clock = RealClock()
    async with HttpClient(connection, agent="dray node") as client:
        try:
            agent = Agent(settings, client, _runtime(options, clock), clock)
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


def _runtime(options: Options, clock: Clock) -> Runtime:
    if options.runtime == NoRuntime.name:
        return NoRuntime(clock)
    return ProcessRuntime(Path(options.root), Cache(map(Path, options.cdi)), clock)


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
