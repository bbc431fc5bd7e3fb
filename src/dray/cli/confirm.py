"""`dray confirm` and `dray cancel`: says of what the guard holds that it is meant, or takes it back."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from dray.cli import completion, live, output, tables, targets
from dray.cli.running_cluster import RunningCluster
from dray.cli.taint_options import Format

if TYPE_CHECKING:
    from dray.api.generated.core import Namespace
    from dray.api.meta import Object
    from dray.cli.targets import Found
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

IDLE: Final = "evicts nobody, since it has no taint with NoExecute"
HINT: Final = "is nothing that can be held. Write rule/RULE, node/NODE or slice/SLICE."
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
    wanted: Targets = None,
    format_: Format = output.Format.TEXT,
    *,
    cluster: RunningCluster,
) -> None:
    """List what the guard holds, or confirm that some of it is meant: then its pods leave.

    Exit code 0: confirmed, or something is held; 1: nothing is held, or evicts anybody; 2: cannot.
    """
    work = _list(format_) if not wanted else _each(wanted, _confirm, format_)
    raise typer.Exit(live.call(work, "confirm", cluster))


def cancel(
    wanted: Annotated[
        list[str],
        typer.Argument(
            metavar="rule/RULE|node/NODE", help="What is not to evict.", autocompletion=completion.cancellable
        ),
    ],
    format_: Format = output.Format.TEXT,
    *,
    cluster: RunningCluster,
) -> None:
    """Take back an eviction that the guard holds, or that goes on: NoExecute becomes NoSchedule, and nobody leaves.

    A drain ends, too. Exit code 0: done; 1: some of it evicts nobody; 2: cannot.
    """
    work = _each(wanted, _cancel, format_)
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


def _each(words: Iterable[str], look: Any, format_: output.Format = output.Format.TEXT) -> Any:
    """`look` says of what one target stands for the patch to make and what to say; all are looked at before any is."""

    async def work(client: HttpClient) -> int:
        found = await targets.find(client, words, HINT)
        looked = [(target, *look(target, await _alike(client, target.obj))) for target in found]
        for target, patch, said in looked:
            if patch is not None:
                await client.patch(target.kind, "", target.obj.metadata.name, patch)
            if format_ is output.Format.TEXT:
                print(said, flush=True)
        if format_ is output.Format.JSON and look is _confirm:
            output.print_json(_items(looked, "confirmed"), "ConfirmationList")
        elif format_ is output.Format.JSON:
            output.print_json(_items(looked, "cancelled"), "CancellationList")
        place = await _place(client)
        if look is _confirm and _is_unguarded(place):
            print(f"dray: {NO_GUARD}.", file=sys.stderr)
        _warn_if_stopped(place)
        return output.YES if all(patch is not None for _, patch, _ in looked) else output.NO

    return work


def _items(looked: Iterable[tuple[Found, Any, str]], done: str) -> list[dict[str, Any]]:
    return [{"target": one.text, done: patch is not None, "told": said} for one, patch, said in looked]


async def _alike(client: HttpClient, obj: Object) -> list[Object]:
    """What is confirmed together: the slices of a pool, or an object alone."""
    from dray.api.kinds import SLICES
    from dray.api.resource import ResourceSlice
    from dray.api.resource.pool import pool_of

    if not isinstance(obj, ResourceSlice):
        return [obj]
    slices = (await client.list(SLICES)).items
    return [one for one in slices if isinstance(one, ResourceSlice) and pool_of(one) == pool_of(obj)]


def _confirm(target: Found, alike: list[Object]) -> tuple[dict[str, Any] | None, str]:
    from dray.maintenance.confirmation import confirming, evicts, has_drain

    if any(map(evicts, alike)):
        return confirming(target.obj), f"Confirmed: {target.text}."
    why = "is drained, and no guard holds that: pods leave while the drain goes on" if has_drain(target.obj) else IDLE
    return None, f"Not confirmed: {target.text} {why}."


def _cancel(target: Found, alike: list[Object]) -> tuple[dict[str, Any] | None, str]:
    from dray.maintenance.confirmation import CannotCancel, cancelling, evicts, has_drain

    if not has_drain(target.obj) and not any(map(evicts, alike)):
        return None, f"Not cancelled: {target.text} {IDLE}."
    try:
        return cancelling(target.obj), f"Cancelled: {target.text}."
    except CannotCancel as error:
        output.fail(f"{target.text}: {error}.")
