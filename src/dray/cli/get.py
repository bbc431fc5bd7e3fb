"""`dray get`: devices, claims and nodes of a cluster, running or in files, clusters of a hub; live with -w."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from dray.api.references import full_name
from dray.api.resource.claim import claim_state
from dray.cli import items, live, names, output, tables
from dray.cli.device_table import device_table
from dray.cli.names import node_option
from dray.cli.node_rows import node_rows
from dray.cli.tables import NOTHING, Table
from dray.eviction.stop import tell_stop
from dray.prose.wording import tell_results

if TYPE_CHECKING:
    from dray.api.resource import ResourceClaim
    from dray.cli.file_view import FileView
    from dray.client.kubeconfig import Connection
    from dray.live.cluster_view import LiveView
    from dray.live.fleet_view import FleetView

    ClusterView = LiveView | FileView
    Followed = LiveView | FleetView
    View = ClusterView | FleetView

KINDS = {"devices": "DeviceList", "claims": "ClaimList", "nodes": "NodeList", "clusters": "ClusterList"}
CALM_SECONDS = 0.2
"""How long to gather changes before showing them."""


class What(StrEnum):
    """What to look at."""

    DEVICES = "devices"
    CLAIMS = "claims"
    NODES = "nodes"
    CLUSTERS = "clusters"


_WORDS: Final[dict[What, tuple[str, ...]]] = {
    What.DEVICES: ("device", "devices"),
    What.CLAIMS: (*names.KINDS["claim"], "resourceclaims.resource.k8s.io"),
    What.NODES: names.KINDS["node"],
    What.CLUSTERS: ("cluster", "clusters", "managedcluster", "managedclusters"),
}
"""What people call them."""


def _read_what(text: str) -> What:
    for what, words in _WORDS.items():
        if text.lower() in words:
            return what
    raise typer.BadParameter(f"{text!r} is not one of {', '.join(map(repr, map(str, What)))}.")


def _offer_what(incomplete: str) -> list[str]:
    return [what for what in What if what.startswith(incomplete)]


class Wanted(msgspec.Struct, frozen=True):
    """Which rows to show, and how."""

    what: What
    node: str = ""
    namespace: str = ""
    format: output.ListFormat = output.ListFormat.TABLE


def run(
    what: Annotated[
        What,
        typer.Argument(metavar="|".join(What), help="What to look at.", parser=_read_what, autocompletion=_offer_what),
    ],
    *,
    source: live.Source,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on showing what changes.")] = False,
    node: Annotated[str, node_option("Only this node, or what it reaches.")] = "",
    namespace: names.OnlyNamespace = "",
    all_namespaces: names.AllNamespaces = False,
    format_: Annotated[
        output.ListFormat,
        typer.Option("--output", "-o", help="How to print; with -w, json and jsonl are a line for every change."),
    ] = output.ListFormat.TABLE,
) -> None:
    """Show devices with their taints and holders, claims with their devices, nodes with their devices in numbers, or
    the clusters of a hub with their state, taints and placements. With -f devices, claims and nodes in files.

    Exit code 0: there are some; 1: there are none; 2: the cluster cannot be read.
    """
    import uvloop

    wanted = Wanted(what, node, names.one_of(namespace, all_namespaces=all_namespaces), format_)
    if namespace and what is not What.CLAIMS:
        print(f"dray: {what} are in no namespace: -n {namespace} counts for claims only.", file=sys.stderr)
    if node and what in (What.CLAIMS, What.CLUSTERS):
        print(f"dray: --node {node} counts for devices and nodes only.", file=sys.stderr)
    if source.given:
        if watch or what is What.CLUSTERS:
            output.fail("-f is a cluster in files: it has no clusters, and nothing to watch (-w).")
        from dray.cli.file_view import FileView

        found = source.read("get")
        raise typer.Exit(output.YES if _show(FileView(found), wanted) else output.NO)
    connection = source.connect()
    has_some = uvloop.run(_look(wanted, connection, watch=watch))
    if not watch:
        raise typer.Exit(output.YES if has_some else output.NO)


async def _look(wanted: Wanted, connection: Connection, *, watch: bool) -> bool:
    """Shows what there is, once or until interrupted; whether there is any. Ends with exit code 2 if that fails."""
    from dray.api.status import ApiError
    from dray.live.cluster_view import LiveView
    from dray.live.fleet_view import FleetView
    from dray.reconcile import RealClock

    async with live.client_of(connection, "get") as client:
        view: Followed = (FleetView if wanted.what is What.CLUSTERS else LiveView)(client, RealClock())
        try:
            try:
                await _start(view, wanted)
            except (ApiError, OSError, TimeoutError) as error:
                if isinstance(error, ApiError):
                    output.fail(f"cannot read {wanted.what.value}: {connection.server}: {live.tell_forbidden(error)}")
                output.fail(f"cannot read {wanted.what.value}: {error or f'{connection.server} does not answer'}")
            if watch:
                await _watch(view, wanted)
                return True
            return _show(view, wanted)
        finally:
            await view.stop()


async def _start(view: Followed, wanted: Wanted) -> None:
    """Raises ApiError or OSError if what is wanted cannot be read."""
    from dray.api.kinds import BUDGETS, CLAIMS, NAMESPACES
    from dray.live.cluster_view import ALL, LiveView

    if not isinstance(view, LiveView):
        await view.start()
    elif wanted.what is What.CLAIMS:
        await view.start((CLAIMS,), wanted.namespace)  # nothing else is shown, so no further rights are asked for
    else:
        await view.start((*ALL, NAMESPACES, BUDGETS) if wanted.what is What.NODES else (*ALL, NAMESPACES))
        live.note_left_out(view.left_out)


def table_of(view: View, wanted: Wanted) -> Table:
    """The table as of now; clusters are in a view of the fleet, everything else in one of the cluster."""
    build: dict[What, Callable[[Any, Wanted], Table]] = {
        What.DEVICES: _devices,
        What.CLAIMS: _claims,
        What.NODES: _nodes,
        What.CLUSTERS: _clusters,
    }
    return build[wanted.what](view, wanted)


def _devices(view: ClusterView, wanted: Wanted) -> Table:
    return device_table(list(view.devices(wanted.node)))


def _claims(view: ClusterView, wanted: Wanted) -> Table:
    rows = [
        (
            full_name(claim),
            claim_state(claim),
            ", ".join(_allocated(claim)) or NOTHING,
            ", ".join(one.name for one in claim.status.reserved_for) or NOTHING,
        )
        for claim in view.claims()
        if wanted.namespace in ("", claim.metadata.namespace)
    ]
    return Table(("CLAIM", "STATE", "DEVICES", "USED BY"), tuple(rows))


def _allocated(claim: ResourceClaim) -> list[str]:
    allocation = claim.status.allocation
    return tell_results(allocation.devices.results) if allocation is not None else []


def _nodes(view: ClusterView, wanted: Wanted) -> Table:
    from dray.scheduling.device_state_text import tell_blocked

    now = datetime.now(UTC)
    rows = [
        (
            *(row.name, row.state, *map(str, row.counts), str(row.pods)),
            tell_blocked(row.devices) or NOTHING,
            row.tell_leaving(now) or NOTHING,
        )
        for row in node_rows(view, wanted.node)
    ]
    header = ("NODE", "STATE", "DEVICES", "FREE", "HELD", "BLOCKED", "TAINTED", "PODS", "BLOCKED BY", "LEAVING")
    shown = [number for number in range(len(header)) if number < 8 or any(row[number] != NOTHING for row in rows)]
    return Table(tuple(header[one] for one in shown), tuple(tuple(row[one] for one in shown) for row in rows))


def _clusters(view: FleetView, _wanted: Wanted) -> Table:
    from dray.cli import cluster_rows

    selections = view.selections()
    rows = [cluster_rows.row(cluster, selections[cluster.metadata.name]) for cluster in view.clusters()]
    return Table(cluster_rows.HEADER, tuple(rows))


def items_of(view: View, wanted: Wanted) -> list[items.Item]:
    """The same for programs."""
    build: dict[What, Callable[[Any], Iterator[items.Item]]] = {
        What.DEVICES: lambda seen: items.devices(seen, wanted.node),
        What.CLAIMS: lambda seen: items.claims(seen, wanted.namespace),
        What.NODES: lambda seen: items.nodes(seen, wanted.node),
        What.CLUSTERS: items.clusters,
    }
    return list(build[wanted.what](view))


def _show(view: View, wanted: Wanted) -> bool:
    """Prints what there is; whether there is any."""
    if wanted.format is output.ListFormat.TABLE:
        table = table_of(view, wanted)
        _print(table, wanted)
        for note in _notes(view, wanted):
            print(f"\n{note}")
        return bool(table.rows)
    found = items_of(view, wanted)
    if wanted.format is output.ListFormat.NAME:
        print("".join(f"{one.key}\n" for one in found), end="")
    elif wanted.format is output.ListFormat.JSONL:
        print("".join(f"{msgspec.json.encode(one).decode()}\n" for one in found), end="")
    else:
        as_yaml = wanted.format is output.ListFormat.YAML
        tables.print_value(msgspec.to_builtins(found), KINDS[wanted.what], as_yaml=as_yaml)
    return bool(found)


def _print(found: Table, wanted: Wanted) -> None:
    if found.rows:
        tables.print_table(found.header, found.rows)
    else:
        where = f" called {wanted.node}" if wanted.what is What.NODES else f" on node {wanted.node}"
        place = where if wanted.node else f" in namespace {wanted.namespace}" if wanted.namespace else ""
        print(f"No {wanted.what.value}{place}.")


def _notes(view: Any, wanted: Wanted) -> Iterator[str]:
    """What is in no row: devices of no single node, what is not or no longer published, and that nobody leaves."""
    from dray.cli.node_rows import tell_shared
    from dray.cli.pool_notes import tell_unpublished
    from dray.views.pools import bad_pools, tell_bad_pools

    if wanted.what is What.NODES and (told := tell_shared(view.devices())):
        yield told
    if wanted.what in (What.NODES, What.DEVICES):
        yield from (f"{told}." for told in tell_bad_pools(bad_pools(view.pools(), wanted.node)))
    if wanted.what in (What.NODES, What.DEVICES) and not wanted.node:
        yield from (f"{told}." for told in tell_unpublished(view.claims(), view.devices()))
    if wanted.what in (What.NODES, What.DEVICES) and (told := tell_stop(view.place_of_stop())):
        yield f"{told[0].upper()}{told[1:]}."


async def _watch(view: Followed, wanted: Wanted) -> None:
    """On a terminal a table that keeps up; in a pipe a line for every row that is new or different."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    if wanted.format is not output.ListFormat.TABLE:
        await _watch_items(view, wanted, stop)
        return
    if sys.stdout.isatty():
        await _watch_live(view, wanted, stop)
        return
    found, there, told = table_of(view, wanted), items_of(view, wanted), tuple(_notes(view, wanted))
    _print(found, wanted)
    _print_notes(told)
    while await _next_change(view, stop):
        before, were, said = found, there, told
        found, there, told = table_of(view, wanted), items_of(view, wanted), tuple(_notes(view, wanted))
        _print_changes(before, found)
        _print_gone(were, there)
        _print_notes(f"No longer so: {note}" for note in said if note not in told)
        _print_notes(note for note in told if note not in said)


