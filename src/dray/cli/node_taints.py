"""Taints on a node of a running cluster: look, write, wait; and take them away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import typer

from dray.api import codec
from dray.api.generated.core import Node, Taint
from dray.api.registry import by_kind
from dray.api.status import ApiError
from dray.api.times import Time, TimeError
from dray.cli import live, output, tables
from dray.cli.taint_options import Manner, Place, TaintText, mark
from dray.controllers.taint_expiry.node_taints import TAINTS_EXPIRE_AT, TaintName, read, without, write
from dray.snapshot.objects import current_time
from dray.snapshot.taint_preview import TaintPreview, preview_node
from dray.snapshot.taint_preview_text import tell
from dray.snapshot.wording import names
from dray.snapshot.world import NODES as NODES_RESOURCE

if TYPE_CHECKING:
    from dray.cli.waiting import Ending
    from dray.client import Client
    from dray.client.http import HttpClient
    from dray.snapshot import Snapshot

NODES: Final = by_kind("v1", "Node")
ATTEMPTS: Final = 10

Change = Callable[[Node], tuple[tuple[Taint, ...], str | None]]
"""The taints that a node should have, and the annotation about when some of them expire."""


def taint(
    node: str,
    taints: Sequence[TaintText],
    until: Time | None,
    place: Place,
    manner: Manner,
    *,
    until_idle: bool = False,
) -> None:
    """Taints a node after showing who is hit. Ends with 0, or 1 if it did not end in time."""

    async def work(client: HttpClient) -> int:
        snapshot = await live.load_snapshot(client)
        found = _node(snapshot, node)
        now = current_time()
        wanted = tuple(Taint(key=key, value=value, effect=effect) for key, value, effect in taints)
        preview = preview_node(snapshot, found, wanted, now.datetime())
        answer: dict[str, Any] = {"dryRun": manner.dry_run, "preview": preview.to_dict()}
        if not manner.is_json:
            print(tell(preview, tables.width(), is_done=not manner.dry_run))
        code = output.YES
        if manner.dry_run:
            manner.say("\nNothing was changed. Run again without --dry-run to apply.")
        else:
            await _write(client, node, lambda current: _with(current, wanted, until))
            if manner.wait and preview.evicts:
                ending = await _wait(client, preview, taints, until, manner, until_idle=until_idle)
                code, answer["result"] = ending.code, ending.to_dict()
            else:
                manner.say(f"\n{_tell_written(preview, until)}\nPut back with: {_untaint_command(node, taints)}")
        if manner.is_json:
            output.print_json(answer)
        return code

    raise typer.Exit(live.call(work, "taint", kubeconfig=place.kubeconfig, context=place.context))


def untaint(node: str, key: str, effect: str, place: Place, manner: Manner) -> None:
    """Takes taints of a key away from a node. Ends with 0, or 1 if it has none."""

    async def work(client: HttpClient) -> int:
        found = _node(await live.load_snapshot(client), node)
        removed = [TaintName.of(one) for one in found.spec.taints if one.key == key and effect in ("", one.effect)]
        if removed and not manner.dry_run:
            await _write(client, node, lambda current: _without(current, removed))
        if manner.is_json:
            output.print_json({"dryRun": manner.dry_run, "node": node, "taints": list(map(str, removed))})
        elif removed:
            verb = "Would remove" if manner.dry_run else "Removed"
            print(f"{verb} {', '.join(map(str, removed))} from node {node}.")
        else:
            has = names([str(TaintName.of(one)) for one in found.spec.taints]) or "none at all"
            print(f"Node {node} has no taint {key}{f':{effect}' if effect else ''}; it has {has}.")
        return output.YES if removed else output.NO

    raise typer.Exit(live.call(work, "untaint", kubeconfig=place.kubeconfig, context=place.context))


def _node(snapshot: Snapshot, name: str) -> Node:
    found = snapshot.get(NODES_RESOURCE, "", name)
    if not isinstance(found, Node):
        there = sorted(node.metadata.name for node in snapshot.objects(Node))
        output.fail(f"no node {name}; there is {names(there, 5) or 'none at all'}.")
    return found


async def _write(client: Client, name: str, change: Change) -> None:
    """Changes the taints of the node as it is now: nobody else's taint is lost. Raises ApiError."""
    for attempt in range(ATTEMPTS):
        node = await client.get(NODES, "", name)
        assert isinstance(node, Node)
        taints, ends = change(node)
        patch = {
            "metadata": {
                "resourceVersion": node.metadata.resource_version,
                "annotations": {TAINTS_EXPIRE_AT: ends},
            },
            "spec": {"taints": codec.to_builtins(taints) or None},
        }
        try:
            await client.patch(NODES, "", name, patch)
            return
        except ApiError as error:
            if error.code != 409 or attempt == ATTEMPTS - 1:
                raise


def _with(node: Node, wanted: Sequence[Taint], until: Time | None) -> tuple[tuple[Taint, ...], str | None]:
    added = {TaintName.of(taint) for taint in wanted}
    ends = {name: end for name, end in _ends(node).items() if name not in added}
    if until is not None:
        ends |= dict.fromkeys(added, until)
    return (*without(node.spec.taints, added), *wanted), write(ends)


def _without(node: Node, removed: Sequence[TaintName]) -> tuple[tuple[Taint, ...], str | None]:
    ends = {name: end for name, end in _ends(node).items() if name not in removed}
    return without(node.spec.taints, removed), write(ends)


def _ends(node: Node) -> dict[TaintName, Time]:
    try:
        return read(node)
    except TimeError as error:
        output.fail(
            f"node {node.metadata.name}: annotation {TAINTS_EXPIRE_AT}: {error}. Correct or remove it, then try again."
        )


async def _wait(
    client: HttpClient,
    preview: TaintPreview,
    taints: Sequence[TaintText],
    until: Time | None,
    manner: Manner,
    *,
    until_idle: bool,
) -> Ending:
    from dray.cli.eviction_watch import NodeWatch
    from dray.cli.waiting import moving_pods, wait_for
    from dray.reconcile import RealClock

    wanted = {(key, effect) for key, _, effect in taints}
    watch = NodeWatch(client, RealClock(), preview.node, wanted, moving_pods(preview))
    ending = await wait_for(watch, manner, until_idle=until_idle)
    standing = ending.standing
    if standing.is_called_off:
        manner.say(f"✘ called off: the taint is gone; {standing.evicted} of {standing.total} evicted")
        return ending
    parts = [
        _tell_written(preview, until),
        f"{mark(standing.is_evicted)} {standing.evicted} of {standing.total} evicted",
    ]
    parts += [f"{mark(standing.is_idle)} {standing.gone} gone"] if until_idle else []
    manner.say("   ".join([*parts, f"{ending.seconds:.0f} s"]))
    if until_idle and ending.is_done:
        stay = f", but for {len(preview.protected)} pods that tolerate it" if preview.protected else ""
        manner.say(f"Node is idle{stay}. Put back with: {_untaint_command(preview.node, taints)}")
    return ending


def _tell_written(preview: TaintPreview, until: Time | None) -> str:
    return f"✔ tainted (node {preview.node}{f', until {until}' if until is not None else ''})"


def _untaint_command(node: str, taints: Sequence[TaintText]) -> str:
    return " && ".join(f"dray untaint node {node} {key}:{effect}" for key, _, effect in taints)
