"""`dray node`: the node agent, for DRA drivers and the pods that use their devices."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dray.cli import component, output, server_options
from dray.cli.running_cluster import RunningCluster
from dray.files import home

DEFAULT_ROOT = Path("/var/lib/dray-node")
LARGEST_ID = 2**32 - 1
DEFAULT_CDI = (Path("/etc/cdi"), Path("/var/run/cdi"))


class PodNetwork(StrEnum):
    """What pods see of the network that do not ask for the machine's."""

    HOST = "host"
    NONE = "none"


class RuntimeName(StrEnum):
    """What runs containers."""

    PROCESS = "process"
    NONE = "none"


def run(
    name: Annotated[str, typer.Option("--name", help="The node's name; by default the host's.")] = "",
    *,
    cluster: RunningCluster,
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
    container_user: Annotated[
        str,
        typer.Option(
            "--container-user",
            metavar="UID[:GID]",
            help="Who containers run as that do not say (runAsUser); by default the agent's own user.",
        ),
    ] = "",
    container_ids: Annotated[
        str,
        typer.Option(
            "--container-ids",
            metavar="FIRST-LAST",
            help="The users and groups that pods may ask for, besides --container-user; others are refused.",
        ),
    ] = "",
    pod_network: Annotated[
        PodNetwork,
        typer.Option(
            "--pod-network", help="Pods without hostNetwork use the machine's network, or have only a loopback device."
        ),
    ] = PodNetwork.HOST,
    most_processes: Annotated[
        int,
        typer.Option(
            "--max-processes",
            metavar="N",
            show_default=False,
            help="How many processes and threads a container can have, where control groups can be; by default 4096.",
            min=0,
        ),
    ] = 0,
    cdi_vendors: Annotated[
        list[str] | None,
        typer.Option(
            "--cdi-vendor",
            metavar="DRIVER=VENDOR",
            help="Lets a driver name CDI devices of a vendor that is not named after it; may be given more than once.",
        ),
    ] = None,
    address: Annotated[str, typer.Option("--node-ip", help="The node's address; by default found out.")] = "",
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            help="Where logs, commands and ports of pods are served: 0 for a free port, -1 for nowhere; "
            "by default 10250, or a free one if that is taken.",
            min=-1,
            max=65535,
        ),
    ] = None,
    client_authority: Annotated[
        Path | None,
        typer.Option(
            "--client-ca-file", help="Who signs certificates of clients; by default the kubeconfig's authority."
        ),
    ] = None,
    serving_certificate: Annotated[
        Path | None, typer.Option("--tls-cert-file", help="The certificate to serve with; by default the agent's own.")
    ] = None,
    serving_key: Annotated[Path | None, typer.Option("--tls-private-key-file", help="Its key.")] = None,
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
    from dray.node.options import MOST_PROCESSES, Options
    from dray.process import switches
    from dray.validation import pod

    name = name or socket.gethostname().lower()
    problems = names.validate_dns1123_subdomain(name)
    if problems:
        output.fail(f"--name {name!r} cannot be a node's name: {problems[0]}")
    try:
        disabled = switches.disabled_gates(feature_gates)
    except switches.SwitchError as error:
        output.fail(str(error))
    if (serving_certificate is None) != (serving_key is None):
        output.fail("--tls-cert-file and --tls-private-key-file go together")
    cluster.connect()  # says what is wrong with it, if something is
    options = Options(
        name=name,
        root=str(home.expand(root).absolute()),
        cdi=tuple(str(path.absolute()) for path in cdi_directories or DEFAULT_CDI),
        runtime=runtime.value,
        kubeconfig=str(cluster.kubeconfig.absolute()) if cluster.kubeconfig is not None else None,
        context=cluster.context,
        address=address,
        metrics_bind=metrics_bind,
        metrics_port=metrics_port,
        wipe_delay=wipe_delay,
        handle_claims=pod.GATE not in disabled,
        port=port,
        client_authority=_readable(client_authority, "--client-ca-file"),
        serving_certificate=_readable(serving_certificate, "--tls-cert-file"),
        serving_key=_readable(serving_key, "--tls-private-key-file"),
        container_user=_user(container_user),
        container_ids=_ids(container_ids, container_user),
        pod_network=pod_network.value,
        most_processes=most_processes or MOST_PROCESSES,
        cdi_vendors=_vendors(cdi_vendors or ()),
    )
    _become_agent(msgspec.json.encode(options).decode())


def _readable(path: Path | None, option: str) -> str:
    """The absolute path of a file that can be read; empty for none."""
    if path is None:
        return ""
    try:
        path.open("rb").close()
    except OSError as error:
        output.fail(f"{option} {path}: {error.strerror}")
    return str(path.absolute())


def _user(text: str) -> tuple[int, int] | None:
    """User and group; a group that is not given has the user's number."""
    if not text:
        return None
    user, colon, group = text.partition(":")
    numbers = [user, group] if colon else [user, user]
    if not all(number.isascii() and number.isdigit() and int(number) < LARGEST_ID for number in numbers):
        output.fail(f"--container-user {text!r} must be UID or UID:GID, as numbers")
    return int(numbers[0]), int(numbers[1])


def _ids(text: str, container_user: str) -> tuple[int, int] | None:
    """The first and the last of a range of users and groups."""
    if not text:
        return None
    first, _, last = text.partition("-")
    if not all(number.isascii() and number.isdigit() and int(number) < LARGEST_ID for number in (first, last)):
        output.fail(f"--container-ids {text!r} must be FIRST-LAST, as numbers, such as 100000-165535")
    if not container_user:
        output.fail("--container-ids needs --container-user: pods that do not say who they are would run as the agent")
    return int(first), int(last)


def _vendors(texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """By driver, the vendors that it may name."""
    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        driver, equals, vendor = text.partition("=")
        if not (driver and equals and vendor):
            output.fail(f"--cdi-vendor {text!r} must be DRIVER=VENDOR, such as gpu.example.com=vendor.example.org")
        found[driver] = (*found.get(driver, ()), vendor)
    return found


def _become_agent(options: str) -> None:
    """This process goes on as the agent, without what the command line needed."""
    sys.stdout.flush()
    # gRPC would log every connection that a driver ends; what matters is in the agent's own log.
    environment = {"GRPC_VERBOSITY": "NONE", **os.environ}
    os.execve(sys.executable, [sys.executable, "-m", "dray.node", options], environment)
