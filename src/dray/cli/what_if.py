"""`dray what-if`: what a rule, a patch, a node or a claim would change, without changing anything."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

import typer

from dray.cli import completion, inputs, live, names, output, tables
from dray.cli.running_cluster import RunningCluster

if TYPE_CHECKING:
    from dray.api.meta import Object
    from dray.api.references import ObjectKey
    from dray.api.registry import Kind
    from dray.client.http import HttpClient
    from dray.snapshot import Snapshot
    from dray.snapshot.files import Item, Source
    from dray.what_if.difference import Difference


Apply: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--apply", metavar="FILE|DIR|-", help="Manifests to add or change; may be repeated."),
]
Delete: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--delete",
        metavar="KIND/[NS/]NAME",
        help="An object to take away; may be repeated.",
        autocompletion=completion.objects,
    ),
]


class ChangeOptions(NamedTuple):
    """What is different, as options say it."""

    apply: tuple[str, ...]
    delete: tuple[str, ...]
    namespace: str
    """Where it is, if it says no other."""


class Comparison(NamedTuple):
    """A cluster before and after a change."""

    before: Snapshot
    after: Snapshot
    difference: Difference


def run(
    *,
    source: live.NamedSource,
    apply: Apply = None,
    delete: Delete = None,
    namespace: names.Namespace = "",
    _all_namespaces: names.AlwaysAll = False,
    now: inputs.Now = None,
    format_: Annotated[output.Format, typer.Option("--output", "-o", help="How to print.")] = output.Format.TEXT,
) -> None:
    """Show what a change would do: devices that cannot be used any more, claims that are hit, pods that have to leave,
    when, and whether they fit elsewhere; and what was not looked at. With files, to the cluster in them; without, to
    the running one.

    Exit code 0: nobody loses anything; 1: somebody does (a pod its place, a claim a device, who waits their chance, a
    workload its pods, a namespace its quota); 2: input cannot be read.
    """
    change = read_change(apply, delete, namespace)
    difference = look(change, source, now).difference
    if format_ is output.Format.JSON:
        output.print_json(difference.to_dict(), "Difference")
    else:
        print(difference.text(tables.width(), tables.REST))
    raise typer.Exit(output.NO if difference.is_disruptive else output.YES)


def read_change(apply: list[str] | None, delete: list[str] | None, namespace: str) -> ChangeOptions:
    """What is different; it is in a namespace if it says none. Ends with exit code 2 if it says two."""
    return ChangeOptions(tuple(apply or ()), tuple(names.placed(one, namespace) for one in delete or ()), namespace)


def look(change: ChangeOptions, source: live.Source, now: str | None) -> Comparison:
    """What a change does to the cluster in files, or to the running one. Ends with exit code 2 for bad input."""
    from dray.snapshot import InputError, SnapshotError
    from dray.what_if.deletions import delete
    from dray.what_if.difference import compare
    from dray.what_if.refused import tell_refused

    moment = inputs.read_time(now)
    if not change.apply and not change.delete:
        output.fail("nothing to compare. Give a change with --apply or --delete.")
    before = source.read("what-if", live.load_snapshot_with_workloads)
    running = None if source.given else source
    try:
        before = _with_deleted(before, change.delete, running)
        after = delete(before, change.delete, moment)
        after = after.with_applied(*_read_and_judged(change.apply, change.namespace), now=moment)
        before, after = _with_changed(before, after, running)
    except SnapshotError as error:
        output.fail(f"--delete: {error}.")
    except InputError as error:
        output.fail(str(error))
    inputs.note_ignored(after.ignored[len(before.ignored) :])
    for why in tell_refused(before, after):
        print(f"dray: an API server would refuse {why}.", file=sys.stderr)
    with inputs.busy("Comparing"):
        return Comparison(before, after, compare(before, after, moment))


def _read_and_judged(apply: Sequence[str], namespace: str) -> Iterator[Source]:
    """What to apply. Says of what an API server would refuse that it would. Raises InputError."""
    from dray.cli.validate import is_known
    from dray.snapshot.files import read

    for source in apply:
        items = list(read([source]))
        for item in items:
            if is_known(item.value):
                _note_refused(item)
        if source == "-" or namespace:  # standard input can be read once only
            yield from (_placed(item.value, namespace) for item in items)
        else:
            yield source


def _placed(value: Any, namespace: str) -> Any:
    """A manifest in the namespace, as `kubectl apply -n` places it. Ends with exit code 2 if it is in another one."""
    from dray.api.registry import UnknownKind, by_kind

    meta = value.get("metadata") if isinstance(value, dict) else None
    try:
        if not namespace or not isinstance(meta, dict) or not by_kind(value["apiVersion"], value["kind"]).namespaced:
            return value
    except (KeyError, TypeError, AttributeError, UnknownKind):
        return value  # whoever reads it says what is wrong with it
    there = meta.get("namespace") or namespace
    if there != namespace:
        what = f"{value['kind']} {meta.get('name')}"
        output.fail(f"{what} is in namespace {there}, and -n says {namespace}: give one of them.")
    return {**value, "metadata": {**meta, "namespace": namespace}}


def _note_refused(item: Item) -> None:
    from dray.cli.findings import ERROR
    from dray.cli.validate import check

    found = [one for one in check(item, strict=True) if one.severity == ERROR]
    if found:
        field = f"{found[0].field}: " if found[0].field else ""
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        print(
            f"dray: an API server would refuse {found[0].object}: {field}{found[0].message}{more}. "
            "`dray validate` tells all; what follows is about what is right of it.",
            file=sys.stderr,
        )


def _get(cluster: RunningCluster, wanted: Sequence[tuple[Kind, ObjectKey]]) -> list[Object]:
    """Those of some objects that a cluster has: of most kinds it is read only what a change is about.

    Ends with exit code 2 if they may not be read.
    """

    async def work(client: HttpClient) -> list[Object]:
        from dray.api.status import ApiError

        found: list[Object] = []
        for kind, key in wanted:
            try:
                found.append(await client.get(kind, key.namespace, key.name))
            except ApiError as error:
                if error.code != 404:
                    raise
        return found

    return live.call(work, "what-if", cluster) if wanted else []


def _with_deleted(before: Snapshot, refs: Sequence[str], running: RunningCluster | None) -> Snapshot:
    """The cluster with what is to be taken away. Raises SnapshotError for what is not there."""
    from dray.snapshot import SnapshotError
    from dray.snapshot.snapshot import named

    if running is None:
        return before
    for text in refs:
        meant = named(text)
        if any(before.get(*key) is not None for _, key in meant):
            continue
        found = _get(running, meant)
        if not found:
            raise SnapshotError(f"there is no {text}")
        before = before.with_typed(found)
    return before


def _with_changed(before: Snapshot, after: Snapshot, running: RunningCluster | None) -> tuple[Snapshot, Snapshot]:
    """Both with what is there already of what seems to be new: kinds that nothing here depends on were not read."""
    from dray.api.registry import by_kind
    from dray.snapshot.objects import inherit, key_of

    if running is None:
        return before, after
    new = {key: there for key, (here, there) in before.differing(after).items() if here is None and there is not None}
    there = _get(running, [(by_kind(one.api_version, one.kind), key) for key, one in new.items()])
    found = {key_of(one, by_kind(one.api_version, one.kind)): one for one in there}
    return before.with_typed(there), after.with_typed(inherit(new[key], one) for key, one in found.items())
