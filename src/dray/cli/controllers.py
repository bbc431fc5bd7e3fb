"""`dray controllers`: the controllers alone, against dray's API server or any other."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer
from msgspec.structs import replace

from dray.api.well_known import CONTROLLERS_LEASE
from dray.cli import component, controller_options, output, server_options
from dray.cli.running_cluster import RunningCluster
from dray.files import home

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Metric

    from dray.client.http import HttpClient
    from dray.controllers import Manager
    from dray.reconcile import Clock

STOCK_LEASE = "kube-controller-manager"

OwnAccounts: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--use-service-account-credentials",
        help="Each controller acts as its own ServiceAccount in kube-system, with a token requested for it.",
    ),
]
Controllers: TypeAlias = Annotated[
    str,
    typer.Option("--controllers", metavar="LIST", help="What to run: names, * for all, -name for all but that one."),
]
RootCertificate: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--root-ca-file",
        help="What pods trust the API server by, published in every namespace; by default that of the kubeconfig.",
    ),
]


def read_list(text: str) -> tuple[str, ...]:
    """The words of a `--controllers` list. Ends with exit code 2 for a name that no controller has."""
    from dray.controllers import SelectionError, select
    from dray.controllers.catalog import CATALOG

    words = tuple(word.strip() for word in text.split(",") if word.strip())
    try:
        select(words, tuple(CATALOG))
    except SelectionError as error:
        output.fail(f"--controllers: {error}")
    return words


def run(
    *,
    cluster: RunningCluster,
    controllers: Controllers = "*",
    lease: Annotated[
        str,
        typer.Option(
            metavar="[NAMESPACE/]NAME", help="The lease that replicas compete for, in kube-system unless told."
        ),
    ] = CONTROLLERS_LEASE,
    own_accounts: OwnAccounts = False,
    root_certificate: RootCertificate = None,
    feature_gates: server_options.FeatureGates = "",
    given: controller_options.ControllerOptions,
    options: component.ComponentOptions,
) -> None:
    """Run controllers: claims from templates, evictions, garbage collection and the rest of --controllers.

    Beside kube-controller-manager, run here what is switched off there; with --lease kube-controller-manager, in turns
    with it.
    """
    from dray.cli import controller_accounts
    from dray.controllers import Manager

    wanted = read_list(controllers)
    settings = given.settings(feature_gates)
    connection = cluster.connect()
    trusted = _contents(root_certificate) if root_certificate is not None else connection.authority or b""
    settings = replace(settings, root_certificate=trusted)
    running: list[Manager] = []

    async def work(client: HttpClient, clock: Clock) -> None:
        async with controller_accounts.clients(connection, client, clock) as client_for:
            manager = Manager(
                client,
                clock,
                wanted=wanted,
                client_for=client_for if own_accounts else None,
                settings=settings,
                foreign_kinds=client.foreign_kinds,
            )
            running[:] = [manager]
            try:
                if lease != STOCK_LEASE:
                    await _warn_of_others(client, clock, tuple(manager.controllers))
                await manager.run()
            finally:
                running.clear()

    @asynccontextmanager
    async def duties(client: HttpClient, clock: Clock) -> AsyncIterator[component.Duties]:
        yield component.Duties(lambda: work(client, clock))

    chosen = component.Component(
        "controllers",
        duties,
        _metrics_of(running),
        lambda: running[0].health() if running else {},
        lease,
        options,
    )
    component.run(chosen, connection)


def _metrics_of(running: Sequence[Manager]) -> CollectorRegistry:
    """The metrics of the manager that runs, if one does: whoever leads again has another one."""
    from prometheus_client import CollectorRegistry
    from prometheus_client.registry import Collector

    class Current(Collector):
        def collect(self) -> Iterable[Metric]:
            return running[0].metrics.collect() if running else ()

    registry = CollectorRegistry()
    registry.register(Current())
    return registry


def _contents(path: Path) -> bytes:
    """A certificate. Ends with exit code 2 if it cannot be read, or is none."""
    try:
        data = home.expand(path).read_bytes()
    except OSError as error:
        output.fail(f"--root-ca-file: {path} cannot be read: {(error.strerror or str(error)).lower()}")
    if b"-----BEGIN CERTIFICATE-----" not in data or not data.isascii():
        output.fail(f"--root-ca-file: {path} has no certificate in it; give a PEM file")
    return data


async def _warn_of_others(client: HttpClient, clock: Clock, names: Sequence[str]) -> None:
    """Says so if kube-controller-manager is at work, too, and may run what we run."""
    from dray.api.generated.coordination import Lease
    from dray.api.kinds import LEASES
    from dray.api.status import ApiError
    from dray.client.calls import find
    from dray.controllers.selection import OWN
    from dray.reconcile.leader import NAMESPACE, holder

    try:
        found = await find(client, LEASES, NAMESPACE, STOCK_LEASE, Lease)
    except (ApiError, OSError):
        return  # who may not know that has been told by its role what it may do
    both = [name for name in names if name not in OWN]
    if both and (other := holder(found, clock.now())):
        print(
            f"dray: kube-controller-manager ({other}) works on this cluster, too. What both run is done "
            f"twice: give it --controllers=*,{','.join(f'-{name}' for name in both)}, or this --controllers with less.",
            file=sys.stderr,
        )
