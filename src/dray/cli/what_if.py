"""`dray what-if`: what a rule, a patch, a node or a claim would change, without changing anything."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeAlias

import typer

from dray.cli import component, inputs, live, output, tables

if TYPE_CHECKING:
    from dray.snapshot import Snapshot
    from dray.what_if.difference import Difference


Apply: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--apply", metavar="FILE|DIR|-", help="Manifests to add or change; may be repeated."),
]
Delete: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--delete", metavar="KIND/[NS/]NAME", help="An object to take away; may be repeated."),
]


class ChangeOptions(NamedTuple):
    """What is different, as options say it."""

    apply: tuple[str, ...]
    delete: tuple[str, ...]


class Comparison(NamedTuple):
    """A cluster before and after a change."""

    before: Snapshot
    after: Snapshot
    difference: Difference


def run(
    sources: inputs.Sources = None,
    files: inputs.Files = None,
    apply: Apply = None,
    delete: Delete = None,
    kubeconfig: component.Kubeconfig = None,
    context: component.Context = "",
    now: inputs.Now = None,
    format_: Annotated[output.Format, typer.Option("--output", "-o", help="How to print.")] = output.Format.TEXT,
) -> None:
    """Show what a change would do: devices that cannot be used any more, claims that are hit, pods that have to leave,
    when, and whether they fit elsewhere; and what was not looked at. With files, to the cluster in them; without, to
    the running one.

    Exit code 0: nobody loses anything; 1: somebody does (a pod its place, a claim a device, who waits their chance, a
    workload its pods, a namespace its quota); 2: input cannot be read.
    """
    change = ChangeOptions(tuple(apply or ()), tuple(delete or ()))
    difference = look(change, [*(sources or ()), *(files or ())], kubeconfig, context, now).difference
    if format_ is output.Format.JSON:
        output.print_json(difference.to_dict(), "Difference")
    else:
        print(difference.text(tables.width()))
    raise typer.Exit(output.NO if difference.is_disruptive else output.YES)


def look(change: ChangeOptions, files: list[str], kubeconfig: Path | None, context: str, now: str | None) -> Comparison:
    """What a change does to the cluster in files, or to the running one. Ends with exit code 2 for bad input."""
    from dray.snapshot import InputError, SnapshotError
    from dray.what_if.deletions import delete
    from dray.what_if.difference import compare

    moment = inputs.read_time(now)
    if not change.apply and not change.delete:
        output.fail("nothing to compare. Give a change with --apply or --delete.")
    before = live.read_cluster(
        files, "what-if", kubeconfig=kubeconfig, context=context, load=live.load_snapshot_with_workloads
    )
    try:
        after = delete(before, change.delete, moment)
        after = after.with_applied(*change.apply, now=moment)
    except SnapshotError as error:
        output.fail(f"--delete: {error}.")
    except InputError as error:
        output.fail(str(error))
    inputs.note_ignored(after.ignored[len(before.ignored) :])
    with inputs.busy("Comparing"):
        return Comparison(before, after, compare(before, after, moment))
