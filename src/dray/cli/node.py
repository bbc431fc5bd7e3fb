"""`dray node`: the node agent, for DRA drivers and the pods that use their devices."""

from __future__ import annotations

import os
import socket
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dray.cli import component, output, server_options

DEFAULT_ROOT = Path("/var/lib/dray-node")
DEFAULT_CDI = (Path("/etc/cdi"), Path("/var/run/cdi"))


class RuntimeName(StrEnum):
    """What runs containers."""

    PROCESS = "process"
    NONE = "none"


def run(
    name: Annotated[str, typer.Option("--name", help="The node's name; by default the host's.")] = "",
    kubeconfig: component.Kubeconfig = None,
    context: component.Context = "",
    root: Annotated[
        Path, typer.Option("--root", help="The agent's directory, as /var/lib/kubelet is a kubelet's; made if absent.")
    ] = DEFAULT_ROOT,
    cdi_directories: Annotated[
        list[Path] | None,
        typer.Option("--cdi-dir", help="Where drivers write CDI specs; may be given more than once."),
    ] = None,
    runtime: Annotated[
        RuntimeName, typer.Option("--runtime", help="Containers as local processes, or not at all.")
    ] = RuntimeName.PROCESS,
    address: Annotated[str, typer.Option("--node-ip", help="The node's address; by default found out.")] = "",
    metrics_port: component.MetricsPort = None,
    metrics_bind: component.MetricsBind = "127.0.0.1",
    wipe_delay: Annotated[
        float,
        typer.Option("--slice-wipe-delay", help="Seconds after which the slices of a driver that is away go.", min=0),
    ] = 30.0,
    feature_gates: server_options.FeatureGates = "",
) -> None:
    """Run a node agent: registers the node, serves DRA drivers, prepares claims, runs pods.

    Give it the kubeconfig of a node (`dray node-kubeconfig`) or of an admin. Containers go on when it ends; started
    again, it goes on where it was.
    """
    import msgspec

    from dray.api import names
    from dray.node.options import Options
    from dray.server import switches
    from dray.validation import pod

    name = name or socket.gethostname().lower()
    problems = names.validate_dns1123_subdomain(name)
    if problems:
        output.fail(f"--name {name!r} cannot be a node's name: {problems[0]}")
    try:
        disabled = switches.disabled_gates(feature_gates)
    except switches.SwitchError as error:
        output.fail(str(error))
    component.connect(kubeconfig, context)  # says what is wrong with it, if something is
    options = Options(
        name=name,
        root=str(root.expanduser().absolute()),
        cdi=tuple(str(path.absolute()) for path in cdi_directories or DEFAULT_CDI),
        runtime=runtime.value,
        kubeconfig=str(kubeconfig.absolute()) if kubeconfig is not None else None,
        context=context,
        address=address,
        metrics_bind=metrics_bind,
        metrics_port=metrics_port,
        wipe_delay=wipe_delay,
        handle_claims=pod.GATE not in disabled,
    )
    _become_agent(msgspec.json.encode(options).decode())


def _become_agent(options: str) -> None:
    """This process goes on as the agent, without what the command line needed."""
    sys.stdout.flush()
    # gRPC would log every connection that a driver ends; what matters is in the agent's own log.
    environment = {"GRPC_VERBOSITY": "NONE", **os.environ}
    os.execve(sys.executable, [sys.executable, "-m", "dray.node", options], environment)
