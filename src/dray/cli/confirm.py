"""`dray confirm` and `dray cancel`: says of what the guard holds that it is meant, or takes it back."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from dray.cli import completion, live, names, output, tables
from dray.cli.running_cluster import RunningCluster
from dray.cli.taint_options import Format

if TYPE_CHECKING:
    from dray.api.generated.core import Namespace
    from dray.api.meta import Object
    from dray.api.registry import Kind
    from dray.client.http import HttpClient
    from dray.what_if.driver_evictions import Unconfirmed

Targets = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="rule/RULE|node/NODE|slice/SLICE",
        help="What is held, as this command lists it without arguments; rule NAME in two words, too.",
        autocompletion=completion.evicting,
    ),
]

WORDS: Final = {
    **dict.fromkeys(("rule", "rules", "devicetaintrule", "devicetaintrules"), "rule"),
    **dict.fromkeys(("node", "nodes", "no"), "node"),
    **dict.fromkeys(("slice", "slices", "resourceslice", "resourceslices"), "slice"),
}
"""What may be in front of a name."""
EVENTS: Final = "kubectl get events --all-namespaces --field-selector reason=EvictionHeld"
NO_GUARD: Final = (
    "no guard holds evictions here: no eviction controller of dray has told a limit, "
    "and kube-controller-manager has none"
)


class Held(NamedTuple):
    """Something that evicts, and why it does not yet."""

    target: str
    obj: Object
    why: str


def confirm(
    targets: Targets = None,
    format_: Format = output.Format.TEXT,
    *,
    cluster: RunningCluster,
) -> None:
    """List what the guard holds, or confirm that some of it is meant: then its pods leave.

    Exit code 0: confirmed, or something is held; 1: nothing is held, or evicts anybody; 2: cannot.
    """
    work = _list(format_) if not targets else _each(targets, _confirm, "Confirmed")
    raise typer.Exit(live.call(work, "confirm", cluster))


def cancel(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="rule/RULE|node/NODE", help="What is not to evict.", autocompletion=completion.cancellable
        ),
    ],
    *,
    cluster: RunningCluster,
) -> None:
    """Take back an eviction that the guard holds, or that goes on: NoExecute becomes NoSchedule, and nobody leaves.

    Exit code 0: done; 1: some of it evicts nobody; 2: cannot.
    """
    work = _each(targets, _cancel, "Cancelled")
    raise typer.Exit(live.call(work, "cancel", cluster))


def _list(format_: output.Format) -> Any:
    async def work(client: HttpClient) -> int:
        place = await _place(client)
        found = [one async for one in _held(client)]
        if is_guarded := not _is_unguarded(place):
            pools = await _unconfirmed_pools(client)
            found += [Held(f"slice/{pool.slice.metadata.name}", pool.slice, pool.why) for pool in pools]
        untold = await _untold(client) if is_guarded else []
        if format_ is output.Format.JSON:
            output.print_json([{"target": one.target, "why": one.why} for one in found], "HeldList")
        elif found:
            tables.print_table(("HELD", "WHY"), [(one.target, one.why) for one in found])
        else:
            print("No rule or node says that it is held." if untold else "Nothing is held.")
        if untold:
            more = f" and {len(untold) - 1} more" if len(untold) > 1 else ""
            print(f"dray: whether {untold[0]}{more} is held, only events tell: {EVENTS}", file=sys.stderr)
        if not is_guarded:
            print(f"dray: {NO_GUARD}.", file=sys.stderr)
        _warn_if_stopped(place)
        return output.YES if found else output.NO

    return work


async def _place(client: HttpClient) -> Namespace | None:
    """Where controllers tell their limit and people say stop; None for who may not look, and is told nothing."""
    from dray.api.generated.core import Namespace
    from dray.api.kinds import NAMESPACES
    from dray.api.status import ApiError
    from dray.eviction.stop import PLACE

    with contextlib.suppress(ApiError):
        found = await client.get(NAMESPACES, "", PLACE)
        return found if isinstance(found, Namespace) else None
    return None


def _is_unguarded(place: Namespace | None) -> bool:
    from dray.eviction.told_limit import told_limit

    return place is not None and told_limit(place) is None


def _warn_if_stopped(place: Namespace | None) -> None:
    """What is not held does not leave either, as long as everything is stopped."""
    from dray.eviction.stop import tell_stop

    if told := tell_stop(place):
        print(f"dray: {told}.", file=sys.stderr)


async def _held(client: HttpClient) -> Any:
    """Rules and nodes with the condition EvictionHeld, unless they were confirmed or cancelled since it was written."""
    from dray.api.conditions import find_condition
    from dray.api.kinds import NODES, RULES
    from dray.client.calls import list_if_served
    from dray.eviction.rule_condition import EVICTION_HELD
    from dray.maintenance.confirmation import waits

    for word, kind in (("rule", RULES), ("node", NODES)):
        for obj in await list_if_served(client, kind) or ():
            told = find_condition(obj.status.conditions, EVICTION_HELD)  # type: ignore[attr-defined]  # rules and nodes have conditions
            if told is not None and told.status == "True" and waits(obj):
                yield Held(f"{word}/{obj.metadata.name}", obj, told.message)


async def _unconfirmed_pools(client: HttpClient) -> list[Unconfirmed]:
    """Who may not read all that this takes is told that it was not looked at."""
    from dray.api.status import ApiError
    from dray.snapshot.objects import current_time
    from dray.what_if.driver_evictions import unconfirmed_pools

    try:
        snapshot = await live.load_snapshot(client)
    except ApiError as error:
        if error.code != 403:
            raise
        print(f"dray: taints of drivers were not looked at: {error}", file=sys.stderr)
        return []
    return unconfirmed_pools(snapshot, current_time().datetime())


async def _untold(client: HttpClient) -> list[str]:
    """Rules that evict and may be held without saying so."""
    from dray.api.kinds import RULES
    from dray.client.calls import list_if_served
    from dray.maintenance.confirmation import untold

    return list(untold(await list_if_served(client, RULES) or ()))


def _each(targets: Iterable[str], change: Any, verb: str) -> Any:
    async def work(client: HttpClient) -> int:
        from dray.maintenance.confirmation import evicts

        idle = 0
        for target in names.pair(targets, WORDS):
            kind, name = _read(target)
            obj = await client.get(kind, "", name)
            if any(map(evicts, await _alike(client, obj))):
                await client.patch(kind, "", name, change(obj, target))
                print(f"{verb}: {target}.")
            else:
                idle += 1
                print(f"Not {verb.lower()}: {target} evicts nobody, since it has no taint with NoExecute.")
        place = await _place(client)
        if change is _confirm and _is_unguarded(place):
            print(f"dray: {NO_GUARD}.", file=sys.stderr)
        _warn_if_stopped(place)
        return output.NO if idle else output.YES

    return work


async def _alike(client: HttpClient, obj: Object) -> list[Object]:
    """What is confirmed together: the slices of a pool, or an object alone."""
    from dray.api.kinds import SLICES
    from dray.api.resource import ResourceSlice
    from dray.api.resource.pool import pool_of

    if not isinstance(obj, ResourceSlice):
        return [obj]
    slices = (await client.list(SLICES)).items
    return [one for one in slices if isinstance(one, ResourceSlice) and pool_of(one) == pool_of(obj)]


def _read(target: str) -> tuple[Kind, str]:
    from dray.api.kinds import NODES, RULES, SLICES

    word, _, name = target.partition("/")
    kind = {"rule": RULES, "node": NODES, "slice": SLICES}.get(WORDS.get(word.lower(), ""))
    if kind is None or not name:
        output.fail(f"{target!r} is nothing that can be held. Write rule/RULE, node/NODE or slice/SLICE.")
    return kind, name


def _confirm(obj: Object, _target: str) -> dict[str, Any]:
    from dray.maintenance.confirmation import confirming

    return confirming(obj)


def _cancel(obj: Object, target: str) -> dict[str, Any]:
    from dray.maintenance.confirmation import CannotCancel, cancelling

    try:
        return cancelling(obj)
    except CannotCancel as error:
        output.fail(f"{target}: {error}.")
