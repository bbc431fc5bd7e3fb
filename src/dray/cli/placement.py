"""`dray placement`: the placements of a hub, what they have been given, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dray.api.references import full_name
from dray.cli import completion, live, names, output, tables
from dray.cli.running_cluster import RunningCluster
from dray.live.hubs import load_fleet
from dray.prose import wording

if TYPE_CHECKING:
    from dray.api.cluster import Placement, PlacementDecision
    from dray.placement import FleetObject

NOTHING = "–"
CLUSTERS_NAMED = 5

app = typer.Typer(
    help="The placements of a hub: which clusters they have, and why.", no_args_is_help=True, rich_markup_mode=None
)


@app.command("list")
def list_placements(
    namespace: names.OnlyNamespace = "",
    all_namespaces: names.AllNamespaces = False,
    format_: Annotated[
        output.TableFormat, typer.Option("--output", "-o", help="How to print.")
    ] = output.TableFormat.TABLE,
    *,
    cluster: RunningCluster,
) -> None:
    """Show placements with their clusters. Exit code 0: there are some; 1: there are none; 2: they cannot be read."""
    namespace = names.one_of(namespace, all_namespaces=all_namespaces)
    objects = live.call(load_fleet, "placement", cluster)
    found = [one for one in _placements(objects) if namespace in ("", one.metadata.namespace)]
    decided = _decided(objects)
    if format_ is not output.TableFormat.TABLE:
        shown = [_describe(one, decided.get(_key(one), ())) for one in found]
        tables.print_value(shown, "PlacementList", as_yaml=format_ is output.TableFormat.YAML)
    elif found:
        header = ("PLACEMENT", "SATISFIED", "SELECTED", "CLUSTERS")
        tables.print_table(header, [_row(one, decided.get(_key(one), ())) for one in found])
    else:
        print(f"No placements{f' in namespace {namespace}' if namespace else ''}.")
    raise typer.Exit(output.YES if found else output.NO)


@app.command("describe")
def describe(
    name: Annotated[
        str, typer.Argument(metavar="[NAMESPACE/]NAME", help="A Placement.", autocompletion=completion.placements)
    ],
    namespace: names.Namespace = "",
    format_: Annotated[output.Format, typer.Option("--output", "-o", help="How to print.")] = output.Format.TEXT,
    *,
    cluster: RunningCluster,
) -> None:
    """Show what a placement has been given, group by group, and why the other clusters were not chosen.

    Exit code 0: it has what it asks for; 1: it has not; 2: it cannot be read.
    """
    from dray.cli.explain import print_placement
    from dray.snapshot import SnapshotError, from_objects
    from dray.snapshot.objects import current_time

    name = names.read(name, namespace, "placement")
    objects = live.call(load_fleet, "placement", cluster)
    try:
        placed = from_objects(objects).place(name, now=current_time().datetime())
    except SnapshotError as error:
        output.fail(f"{error}.")
    key = placed.result.placement
    (found,) = [one for one in _placements(objects) if _key(one) == tuple(key)]
    shown = _describe(found, _decided(objects).get(_key(found), ()))
    if format_ is output.Format.JSON:
        output.print_json({**shown, "explanation": placed.explain().to_dict()}, "PlacementDescription")
    else:
        _print(shown)
        print_placement(placed.explain(), placed.requeue_after)
    raise typer.Exit(output.YES if shown["satisfied"] else output.NO)


def _placements(objects: tuple[FleetObject, ...]) -> list[Placement]:
    from dray.api.cluster import Placement

    return sorted((one for one in objects if isinstance(one, Placement)), key=_key)


def _key(placement: Placement) -> tuple[str, str]:
    return placement.metadata.namespace, placement.metadata.name


def _decided(objects: tuple[FleetObject, ...]) -> dict[tuple[str, str], tuple[PlacementDecision, ...]]:
    """Every placement's PlacementDecisions, in their order."""
    from dray.api.cluster import PlacementDecision
    from dray.api.cluster.placement_decision import PLACEMENT_LABEL

    found: dict[tuple[str, str], list[PlacementDecision]] = {}
    for one in objects:
        if isinstance(one, PlacementDecision):
            found.setdefault((one.metadata.namespace, one.metadata.labels.get(PLACEMENT_LABEL, "")), []).append(one)
    return {key: tuple(sorted(decisions, key=_number)) for key, decisions in found.items()}


def _number(decision: PlacementDecision) -> tuple[int, str]:
    number = decision.metadata.name.rpartition("-")[2]
    return (int(number) if number.isdecimal() else 0, decision.metadata.name)


def _row(placement: Placement, decisions: tuple[PlacementDecision, ...]) -> tuple[str, ...]:
    shown = _describe(placement, decisions)
    clusters = shown["clusters"]
    named = wording.names(clusters, CLUSTERS_NAMED)
    wanted = placement.spec.number_of_clusters
    count = str(len(clusters)) if wanted is None else f"{len(clusters)} of {wanted}"
    state = "yes" if shown["satisfied"] else f"no: {shown['reason']}" if shown["reason"] else "not decided"
    return full_name(placement), state, count, named or NOTHING


def _describe(placement: Placement, decisions: tuple[PlacementDecision, ...]) -> dict[str, Any]:
    from dray.api.cluster.placement import CONDITION_MISCONFIGURED, CONDITION_SATISFIED

    conditions = {one.type: one for one in placement.status.conditions}
    satisfied, misconfigured = conditions.get(CONDITION_SATISFIED), conditions.get(CONDITION_MISCONFIGURED)
    problem = misconfigured.message if misconfigured is not None and misconfigured.status == "True" else None
    return {
        "placement": full_name(placement),
        "satisfied": satisfied is not None and satisfied.status == "True",
        "reason": satisfied.reason if satisfied is not None else "",
        "message": satisfied.message if satisfied is not None else "",
        "misconfigured": problem,
        "clusters": [entry.cluster_name for one in decisions for entry in one.status.decisions],
        "decisions": {one.metadata.name: [entry.cluster_name for entry in one.status.decisions] for one in decisions},
        "groups": [
            {"index": one.decision_group_index, "name": one.decision_group_name, "decisions": list(one.decisions)}
            for one in placement.status.decision_groups
        ],
    }


def _print(shown: dict[str, Any]) -> None:
    state = "satisfied" if shown["satisfied"] else f"not satisfied ({shown['reason'] or 'not decided yet'})"
    print(f"{shown['placement']} is {state}. {shown['message']}".rstrip())
    for group in shown["groups"]:
        for name in group["decisions"]:
            label = f"group {group['index']}" + (f" {group['name']}" if group["name"] else "")
            print(f"  {label}, {name}: {', '.join(shown['decisions'].get(name, ())) or 'no clusters'}")
    print("\nDecided now, it would be:")