def _print_changes(before: Table, after: Table) -> None:
    """A line for each row that is new or different, below its columns if these are others."""
    is_alike = not after.rows or after.header == before.header
    if not is_alike:
        print("  ".join(after.header))
    known = set(before.rows) if is_alike else set()
    for row in [row for row in after.rows if row not in known]:
        print("  ".join(row))
    sys.stdout.flush()


def _print_gone(before: Sequence[items.Item], after: Sequence[items.Item]) -> None:
    left = {one.identity for one in after}
    for one in before:
        if one.identity not in left:
            print(f"{one.label}  (gone)", flush=True)


def _print_notes(told: Iterable[str]) -> None:
    for note in told:
        print(f"\n{note}", flush=True)


async def _watch_items(view: Followed, wanted: Wanted, stop: asyncio.Event) -> None:
    """An event for everything that is there, then for everything that is new, different or gone."""
    known: dict[tuple[str, ...], items.Item] = {}
    while True:
        found = {one.identity: one for one in items_of(view, wanted)}
        for key, one in found.items():
            if key not in known:
                _print_event("ADDED", one, wanted.format)
            elif known[key] != one:
                _print_event("MODIFIED", one, wanted.format)
        for key, one in known.items():
            if key not in found:
                _print_event("DELETED", one, wanted.format)
        known = found
        if not await _next_change(view, stop):
            return


def _print_event(type_: str, item: items.Item, format_: output.ListFormat) -> None:
    """One line of JSON, one document of YAML, or what happened to whom."""
    if format_ is output.ListFormat.NAME:
        print(f"{item.key} {type_.lower()}", flush=True)
    elif format_ is output.ListFormat.YAML:
        print("---")
        tables.print_yaml({"type": type_, "object": msgspec.to_builtins(item)})
        sys.stdout.flush()
    else:
        print(msgspec.json.encode({"type": type_, "object": item}).decode(), flush=True)


async def _watch_live(view: Followed, wanted: Wanted, stop: asyncio.Event) -> None:
    from rich.console import Group
    from rich.live import Live

    def drawn() -> Group:
        return Group(tables.rich_table(*table_of(view, wanted)), *(f"\n{note}" for note in _notes(view, wanted)))

    with Live(drawn(), console=output.console(), auto_refresh=False) as shown:
        while await _next_change(view, stop):
            shown.update(drawn(), refresh=True)


async def _next_change(view: Followed, stop: asyncio.Event) -> bool:
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
