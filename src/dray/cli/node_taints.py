"""Taints on nodes of a running cluster: look, write, wait; and take them away."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import typer
from msgspec.structs import replace

from dray.api import codec
from dray.api.generated.core import Node, Taint
from dray.api.kinds import NODES
from dray.api.node_annotations import TAINTS_EXPIRE_AT, Ration, rations_without, read_ends, read_rations, write_entries
from dray.api.resource.rule_annotations import EVICTIONS_PER_SECOND
from dray.api.resource.taint import EFFECT_NO_EXECUTE, EFFECT_NO_SCHEDULE
from dray.api.status import ApiError
from dray.api.taints import TaintName, taint_text, without
from dray.api.times import Time, TimeError
from dray.api.well_known import MAINTENANCE, OWN_SERVER
from dray.cli import inputs, live, output, tables
from dray.cli.running_cluster import RunningCluster
from dray.cli.taint_options import Manner, TaintText, Terms, confirm_many, mark
from dray.client.calls import patch_as_it_is
from dray.eviction.confirmations import CONFIRM_ANNOTATION, confirmations_without
from dray.eviction.drain import DRAIN_ANNOTATION, drain_taints, undraining
from dray.prose.wording import count, ends, names, there_is
from dray.snapshot.objects import current_time
from dray.what_if.drain_preview import paced, tell_broken, tell_ended
from dray.what_if.taint_preview import TaintPreview, preview_nodes
from dray.what_if.taint_preview_text import tell

if TYPE_CHECKING:
    from dray.cli.waiting import Ending
    from dray.client import Client
    from dray.client.http import HttpClient
    from dray.snapshot import Snapshot


class WantedTaints(NamedTuple):
    """The taints that a node should have, and annotations about them; None if there is nothing to say."""

    taints: tuple[Taint, ...]
    annotations: dict[str, str | None]


Change = Callable[[Node], WantedTaints]


def taint(nodes: Sequence[str], texts: Sequence[TaintText], terms: Terms, source: live.Source, manner: Manner) -> None:
    """Taints nodes after showing who is hit. Ends with 0, or 1 if it did not end in time."""
    evicting = taints = tuple(Taint(key=key, value=value, effect=effect) for key, value, effect in texts)
    ration = _ration(nodes, taints, terms.rate)
    if manner.drain is not None:
        taints, ration = tuple(replace(one, effect=EFFECT_NO_SCHEDULE) for one in evicting), None

    async def work(client: HttpClient | None) -> int:
        snapshot = inputs.load(source.given) if client is None else await live.load_snapshot(client)
        found = [_node(snapshot, name) for name in nodes]
        for node in found:
            _with(node, taints, terms, ration, manner)  # complains before anything is written
        if ration is not None and client is not None:
            await _warn_of_other_servers(client)
        await live.warn_of_end(client, terms.until)
        drains = manner.drain is not None
        preview = preview_nodes(snapshot, found, evicting, current_time().datetime(), ration, drains=drains)
        if manner.drain is not None:
            preview = paced(preview, manner.drain, tuple(map(taint_text, taints)), snapshot)
            preview = replace(preview, notes=(*_tell_replaced(found, taints, manner), *preview.notes))
        else:
            broken = tell_broken(preview) if preview.evicts else ()
            ended = tell_ended(f"node/{node.metadata.name}" for node in found if _ends_drain(node, taints))
            preview = replace(preview, notes=(*broken, *ended, *preview.notes))
        answer: dict[str, Any] = {"dryRun": manner.dry_run, "preview": preview.to_dict()}
        if not manner.is_json:
            print(tell(preview, tables.width(), is_done=not manner.dry_run, rest=tables.REST))
        code = output.YES
        if manner.dry_run or client is None:
            manner.say("\nNothing was changed. Run again without --dry-run to apply.")
        else:
            confirm_many(preview, manner)
            await _write_all(client, nodes, lambda current: _with(current, taints, terms, ration, manner))
            if manner.wait and preview.evicts:
                ending = await _wait(client, preview, taints, terms.until, manner)
                code, answer["result"] = ending.code, ending.to_dict()
            else:
                written = _tell_written(preview.nodes, await live.tell_end(client, terms.until))
                manner.say(f"\n{written}\nPut back with: {_untaint_command(nodes, taints)}")
        if manner.is_json:
            output.print_json(answer, "Taint")
        return code

    if source.given:
        raise typer.Exit(asyncio.run(work(None)))
    raise typer.Exit(live.call(work, "taint", source))


def untaint(words: Sequence[str], key: str, effect: str, cluster: RunningCluster, manner: Manner) -> None:
    """Takes taints of a key away from nodes. Ends with 0, or 1 if none of them has one.

    `words` are nodes; the last one may be the key instead, if there is no such node and no key is given.
    """

    async def work(client: HttpClient) -> int:
        snapshot = await live.load_snapshot(client)
        nodes, wanted = list(words), key
        if not key and len(nodes) > 1 and snapshot.get(NODES.resource, "", nodes[-1]) is None:
            wanted = nodes.pop()
        wanted = wanted or MAINTENANCE
        removed: dict[str, list[TaintName]] = {}
        for node in [_node(snapshot, name) for name in nodes]:
            has = [TaintName.of(one) for one in node.spec.taints]
            removed[node.metadata.name] = [one for one in has if one.key == wanted and effect in ("", one.effect)]
            _without(node, removed[node.metadata.name])  # complains before anything is written
        hit = [name for name, taints in removed.items() if taints]
        if not manner.dry_run:
            await _write_all(client, hit, lambda current: _without(current, removed[current.metadata.name]))
        for name, taints in removed.items():
            _tell_removed(_node(snapshot, name), taints, TaintName(wanted, effect), manner)
        if manner.is_json:
            told = {name: list(map(str, taints)) for name, taints in removed.items()}
            output.print_json({"dryRun": manner.dry_run, "nodes": told}, "NodeUntaint")
        return output.YES if hit else output.NO

    raise typer.Exit(live.call(work, "untaint", cluster))


def _ration(nodes: Sequence[str], taints: Sequence[Taint], rate: int | None) -> Ration | None:
    """One rate for all nodes of a command, which form a group: the same again for the same nodes and taints."""
    evicting = [str(TaintName.of(one)) for one in taints if one.effect == EFFECT_NO_EXECUTE]
    if rate is None:
        return None
    if not evicting:
        output.fail(
            f"--evictions-per-second {rate}: none of the taints evicts. Give one the effect {EFFECT_NO_EXECUTE}."
        )
    if len(nodes) == 1:
        return Ration(rate)
    digest = hashlib.sha256("\0".join([*sorted(nodes), *sorted(evicting)]).encode()).hexdigest()[:8]
    return Ration(rate, f"drain-{digest}")


async def _warn_of_other_servers(client: HttpClient) -> None:
    """Annotations are kept everywhere, but only dray's controller reads this one."""
    if OWN_SERVER not in await client.server_version():
        live.warn_of_rate("taint-eviction-controller")


