"""The agent as a process of its own: `python -m dray.node OPTIONS`, with `Options` as JSON. `dray node` makes them.

The agent runs for months on every machine, so it does without the command line's libraries: they are a sixth of its
memory.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import msgspec
import uvloop

from dray.api.status import ApiError
from dray.cdi import Cache
from dray.client.http import HttpClient
from dray.client.kubeconfig import Connection, KubeconfigError, find_connection
from dray.node.agent import Agent, AgentError, Settings
from dray.node.runtime import Runtime
from dray.node.runtime.none import NoRuntime
from dray.node.runtime.process import ProcessRuntime
from dray.reconcile import Clock, RealClock
from dray.server import logs

CANNOT = 2


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says. Paths are absolute; `runtime` is `process` or `none`."""

    name: str
    root: str
    cdi: tuple[str, ...]
    runtime: str
    kubeconfig: str | None
    context: str
    address: str
    metrics_bind: str
    metrics_port: int | None
    wipe_delay: float
    handle_claims: bool


def main() -> None:
    """Runs the agent until it is told to stop. Ends with exit code 2 if it cannot go on."""
    options = msgspec.json.decode(sys.argv[1], type=Options)
    logs.configure()
    try:
        problem = uvloop.run(_run(options, find_connection(options.kubeconfig, options.context)))
    except KubeconfigError as error:
        problem = str(error)
    if problem:
        print(f"dray: {problem}", file=sys.stderr)
        raise SystemExit(CANNOT)


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


if __name__ == "__main__":
    main()
