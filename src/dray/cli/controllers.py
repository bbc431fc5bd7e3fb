"""`dray controllers`: the controllers alone, against dray's API server or any other."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import msgspec
import typer

from dray.api.well_known import CONTROLLERS_LEASE
from dray.cli import component, output, server_options
from dray.cli import controller_options as options
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
    kubeconfig: component.Kubeconfig = None,
    context: component.Context = "",
    controllers: Controllers = "*",
    leader_elect: component.LeaderElect = True,
    lease: component.Lease = CONTROLLERS_LEASE,
    lease_seconds: component.LeaseSeconds = None,
    own_accounts: OwnAccounts = False,
    root_certificate: RootCertificate = None,
    feature_gates: server_options.FeatureGates = "",
    config: options.ConfigFile = None,
    eviction_policy: options.EvictionPolicy = "",
    max_evictions: options.MaxEvictions = "",
    node_monitor_period: options.MonitorPeriod = "",
    node_monitor_grace_period: options.GracePeriod = "",
    node_startup_grace_period: options.StartupGracePeriod = "",
    node_eviction_rate: options.EvictionRate = None,
    secondary_node_eviction_rate: options.SecondaryRate = None,
    large_cluster_size_threshold: options.LargeCluster = None,
    unhealthy_zone_threshold: options.UnhealthyZone = None,
    metrics_port: component.MetricsPort = None,
    bind: component.MetricsBind = "127.0.0.1",
    verbosity: component.Verbosity = 0,
) -> None:
    """Run controllers: claims from templates, evictions, garbage collection and the rest of --controllers.

    Beside kube-controller-manager, run here what is switched off there; with --lease kube-controller-manager, in turns
    with it.
    """
    from dray.cli import controller_accounts
    from dray.controllers import Manager

    wanted = read_list(controllers)
    given = options.Given(
        config=config,
        feature_gates=feature_gates,
        eviction_policy=eviction_policy,
        max_evictions=max_evictions,
        monitor_period=node_monitor_period,
        grace_period=node_monitor_grace_period,
        startup_grace_period=node_startup_grace_period,
        eviction_rate=node_eviction_rate,
        secondary_rate=secondary_node_eviction_rate,
        large_cluster=large_cluster_size_threshold,
        unhealthy_zone=unhealthy_zone_threshold,
    )
    settings = options.read_settings(given)
    connection = component.connect(kubeconfig, context)
    trusted = _contents(root_certificate) if root_certificate is not None else connection.authority or b""
    settings = msgspec.structs.replace(settings, root_certificate=trusted)
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
        lease=lease if leader_elect else "",
        lease_seconds=lease_seconds,
        port=metrics_port,
        bind=bind,
    )
    component.run(chosen, connection, verbosity=verbosity)


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
