"""`dray get`: devices, claims and nodes of a running cluster, clusters of a hub, in merged tables, live with -w."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from dray.cli import component, output, tables

if TYPE_CHECKING:
    from dray.api.resource import ResourceClaim
    from dray.client.kubeconfig import Connection
    from dray.cluster.fleet_view import FleetView
    from dray.cluster.live_view import DeviceRow, LiveView

    View = LiveView | FleetView

NOTHING = "–"
CALM_SECONDS = 0.2
"""How long to gather changes before showing them."""


class What(StrEnum):
    """What to look at."""

    DEVICES = "devices"
    CLAIMS = "claims"
    NODES = "nodes"
    CLUSTERS = "clusters"


class Sheet(msgspec.Struct, frozen=True):
    """A table; the first column says what a row is about."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Wanted(msgspec.Struct, frozen=True):
    """Which rows to show, and how."""

    what: What
    node: str = ""
    namespace: str = ""
    format: output.TableFormat = output.TableFormat.TABLE


def run(
    what: Annotated[What, typer.Argument(help="What to look at.")],
    kubeconfig: component.Kubeconfig = None,
    context: component.Context = "",
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on showing what changes.")] = False,
    node: Annotated[str, typer.Option(help="Only devices of this node.")] = "",
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Only claims of this namespace.")] = "",
    format_: Annotated[
        output.TableFormat, typer.Option("--output", "-o", help="How to print.")
    ] = output.TableFormat.TABLE,
) -> None:
    """Show devices with their taints and holders, claims with their devices, nodes with their devices in numbers, or
    the clusters of a hub with their state, taints and placements.

    Exit code 0: there are some; 1: there are none; 2: the cluster cannot be read.
    """
    import uvloop

    if watch and format_ is not output.TableFormat.TABLE:
        output.fail(f"--watch shows a table; leave out -o {format_.value}.")
    connection = component.connect(kubeconfig, context)
    wanted = Wanted(what, node, namespace, format_)
    found = uvloop.run(_look(wanted, connection, watch=watch))
    if found is not None:
        _print(found, wanted)
        raise typer.Exit(output.YES if found.rows else output.NO)


async def _look(wanted: Wanted, connection: Connection, *, watch: bool) -> Sheet | None:
    """The table; None after it was shown until interrupted. Ends with exit code 2 if the cluster cannot be read."""
    from dray.api.status import ApiError
    from dray.client.http import HttpClient
    from dray.client.kubeconfig import KubeconfigError
    from dray.cluster.fleet_view import FleetView
    from dray.cluster.live_view import LiveView
    from dray.reconcile import RealClock

    try:
        client = HttpClient(connection, agent="dray get")
    except KubeconfigError as error:
        output.fail(str(error))
    async with client:
        make = FleetView if wanted.what is What.CLUSTERS else LiveView
        view: View = make(client, RealClock())
        try:
            try:
                await view.start()
            except (ApiError, OSError, TimeoutError) as error:
                output.fail(f"cannot read {wanted.what.value} from {connection.server}: {error}")
            if not watch:
                return sheet(view, wanted)
            await _watch(view, wanted)
            return None
        finally:
            await view.stop()


def sheet(view: View, wanted: Wanted) -> Sheet:
    """The table as of now; clusters are in a view of the fleet, everything else in one of the cluster."""
    build: dict[What, Callable[[Any, Wanted], Sheet]] = {
        What.DEVICES: _devices,
        What.CLAIMS: _claims,
        What.NODES: _nodes,
        What.CLUSTERS: _clusters,
    }
    return build[wanted.what](view, wanted)


def _devices(view: LiveView, wanted: Wanted) -> Sheet:
    rows = [
        (
            f"{row.device.id.pool}/{row.device.id.device}",
            row.device.access.node_name or ("(selected)" if row.device.access.node_selector else "(all)"),
            row.device.id.driver,
            _state(row),
            ", ".join(row.holders) or NOTHING,
            _taints(row),
            ", ".join(row.device.patches) or NOTHING,
        )
        for row in view.devices()
        if wanted.node in ("", row.device.access.node_name)
    ]
    return Sheet(("DEVICE", "NODE", "DRIVER", "STATE", "HELD BY", "TAINTS", "PATCHED BY"), tuple(rows))


def _state(row: DeviceRow) -> str:
    if row.holders:
        return "held, tainted" if row.is_tainted else "held"
    return "tainted" if row.is_tainted else "free"


def _taints(row: DeviceRow) -> str:
    shown = []
    for tracked in row.device.taints:
        value = f"={tracked.taint.value}" if tracked.taint.value else ""
        rule = f" (rule {tracked.rule})" if tracked.rule else ""
        shown.append(f"{tracked.taint.key}{value}:{tracked.taint.effect}{rule}")
    return ", ".join(shown) or NOTHING


