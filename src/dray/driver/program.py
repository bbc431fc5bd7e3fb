"""`driver.run`: a driver as a program, with the options that every driver needs."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from dray.client.http import HttpClient
from dray.client.kubeconfig import Connection, KubeconfigError, find_connection
from dray.driver import sockets
from dray.driver.driver import Driver
from dray.driver.errors import DriverError
from dray.driver.runner import CDI_DIR, Runner, Settings
from dray.process import logs
from dray.process.tasks import cancel_all

CANNOT = 2

log = logging.getLogger(__name__)


def run(driver: Driver, arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs a driver until SIGTERM or SIGINT, with options from the command line (or `arguments`).

    Exits with code 0 when told to stop, and with 2 and one line on standard error when it cannot go on.
    """
    options = _parser(driver).parse_args(arguments)
    logs.configure(json=options.log_format == "json", verbosity=options.verbose)
    try:
        connection = find_connection(options.kubeconfig, options.context)
        asyncio.run(_run(driver, _settings(options), connection))
    except (DriverError, KubeconfigError) as error:
        print(f"{driver.name or type(driver).__name__}: {error}", file=sys.stderr)
        raise SystemExit(CANNOT) from None
    except KeyboardInterrupt:
        pass
    raise SystemExit(0)


def _parser(driver: Driver) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=f"The DRA driver {driver.name}.", allow_abbrev=False)
    parser.add_argument("--node-name", default=os.environ.get("NODE_NAME", ""), help="this node; default $NODE_NAME")
    parser.add_argument(
        "--kubeconfig", type=Path, help="the cluster; default $KUBECONFIG, ~/.kube/config, or the pod's"
    )
    parser.add_argument("--context", default="", help="which context of the kubeconfig")
    parser.add_argument(
        "--plugin-dir",
        type=Path,
        default=_from_environment("PLUGIN_DIR", sockets.PLUGINS_DIR / driver.name),
        help="the driver's own directory; default $PLUGIN_DIR, or %(default)s",
    )
    parser.add_argument(
        "--registry-dir",
        type=Path,
        default=_from_environment("REGISTRY_DIR", sockets.REGISTRY_DIR),
        help="where the node looks for drivers; default $REGISTRY_DIR, or %(default)s",
    )
    parser.add_argument(
        "--cdi-dir",
        type=Path,
        default=_from_environment("CDI_DIR", CDI_DIR),
        help="where CDI specs go; default $CDI_DIR, or %(default)s",
    )
    parser.add_argument(
        "--instance",
        default=os.environ.get("POD_UID", ""),
        help="tells this instance from another that runs at once during an update; default $POD_UID",
    )
    parser.add_argument("--log-format", choices=("text", "json"), default="text")
    parser.add_argument("-v", "--verbose", action="count", default=0)
    return parser


def _from_environment(name: str, default: Path) -> Path:
    return Path(os.environ.get(name) or default)


def _settings(options: argparse.Namespace) -> Settings:
    return Settings(
        node=options.node_name,
        plugin_dir=options.plugin_dir,
        registry_dir=options.registry_dir,
        cdi_dir=options.cdi_dir,
        instance=options.instance,
    )


async def _run(driver: Driver, settings: Settings, connection: Connection) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with HttpClient(connection, agent=f"dray driver {driver.name}") as client:
        async with Runner(driver, settings, client) as runner:
            waiting = asyncio.ensure_future(runner.wait())
            stopping = asyncio.ensure_future(stop.wait())
            done, pending = await asyncio.wait({waiting, stopping}, return_when=asyncio.FIRST_COMPLETED)
            await cancel_all(pending)
            for task in done:
                task.result()
        log.info("driver stopped")