def _node(snapshot: Snapshot, name: str) -> Node:
    found = snapshot.get(NODES.resource, "", name)
    if not isinstance(found, Node):
        known = there_is(node.metadata.name for node in snapshot.objects(Node))
        output.fail(f"no node {name}; {known}. A taint is written KEY:EFFECT.")
    return found


async def _write_all(client: Client, nodes: Sequence[str], change: Change) -> None:
    """Changes node after node. If one cannot be, says which ones are, and ends with exit code 2."""
    for number, name in enumerate(nodes):
        try:
            await _write(client, name, change)
        except ApiError as error:
            done = f" Done before: {names(nodes[:number], 20)}." if number else ""
            output.fail(f"node {name}: {error}.{done}")


async def _write(client: Client, name: str, change: Change) -> None:
    """Changes the taints of the node as it is now: nobody else's taint is lost. Raises ApiError."""

    def patch_of(node: Node) -> dict[str, Any]:
        wanted = change(node)
        taints = codec.to_builtins(wanted.taints) or None
        return {"metadata": {"annotations": wanted.annotations}, "spec": {"taints": taints}}

    await patch_as_it_is(client, NODES, name, Node, patch_of)


def _evicting(taints: Iterable[Taint], manner: Manner) -> set[TaintName]:
    """The taints whose place those of a drain take: one with their key that evicts would do so whatever budgets say."""
    return {TaintName(one.key, EFFECT_NO_EXECUTE) for one in taints} if manner.drain is not None else set()


def _tell_replaced(nodes: Sequence[Node], taints: Sequence[Taint], manner: Manner) -> Iterator[str]:
    for name in sorted(_evicting(taints, manner)):
        has = [node.metadata.name for node in nodes if name in map(TaintName.of, node.spec.taints)]
        if has:
            yield f"{name} of {names(has, 5)} makes way for it: that evicts whatever disruption budgets say."


def _ends_drain(node: Node, taints: Iterable[Taint]) -> bool:
    return not {TaintName.of(one) for one in drain_taints(node)}.isdisjoint(map(TaintName.of, taints))


def _with(node: Node, wanted: Sequence[Taint], terms: Terms, ration: Ration | None, manner: Manner) -> WantedTaints:
    """What is not said anew about a taint that is replaced is not so any more."""
    added, until = {TaintName.of(taint) for taint in wanted}, terms.until
    replaced = added | _evicting(wanted, manner)
    ends = _ends(node, replaced) | (dict.fromkeys(added, until) if until is not None else {})
    evicting = [name for name in added if name.effect == EFFECT_NO_EXECUTE]
    rations = _rations(node, replaced) | (dict.fromkeys(evicting, ration) if ration is not None else {})
    new = [name.key for name in added if name not in map(TaintName.of, node.spec.taints)]
    told = {
        TAINTS_EXPIRE_AT: write_entries(ends),
        EVICTIONS_PER_SECOND: write_entries(rations),
        CONFIRM_ANNOTATION: confirmations_without(node.metadata.annotations, new),
        **_drained_by(node, added, is_so=manner.drain is not None),
    }
    return WantedTaints((*without(node.spec.taints, replaced), *wanted), told)


