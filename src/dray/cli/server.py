"""`dray server`: the API server alone, on a state directory."""

from __future__ import annotations

import asyncio
import errno
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from dray.cli import clusters, output, server_options
from dray.files import home

if TYPE_CHECKING:
    from dray.dashboard.app import Dashboard
    from dray.server.instance import Instance, ServerSettings

MEGABYTE = 1024 * 1024


def run(
    directory: server_options.Directory,
    *,
    options: server_options.ServerOptions,
    enabled_plugins: Annotated[
        str,
        typer.Option(
            "--enable-admission-plugins",
            metavar="LIST",
            help="ServiceAccount: pods act as accounts, which must exist. It is off here and on in dray up, where a "
            "controller makes the accounts.",
        ),
    ] = "",
    disabled_plugins: Annotated[
        str,
        typer.Option(
            "--disable-admission-plugins", metavar="LIST", help="Of LimitRanger, PodSecurity, ServiceAccount."
        ),
    ] = "",
    audit_log: Annotated[
        Path | None,
        typer.Option(
            "--audit-log", "--audit-log-path", help="File to append one audit event per request to, as JSON lines."
        ),
    ] = None,
    audit_policy: Annotated[
        Path | None,
        typer.Option(
            "--audit-policy-file",
            help="Which requests are audited, and how much of them: a Policy of audit.k8s.io/v1. By default all but "
            "health checks and metrics, level Metadata.",
        ),
    ] = None,
    audit_max_size: Annotated[
        int, typer.Option("--audit-log-maxsize", help="Megabytes at which the audit log is renamed; 0: never.", min=0)
    ] = 0,
    audit_max_backup: Annotated[
        int, typer.Option("--audit-log-maxbackup", help="Renamed audit logs that are kept; 0: all.", min=0)
    ] = 0,
    audit_max_age: Annotated[
        int, typer.Option("--audit-log-maxage", help="Days that renamed audit logs are kept; 0: for ever.", min=0)
    ] = 0,
    shutdown_delay: Annotated[
        int,
        typer.Option(
            "--shutdown-delay-seconds",
            metavar="N",
            help="So long it goes on after SIGTERM, and /readyz says that it ends: balancers notice before it is gone.",
            min=0,
            max=600,
        ),
    ] = 0,
    insecure_http: Annotated[
        bool, typer.Option("--insecure-http", help="Plain HTTP instead of TLS; only on a loopback address.")
    ] = False,
) -> None:
    """Run the API server. kubectl works with the kubeconfig that it writes."""
    import uvloop

    from dray.server.observers.audit_file import Rotation
    from dray.server.observers.audit_policy import DEFAULT, AuditPolicyError, read_policy

    if audit_log is None and (audit_policy or audit_max_size or audit_max_backup or audit_max_age):
        output.fail("--audit-policy-file and --audit-log-max… need --audit-log: where to write to.")
    if insecure_http and not options.bind.startswith(("127.", "localhost", "::1")):
        output.fail(
            f"--insecure-http: plain HTTP is served on loopback only, not on {options.bind}. "
            "Use TLS, or --bind 127.0.0.1."
        )
    try:
        settings = replace(
            options.settings(home.expand(directory)),
            tls=not insecure_http,
            disabled_plugins=server_options.disabled_plugins(enabled_plugins, disabled_plugins),
            audit_log=audit_log,
            audit_policy=read_policy(audit_policy) if audit_policy else DEFAULT,
            audit_rotation=Rotation(audit_max_size * MEGABYTE, audit_max_backup, audit_max_age),
        )
    except AuditPolicyError as error:
        output.fail(str(error))
    options.configure_logs()
    uvloop.run(_serve(settings, shutdown_delay))


async def _serve(settings: ServerSettings, shutdown_delay: int) -> None:
    from dray.dashboard.app import PREFIX
    from dray.process import garbage, memory, open_files
    from dray.process.watchdog import watched

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    open_files.raise_limit(server_options.FEW_FILES, "many clients")
    memory.give_back_large_blocks()
    with garbage.loading():
        instance, dashboard = await _start(settings)
    print(f"API server {instance.url}  kubeconfig {instance.kubeconfig}", flush=True)
    print(f"dashboard {instance.url}{PREFIX}", flush=True)
    with watched(instance.metrics.registry), clusters.remembered(settings.directory):
        await stop.wait()
        instance.leave()
        await asyncio.sleep(shutdown_delay)
    await dashboard.close()
    await instance.stop()


async def _start(settings: ServerSettings) -> tuple[Instance, Dashboard]:
    """A server that listens, and its dashboard. Ends the process with a message if that cannot be."""
    from dray.all_in_one.dashboards import mount_dashboard
    from dray.process.clock import RealClock
    from dray.server.instance import Instance
    from dray.server.security.state_directory import StateDirectoryError
    from dray.store import StoreError

    try:
        instance = Instance(settings)
    except (StateDirectoryError, StoreError) as error:
        output.fail(str(error))
    dashboard = mount_dashboard(instance, RealClock())
    try:
        await instance.start()
    except (OSError, StateDirectoryError, StoreError) as error:
        await instance.stop()
        output.fail(explain_start(error, settings))
    return instance, dashboard


def explain_start(error: Exception, settings: ServerSettings) -> str:
    """Why the server did not start, and what to do."""
    if not isinstance(error, OSError):
        return str(error)
    if error.filename is not None:
        return f"--audit-log: cannot write {error.filename}: {(error.strerror or str(error)).lower()}."
    if error.errno == errno.EADDRINUSE:
        return f"port {settings.port} is taken. Give --port, or --port 0 for a free one."
    reason = (error.strerror or str(error)).lower()
    return f"cannot listen on {settings.bind}:{settings.port}: {reason}. Give another --bind or --port."
