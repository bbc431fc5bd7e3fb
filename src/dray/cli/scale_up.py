"""`dray scale-up`: how many nodes of which group the pending pods need, offline or for a running cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from dray.cli import inputs, live, names, output, tables

if TYPE_CHECKING:
    from dray.scale_up.answer import ScaleUpPlan
    from dray.snapshot import Snapshot
    from dray.snapshot.files import Item


class GroupSource(live.NamedSource, frozen=True):
    """A cluster, and groups of nodes that it could get."""

    files: Annotated[
        list[str] | None,
        typer.Option(
            "--file",
            "-f",
            metavar="FILE|DIR|-",
            help="Node groups, and manifests or dumps of a cluster; may be repeated.",
        ),
    ] = None


MaxNodes: TypeAlias = Annotated[int, typer.Option(help="Add no more nodes than this in all.", min=0, max=1000)]


def run(
    *,
    source: GroupSource,
    _all_namespaces: names.AlwaysAll = False,
    max_nodes: MaxNodes = 1000,
    format_: Annotated[output.Format, typer.Option("--output", "-o", help="How to print.")] = output.Format.TEXT,
) -> None:
    """Say how many nodes of which group make the pending pods schedulable. Nothing is changed.

    Node groups are documents of kind NodeGroup in the files. Other objects in the files are the cluster; if there are
    none, or with --kubeconfig or --context, it is the running one, with those objects added.

    Exit code 0: all pending pods fit, with the nodes to add; 1: some do not; 2: input cannot be read.
    """
    _, answer = look(source, max_nodes)
    if format_ is output.Format.JSON:
        output.print_json(answer.to_dict(), "ScaleUp")
    else:
        print(answer.text(tables.width(), tables.REST))
    raise typer.Exit(output.NO if answer.unplaced else output.YES)


def look(source: live.Source, max_nodes: int) -> tuple[Snapshot, ScaleUpPlan]:
    """A cluster, and the nodes that its pending pods need. Ends with exit code 2 for bad input."""
    from dray.scale_up import NodeGroupError, load_groups, plan
    from dray.scale_up.node_group_files import is_group

    items = _read(source.given)
    objects = [item for item in items if not is_group(item)]
    is_live = source.is_named or not objects
    snapshot = _combined(
        objects,
        live.call(live.load_snapshot_with_workloads, "scale-up", source) if is_live else None,
    )
    try:
        groups = load_groups(items, snapshot)
    except NodeGroupError as error:
        output.fail(f"{error}.")
    if not groups:
        output.fail("no node groups. Give documents of kind NodeGroup with -f; see docs/scale-up.md.")
    with inputs.busy("Planning"):
        return snapshot, plan(snapshot, groups, max_nodes=max_nodes)


def _read(files: Iterable[str]) -> list[Item]:
    from dray.snapshot import InputError
    from dray.snapshot.files import read

    try:
        with inputs.busy("Reading"):
            return list(read(files))
    except InputError as error:
        output.fail(str(error))


def _combined(items: Iterable[Item], cluster: Snapshot | None) -> Snapshot:
    """The objects that were read, on top of those of a running cluster."""
    from dray.snapshot import InputError, from_objects
    from dray.snapshot.objects import current_time, load_items

    try:
        loaded = load_items(items, current_time())
    except InputError as error:
        output.fail(str(error))
    inputs.note_ignored(loaded.ignored)
    made = loaded.objects.values()
    return from_objects(made) if cluster is None else cluster.with_objects(*made)