def _without(node: Node, removed: Collection[TaintName]) -> WantedTaints:
    left, has = without(node.spec.taints, removed), node.metadata.annotations
    told = {
        TAINTS_EXPIRE_AT: write_entries(_ends(node, removed)),
        EVICTIONS_PER_SECOND: rations_without(has, removed, left),
        CONFIRM_ANNOTATION: confirmations_without(has, [name.key for name in removed]),
        **_drained_by(node, removed, is_so=False),
    }
    return WantedTaints(left, told)


def _drained_by(node: Node, names: Collection[TaintName], *, is_so: bool) -> dict[str, str | None]:
    """The annotations that say with which taints the node is drained: with these, too, or (not so) no longer."""
    told = undraining(node.metadata.annotations, names)
    left = told[DRAIN_ANNOTATION]
    return {DRAIN_ANNOTATION: ",".join([*([left] if left else ()), *map(str, sorted(names))])} if is_so else told


def _ends(node: Node, removed: Collection[TaintName]) -> dict[TaintName, Time]:
    """When taints end, but for those."""
    try:
        return {name: end for name, end in read_ends(node.metadata.annotations).items() if name not in removed}
    except TimeError as error:
        _complain(node, TAINTS_EXPIRE_AT, str(error))


def _rations(node: Node, removed: Collection[TaintName]) -> dict[TaintName, Ration]:
    """How fast pods leave for taints, but for those."""
    entries, problems = read_rations(node.metadata.annotations)
    if problems:
        _complain(node, EVICTIONS_PER_SECOND, problems[0])
    return {name: ration for name, ration in entries.items() if name not in removed}


def _complain(node: Node, annotation: str, problem: str) -> NoReturn:
    output.fail(f"node {node.metadata.name}: annotation {annotation}: {problem}. Correct or remove it, then try again.")


async def _wait(
    client: HttpClient, preview: TaintPreview, taints: Sequence[Taint], until: Time | None, manner: Manner
) -> Ending:
    from dray.cli.waiting import moving_pods, wait_for
    from dray.controllers.eviction.progress import NodeProgress
    from dray.reconcile import RealClock

    drains = manner.drain is not None
    names_ = map(TaintName.of, taints)
    progress = NodeProgress(client, RealClock(), preview.nodes, names_, moving_pods(preview), drains=drains)
    ending = await wait_for(progress, manner, client)
    standing = ending.standing
    if standing.is_called_off:
        why = _tell_why(preview.nodes, standing.deleted, drains=drains)
        manner.say(f"✘ called off: {why}; {standing.evicted} of {standing.total} evicted")
        return ending
    tainted = [name for name in preview.nodes if name not in standing.untainted]
    parts = [
        _tell_written(tainted, await live.tell_end(client, until)),
        f"{mark(standing.is_evicted)} {standing.evicted} of {standing.total} evicted",
    ]
    parts += [f"{mark(standing.is_idle)} {standing.gone} gone"] if manner.until_idle else []
    manner.say("   ".join([*parts, f"{ending.seconds:.0f} s"]))
    undo = _untaint_command(tainted, taints)
    if others := ending.tell_others():
        manner.say(others)
    if not ending.is_done:
        manner.say(f"{count(standing.total - standing.gone, 'pod')} still there. {ending.goes_on}: {undo}")
    elif manner.until_idle:
        what = "Node is" if len(tainted) == 1 else f"{len(tainted)} nodes are"
        stay = ending.tell_rest(len(preview.protected), len(preview.left_alone))
        manner.say(f"{what} idle{stay}. Put back with: {undo}")
    else:
        manner.say(f"Put back with: {undo}")
    return ending


def _tell_why(nodes: Sequence[str], deleted: Sequence[str], *, drains: bool) -> str:
    """Why nobody has to leave any of the nodes any more."""
    gone = f"{'node' if len(deleted) == 1 else 'nodes'} {names(deleted, 5)} {'is' if len(deleted) == 1 else 'are'} gone"
    taken_back = "the taint or the drain was taken back" if drains else "the taint is gone"
    if not deleted:
        return taken_back
    return gone if len(deleted) == len(nodes) else f"{taken_back}, and {gone}"


def _tell_written(nodes: Sequence[str], end: str) -> str:
    what = f"node {nodes[0]}" if len(nodes) == 1 else f"nodes {ends(nodes)}"
    return f"✔ tainted ({what}{end})"


def _tell_removed(node: Node, removed: Sequence[TaintName], wanted: TaintName, manner: Manner) -> None:
    if removed:
        verb = "Would remove" if manner.dry_run else "Removed"
        manner.say(f"{verb} {', '.join(map(str, removed))} from node {node.metadata.name}.")
    else:
        has = names([str(TaintName.of(one)) for one in node.spec.taints]) or "none at all"
        text = f"{wanted.key}{f':{wanted.effect}' if wanted.effect else ''}"
        manner.say(f"Node {node.metadata.name} has no taint {text}; it has {has}.")


def _untaint_command(nodes: Sequence[str], taints: Sequence[Taint]) -> str:
    return " && ".join(f"dray untaint node {' '.join(nodes)} {TaintName.of(one)}" for one in taints)