def _claims(view: LiveView, wanted: Wanted) -> Sheet:
    rows = [
        (
            f"{claim.metadata.namespace}/{claim.metadata.name}",
            _claim_state(claim),
            ", ".join(_allocated(claim)) or NOTHING,
            ", ".join(one.name for one in claim.status.reserved_for) or NOTHING,
        )
        for claim in view.claims()
        if wanted.namespace in ("", claim.metadata.namespace)
    ]
    return Sheet(("CLAIM", "STATE", "DEVICES", "USED BY"), tuple(rows))


def _claim_state(claim: ResourceClaim) -> str:
    if claim.metadata.deletion_timestamp is not None:
        return "deleting"
    if claim.status.allocation is None:
        return "pending"
    return "reserved" if claim.status.reserved_for else "allocated"


def _allocated(claim: ResourceClaim) -> list[str]:
    allocation = claim.status.allocation
    return [f"{one.pool}/{one.device}" for one in allocation.devices.results] if allocation is not None else []


def _nodes(view: LiveView, wanted: Wanted) -> Sheet:
    devices: dict[str, list[DeviceRow]] = {}
    for row in view.devices():
        devices.setdefault(row.device.access.node_name or "", []).append(row)
    pods: dict[str, int] = {}
    for pod in view.pods():
        if pod.spec.node_name and pod.status.phase not in ("Succeeded", "Failed"):
            pods[pod.spec.node_name] = pods.get(pod.spec.node_name, 0) + 1
    rows = []
    for node in view.nodes():
        name = node.metadata.name
        if wanted.node not in ("", name):
            continue
        own = devices.get(name, [])
        ready = any(one.type == "Ready" and one.status == "True" for one in node.status.conditions)
        free = sum(not row.holders and not row.is_tainted for row in own)
        counts = (len(own), free, sum(bool(row.holders) for row in own), sum(row.is_tainted for row in own))
        state = ("ready" if ready else "not ready") + (", unschedulable" if node.spec.unschedulable else "")
        rows.append((name, state, *map(str, counts), str(pods.get(name, 0))))
    return Sheet(("NODE", "STATE", "DEVICES", "FREE", "HELD", "TAINTED", "PODS"), tuple(rows))


def _clusters(view: FleetView, _wanted: Wanted) -> Sheet:
    from dray.cli import cluster_rows

    selections = view.selections()
    rows = [cluster_rows.row(cluster, selections[cluster.metadata.name]) for cluster in view.clusters()]
    return Sheet(cluster_rows.HEADER, tuple(rows))


def _print(found: Sheet, wanted: Wanted) -> None:
    if wanted.format is not output.TableFormat.TABLE:
        names = [title.lower().replace(" ", "_") for title in found.header]
        value: list[dict[str, Any]] = [dict(zip(names, row, strict=True)) for row in found.rows]
        tables.print_value(value, as_yaml=wanted.format is output.TableFormat.YAML)
    elif found.rows:
        tables.print_table(found.header, found.rows)
    else:
        print(f"No {wanted.what.value}.")


async def _watch(view: View, wanted: Wanted) -> None:
    """On a terminal a table that keeps up; in a pipe a line for every row that is new or different."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    if sys.stdout.isatty():
        await _watch_live(view, wanted, stop)
        return
    found = sheet(view, wanted)
    known: Sequence[tuple[str, ...]] = ()
    _print(found, wanted)
    while True:
        known = found.rows
        if not await _next_change(view, stop):
            return
        found = sheet(view, wanted)
        before, after = set(known), set(found.rows)
        for row in [row for row in found.rows if row not in before]:
            print("  ".join(row), flush=True)
        left = {row[0] for row in found.rows}
        for row in [row for row in known if row not in after and row[0] not in left]:
            print(f"{row[0]}  (gone)", flush=True)


async def _watch_live(view: View, wanted: Wanted, stop: asyncio.Event) -> None:
    from rich.live import Live

    with Live(_rich_table(sheet(view, wanted)), console=output.console(), auto_refresh=False) as live:
        while await _next_change(view, stop):
            live.update(_rich_table(sheet(view, wanted)), refresh=True)


def _rich_table(found: Sheet) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in found.header:
        table.add_column(title, overflow="fold")
    for row in found.rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


async def _next_change(view: View, stop: asyncio.Event) -> bool:
    """Waits for a change, and a little longer for what belongs to it; False if it is time to stop."""
    waiting = [asyncio.create_task(one.wait()) for one in (view.changed, stop)]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
    if stop.is_set():
        return False
    await asyncio.sleep(CALM_SECONDS)
    view.changed.clear()
    return True
