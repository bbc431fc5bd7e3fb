"""`dray server`: the API server alone, on a state directory."""

from __future__ import annotations

import asyncio
import errno
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dray.cli import output, server_options

if TYPE_CHECKING:
    from dray.server.instance import Instance, Settings


def run(
    directory: server_options.Directory = server_options.DEFAULT_DIRECTORY,
    port: server_options.Port = 6443,
    bind: server_options.Bind = "127.0.0.1",
    token_file: server_options.TokenFile = None,
    feature_gates: server_options.FeatureGates = "",
    runtime_config: server_options.RuntimeConfig = "",
    audit_log: Annotated[
        Path | None, typer.Option("--audit-log", help="File to append one audit event per request to, as JSON lines.")
    ] = None,
    log_format: server_options.LogFormat = output.Format.TEXT,
    verbosity: server_options.Verbosity = 0,
    insecure_http: Annotated[
        bool, typer.Option("--insecure-http", help="Plain HTTP instead of TLS; only on a loopback address.")
    ] = False,
) -> None:
    """Run the API server. kubectl works with the kubeconfig that it writes."""
    import uvloop

    from dray.server import logs, switches
    from dray.server.instance import Settings
    from dray.server.security.token_file import TokenFileError, read_token_file

    if insecure_http and not bind.startswith(("127.", "localhost", "::1")):
        output.fail(
            f"--insecure-http: plain HTTP is served on loopback only, not on {bind}. Use TLS, or --bind 127.0.0.1."
        )
    try:
        settings = Settings(
            directory=directory.expanduser(),
            bind=bind,
            port=port,
            tls=not insecure_http,
            tokens=read_token_file(token_file) if token_file else {},
            disabled_gates=switches.disabled_gates(feature_gates),
            disabled_versions=switches.disabled_versions(runtime_config),
            audit_log=audit_log,
            log_requests=verbosity >= logs.REQUESTS_FROM,
        )
    except (TokenFileError, switches.SwitchError) as error:
        output.fail(str(error))
    logs.configure(json=log_format is output.Format.JSON, verbosity=verbosity)
    uvloop.run(_serve(settings))


async def _serve(settings: Settings) -> None:
    from dray.server import garbage

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with garbage.loading():
        instance = await _start(settings)
    print(f"API server {instance.url}  kubeconfig {instance.kubeconfig}", flush=True)
    await stop.wait()
    await instance.stop()


async def _start(settings: Settings) -> Instance:
    """A server that listens. Ends the process with a message if that cannot be."""
    from dray.server.instance import Instance
    from dray.server.security.state_directory import StateDirectoryError
    from dray.store import StoreError

    try:
        instance = Instance(settings)
    except (StateDirectoryError, StoreError) as error:
        output.fail(str(error))
    try:
        await instance.start()
    except (OSError, StateDirectoryError, StoreError) as error:
        await instance.stop()
        output.fail(_explain(error, settings))
    return instance


def _explain(error: Exception, settings: Settings) -> str:
    """Why the server did not start, and what to do."""
    if not isinstance(error, OSError):
        return str(error)
    if error.filename is not None:
        return f"--audit-log: cannot write {error.filename}: {(error.strerror or str(error)).lower()}."
    if error.errno == errno.EADDRINUSE:
        return f"port {settings.port} is taken. Give --port, or --port 0 for a free one."
    reason = (error.strerror or str(error)).lower()
    return f"cannot listen on {settings.bind}:{settings.port}: {reason}. Give another --bind or --port."
