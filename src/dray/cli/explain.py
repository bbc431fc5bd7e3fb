"""`dray explain`: why a claim, a pod or a PodGroup is pending, and why a placement chose the clusters that it chose.

With files, of the cluster in them; without, of the running one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from dray.api.references import full_name
from dray.cli import completion, inputs, live, names, output, tables

if TYPE_CHECKING:
    from dray.api.resource import ResourceClaim
    from dray.placement import Explanation
    from dray.snapshot import Snapshot
    from dray.snapshot.explanation import ClaimExplanation

app = typer.Typer(
    help="Why a claim, a pod or a PodGroup is pending, or a placement has the clusters that it has.",
    cls=names.ByKind,
    no_args_is_help=True,
    rich_markup_mode=None,
)

MORE: Final = "\nDetails, with all names: --node NODE, or -o json."
"""Said under what shortens lists of names."""

Format = Annotated[output.Format, typer.Option("--output", "-o", help="How to print; json has the whole tree.")]
Node = Annotated[str | None, names.node_option("Only this node, device by device.")]


@app.command("claim")
def explain_claim(
    name: Annotated[
        str, typer.Argument(metavar="[NAMESPACE/]NAME", help="A ResourceClaim.", autocompletion=completion.claims)
    ],
    namespace: names.Namespace = "",
    *,
    source: live.Source,
    node: Node = None,
    now: inputs.Now = None,
    format_: Format = output.Format.TEXT,
) -> None:
    """Say why a claim fits or not: node by node, with the closest node and what would make it fit.

    Without -f of the running cluster. Exit code 0: it is allocated, or fits; 1: it does not fit; 2: input cannot be
    read or judged.
    """
    from dray.snapshot import SnapshotError
    from dray.snapshot.device_troubles import tell_short_stays

    name = names.read(name, namespace, "claim")
    moment = inputs.read_time(now)
    snapshot = _load(source, node)
    try:
        claim = snapshot.claim(name)
        if claim.status.allocation is not None:
            _show_allocated(snapshot, claim, format_)
            raise typer.Exit(output.YES)
        with inputs.busy("Explaining"):
            explanation = snapshot.explain(name, nodes=[node] if node else None)
            notes = tell_short_stays(snapshot, snapshot.allocate(name, node=node)) if _fits(explanation) else []
    except SnapshotError as error:
        output.fail(f"{error}.")
    if format_ is output.Format.JSON:
        output.print_json({**explanation.to_dict(), "notes": notes}, "ClaimExplanation")
    else:
        print("\n".join([explanation.text(now=moment, width=tables.width()), *notes]))
        if node is None and not _fits(explanation) and len(snapshot.nodes()) > 1:
            print(MORE)
    raise typer.Exit(_exit_code(explanation))


@app.command("pod")
def explain_waiting_pod(
    name: Annotated[str, typer.Argument(metavar="[NAMESPACE/]NAME", help="A Pod.", autocompletion=completion.pods)],
    namespace: names.Namespace = "",
    *,
    source: live.Source,
    node: Node = None,
    now: inputs.Now = None,
    format_: Format = output.Format.TEXT,
) -> None:
    """Say why a pod has no node, or cannot start on it: what keeps it away, and why its claims do not fit.

    Without -f of the running cluster. Exit code 0: it has a node, or fits on one; 1: it does not fit, or cannot start
    on the node that it has; 2: input cannot be read, or it is for another scheduler and cannot be judged.
    """
    from dray.snapshot import SnapshotError
    from dray.snapshot.pod_explanation import explain_pod

    name = names.read(name, namespace, "pod")
    moment = inputs.read_time(now)
    snapshot = _load(source, node)
    try:
        with inputs.busy("Explaining"):
            explanation = explain_pod(snapshot, name, nodes=[node] if node else None)
    except SnapshotError as error:
        output.fail(f"{error}.")
    if format_ is output.Format.JSON:
        output.print_json(explanation.to_dict(), "PodExplanation")
    else:
        print(explanation.text(now=moment, width=tables.width()))
        is_about_nodes = explanation.claims is not None or bool(explanation.unsuitable)
        if node is None and is_about_nodes and len(snapshot.nodes()) > 1:
            print(MORE)
    codes = {"pending": output.NO, "stuck": output.NO, "unjudged": output.CANNOT}
    raise typer.Exit(codes.get(explanation.status, output.YES))


@app.command("podgroup")
def explain_pod_group(
    name: Annotated[
        str, typer.Argument(metavar="[NAMESPACE/]NAME", help="A PodGroup.", autocompletion=completion.pod_groups)
    ],
    namespace: names.Namespace = "",
    *,
    source: live.Source,
    now: inputs.Now = None,
    format_: Format = output.Format.TEXT,
) -> None:
    """Say what a group of pods lacks: how many of them are there and fit at once, and what stops the next one.

    Without -f of the running cluster. Exit code 0: enough of its pods have nodes, or fit; 1: they do not; 2: input
    cannot be read.
    """
    from dray.snapshot import SnapshotError
    from dray.snapshot.group_explanation import explain_group

    name = names.read(name, namespace, "podgroup")
    moment = inputs.read_time(now)
    snapshot = _load(source, None)
    try:
        with inputs.busy("Explaining"):
            explanation = explain_group(snapshot, name)
    except SnapshotError as error:
        output.fail(f"{error}.")
    if format_ is output.Format.JSON:
        output.print_json(explanation.to_dict(), "PodGroupExplanation")
    else:
        print(explanation.text(now=moment, width=tables.width()))
    raise typer.Exit(output.NO if explanation.status == "pending" else output.YES)


@app.command("placement")
def explain_placement(
    name: Annotated[
        str, typer.Argument(metavar="[NAMESPACE/]NAME", help="A Placement.", autocompletion=completion.placements)
    ],
    namespace: names.Namespace = "",
    *,
    source: live.Source,
    now: inputs.Now = None,
    format_: Format = output.Format.TEXT,
) -> None:
    """Say which clusters a placement gets, and why not the others.

    Without -f of the running hub. Exit code 0: it gets what it asks for; 1: it does not; 2: input cannot be read.
    """
    from dray.snapshot import SnapshotError

    name = names.read(name, namespace, "placement")
    moment = inputs.read_time(now)
    snapshot = _load_fleet(source)
    try:
        placed = snapshot.place(name, now=moment)
    except SnapshotError as error:
        output.fail(f"{error}.")
    if format_ is output.Format.JSON:
        output.print_json(
            {**placed.result.to_dict(), "explanation": placed.explain().to_dict()}, "PlacementExplanation"
        )
    else:
        print_placement(placed.explain(), placed.requeue_after)
    satisfied = placed.conditions.get("PlacementSatisfied", {}).get("status") == "True"
    raise typer.Exit(output.YES if satisfied else output.NO)


def _load(source: live.Source, node: str | None) -> Snapshot:
    """The cluster in files, else the running one. Ends with exit code 2 if it cannot be read or lacks the node."""
    snapshot = source.read("explain")
    inputs.check_node(snapshot, node, is_live=not source.given)
    return snapshot


def _load_fleet(source: live.Source) -> Snapshot:
    """The hub in files, else the running one. Ends with exit code 2 if it cannot be read."""
    from dray.live.hubs import load_fleet
    from dray.snapshot import from_objects

    if source.given:
        return source.read("explain")
    return from_objects(live.call(load_fleet, "explain", source))


def _show_allocated(snapshot: Snapshot, claim: ResourceClaim, format_: output.Format) -> None:
    from dray.api import codec
    from dray.prose.wording import tell_results
    from dray.snapshot.device_troubles import tell_troubles

    if format_ is output.Format.JSON:
        output.print_json(codec.to_builtins(claim.status), "ClaimStatus")
        return
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    devices = ", ".join(tell_results(results)) or "no devices needed"
    users = ", ".join(f"{claim.metadata.namespace}/{used.name}" for used in claim.status.reserved_for)
    print(f"{full_name(claim)} is allocated: {devices}.")
    chosen = dict.fromkeys(result.request for result in results if "/" in result.request)
    for request, _, alternative in (one.partition("/") for one in chosen):
        print(f"Of the alternatives of request {request} it has {alternative}.")
    print(f"Reserved for {users}." if users else "Nobody uses it.")
    for told in tell_troubles(snapshot, claim):
        print(told)
    if claim.metadata.deletion_timestamp is not None:
        print(f"It is being deleted, and goes once {'nobody uses it' if users else 'it is released'}.")


def _fits(explanation: ClaimExplanation) -> bool:
    return any(verdict.status == "allocated" for verdict in explanation.report.nodes)


def _exit_code(explanation: ClaimExplanation) -> int:
    report = explanation.report
    if report.error or any(claim.error for claim in report.claims):
        return output.CANNOT
    if _fits(explanation):
        return output.YES
    unjudged = any(verdict.status in ("error", "timeout") for verdict in report.nodes)
    return output.CANNOT if unjudged else output.NO


def print_placement(explanation: Explanation, requeue_after: float | None) -> None:
    """The summary, a row for each cluster, and when time alone may change it."""
    print(f"{explanation.placement}: {explanation.summary}")
    if explanation.problem is not None:
        print(f"Misconfigured: {explanation.problem}")
    rows = [
        (
            reason.cluster,
            "yes" if reason.stage == "selected" else "no",
            "–" if reason.score is None else str(reason.score),
            reason.text,
        )
        for reason in explanation.clusters
    ]
    if rows:
        print()
        tables.print_table(("cluster", "selected", "score", "why"), rows)
    if requeue_after is not None:
        print(f"\nThis may change by itself in {requeue_after:.0f} s.")
