"""Taints on a cluster of a running hub: look at which placements lose it, write; and take them away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import typer
from msgspec.structs import replace

from dray.api import codec
from dray.api.cluster import ManagedCluster, Taint
from dray.api.cluster.managed_cluster import AUTOMATIC_TAINTS
from dray.api.kinds import CLUSTERS
from dray.api.taints import taint_text
from dray.cli import live, output, tables
from dray.cli.running_cluster import RunningCluster
from dray.cli.taint_options import Manner, TaintText
from dray.client.calls import patch_as_it_is
from dray.live.hubs import load_fleet
from dray.placement import PlacementChange, preview_change
from dray.prose.wording import count, names, rest, there_is
from dray.snapshot.objects import current_time

if TYPE_CHECKING:
    from dray.client import Client
    from dray.client.http import HttpClient
    from dray.placement import FleetObject

ROWS: Final = 50
"""How many placements a preview lists for people."""
NOTHING: Final = "–"

Change = Callable[[ManagedCluster], tuple[Taint, ...]]
"""The taints that a cluster should have."""


def taint(name: str, taints: Sequence[TaintText], cluster: RunningCluster, manner: Manner) -> None:
    """Taints a cluster after showing which placements lose it. Ends with 0."""
    now = current_time()
    wanted = tuple(Taint(key=key, value=value, effect=effect, time_added=now) for key, value, effect in taints)
    undo = " && ".join(f"dray untaint cluster {name} {key}:{effect}" for key, _, effect in taints)

    async def work(client: HttpClient) -> int:
        objects = await load_fleet(client)
        changes = _preview(objects, _find(objects, name), lambda cluster: _with(cluster, wanted))
        if not manner.dry_run:
            await _write(client, name, lambda cluster: _with(cluster, wanted))
        _show(name, changes, manner)
        if not manner.dry_run:
            manner.say(f"\n✔ tainted (cluster {name})\nPut back with: {undo}")
        if any(one.key in AUTOMATIC_TAINTS for one in wanted):
            manner.say(
                "The hub sets this taint itself, and takes it away while the cluster is available: use another key."
            )
        return output.YES

    raise typer.Exit(live.call(work, "taint", cluster))


def untaint(name: str, key: str, effect: str, cluster: RunningCluster, manner: Manner) -> None:
    """Takes taints of a key away from a cluster. Ends with 0, or 1 if it has none."""

    async def work(client: HttpClient) -> int:
        objects = await load_fleet(client)
        found = _find(objects, name)
        if _without(found, key, effect) == found.spec.taints:
            has = names([taint_text(one) for one in found.spec.taints]) or "none at all"
            manner.say(f"Cluster {name} has no taint {key}{f':{effect}' if effect else ''}; it has {has}.")
            if manner.is_json:
                output.print_json({"cluster": name, "dryRun": manner.dry_run, "placements": []}, "ClusterTaint")
            return output.NO
        changes = _preview(objects, found, lambda cluster: _without(cluster, key, effect))
        if not manner.dry_run:
            await _write(client, name, lambda cluster: _without(cluster, key, effect))
        _show(name, changes, manner)
        if not manner.dry_run:
            manner.say(f"\n✔ taint {key} removed (cluster {name})")
        if key in AUTOMATIC_TAINTS:
            manner.say("The hub sets this taint itself: it comes back unless the cluster is available.")
        return output.YES

    raise typer.Exit(live.call(work, "untaint", cluster))


def _find(objects: Sequence[FleetObject], name: str) -> ManagedCluster:
    clusters = {obj.metadata.name: obj for obj in objects if isinstance(obj, ManagedCluster)}
    if name not in clusters:
        output.fail(f"no cluster {name}; {there_is(clusters)}.")
    return clusters[name]


def _preview(objects: Sequence[FleetObject], cluster: ManagedCluster, change: Change) -> list[PlacementChange]:
    changed = replace(cluster, spec=replace(cluster.spec, taints=change(cluster)))
    return preview_change(objects, changed, current_time().datetime())


async def _write(client: Client, name: str, change: Change) -> None:
    """Changes the taints of the cluster as it is now: nobody else's taint is lost. Raises ApiError."""

    def patch_of(cluster: ManagedCluster) -> dict[str, Any]:
        return {"spec": {"taints": codec.to_builtins(change(cluster)) or None}}

    await patch_as_it_is(client, CLUSTERS, name, ManagedCluster, patch_of)


def _with(cluster: ManagedCluster, wanted: Sequence[Taint]) -> tuple[Taint, ...]:
    """Of one key and effect there is one taint; if it is there already with this value, it stays as old as it is."""
    added = {(one.key, one.effect): one for one in wanted}
    kept = [one for one in cluster.spec.taints if (one.key, one.effect) not in added]
    old = {(one.key, one.effect, one.value): one for one in cluster.spec.taints}
    return (*kept, *(old.get((one.key, one.effect, one.value), one) for one in wanted))


def _without(cluster: ManagedCluster, key: str, effect: str) -> tuple[Taint, ...]:
    return tuple(one for one in cluster.spec.taints if one.key != key or effect not in ("", one.effect))


def _show(name: str, changes: Sequence[PlacementChange], manner: Manner) -> None:
    if manner.is_json:
        shown = {"cluster": name, "dryRun": manner.dry_run, "placements": [change.to_dict() for change in changes]}
        output.print_json(shown, "ClusterTaint")
        return
    would = "would " if manner.dry_run else ""
    losing = sum(change.loses for change in changes)
    gaining = sum(not change.had and change.has for change in changes)
    having = count(sum(change.had for change in changes), "placement")
    verb = "lose" if would or losing != 1 else "loses"
    print(f"Cluster {name} is selected by {having}; {losing} {would}{verb} it, {gaining} {would}get it.")
    if changes:
        print()
        header = ("placement", "cluster", "gets instead", "has then")
        tables.print_table(header, [_row(change) for change in changes[:ROWS]])
    if len(changes) > ROWS:
        print(*rest(len(changes) - ROWS, "placement", tables.REST), sep="\n")
    if manner.dry_run:
        print("\nNothing was changed. Run again without --dry-run to apply.")


def _row(change: PlacementChange) -> tuple[str, str, str, str]:
    if change.had and change.has:
        lot = "stays" if change.leaves_after is None else f"stays for {change.leaves_after:.0f} s"
    else:
        lot = "leaves" if change.had else "comes" if change.has else "was not selected"
    count = str(change.selected) if change.wanted is None else f"{change.selected} of {change.wanted}"
    others = change.gained if change.loses else ()
    return str(change.placement), lot, ", ".join(others[:5]) or NOTHING, count + (" (short)" if change.is_short else "")
