"""`dray scheduler`: the scheduler alone, against dray's API server or any other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import typer

from dray.api.well_known import DEFAULT_SCHEDULER
from dray.cli import component, output, server_options
from dray.cli.running_cluster import RunningCluster

LEASE = "kube-scheduler"


def run(
    *,
    cluster: RunningCluster,
    name: Annotated[
        str, typer.Option("--scheduler-name", help="Schedules pods with this schedulerName.")
    ] = DEFAULT_SCHEDULER,
    lease: Annotated[
        str,
        typer.Option(
            "--lease",
            metavar="[NAMESPACE/]NAME",
            help="What replicas compete for, in kube-system; kube-scheduler, or the name of another scheduler.",
        ),
    ] = "",
    filter_timeout: server_options.FilterTimeout = 10.0,
    feature_gates: server_options.FeatureGates = "",
    options: component.ComponentOptions,
) -> None:
    """Run the scheduler: pods get nodes, and their claims get devices.

    Decides about resources, ports, taints, node and pod affinity, topology spread, volumes, devices and preemption;
    docs/scheduler.md says what not.

    Instead of kube-scheduler, or beside it under another --scheduler-name, which has a lease of that name.
    """
    from prometheus_client import CollectorRegistry

    from dray.client import Client
    from dray.process import switches
    from dray.reconcile import Clock, Informers
    from dray.scheduler.metrics import SchedulerMetrics
    from dray.scheduler.scheduler import Scheduler

    try:
        gates = switches.disabled_gates(feature_gates)
    except switches.SwitchError as error:
        output.fail(str(error))
    registry = CollectorRegistry()
    metrics = SchedulerMetrics(registry, name)
    running: list[Scheduler] = []

    @asynccontextmanager
    async def duties(client: Client, clock: Clock) -> AsyncIterator[component.Duties]:
        informers = Informers(client, clock)

        def made() -> Scheduler:
            return Scheduler(
                client,
                clock,
                informers=informers,
                name=name,
                filter_seconds=filter_timeout,
                disabled_gates=gates,
                metrics=metrics,
                verbosity=options.verbosity,
            )

        async def lead() -> None:
            """A scheduler that led before is replaced, not resumed: what it knew may be wrong."""
            if running[0].has_begun:
                running[:] = [made()]
            await running[0].run()

        running[:] = [made()]
        yield component.Duties(lead, follow=informers.run)

    connection = cluster.connect()
    wanted = component.Component(
        "scheduler",
        duties,
        registry,
        lambda: {"informers": running[0].problem} if running and running[0].has_begun else {},
        lease or (LEASE if name == DEFAULT_SCHEDULER else name),
        options,
    )
    component.run(wanted, connection)
