"""`dray allocate`: which devices claims would get, without a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from dray.cli import completion, inputs, output, tables
from dray.cli.names import AllNamespaces, node_option, one_of
from dray.cli.names import read as read_name
from dray.prose.wording import count, tell_apart

if TYPE_CHECKING:
    from dray.snapshot import Outcome, Snapshot

MAX_EXPLAINED = 20
"""Refusals that are summed up in the table; `dray explain` tells about the others."""


class Answer(NamedTuple):
    """What became of claims that are allocated together, and why their pods would not keep the devices."""

    claims: list[str]
    outcome: Outcome
    notes: list[str]


def run(
    *,
    sources: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE|DIR|-", help="Manifests or dumps of a cluster, as with -f."),
    ] = None,
    files: inputs.Files = None,
    node: Annotated[
        str | None,
        node_option("Only this node; by default the first that fits."),
    ] = None,
    claim: Annotated[
        list[str] | None,
        typer.Option(
            "--claim",
            metavar="[NAMESPACE/]NAME",
            autocompletion=completion.claims,
            help="A claim; several are allocated together, or none of them.",
        ),
    ] = None,
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace",
            "-n",
            metavar="NAMESPACE",
            help="Of a NAME without one, default if not given; without --claim, only claims of this namespace.",
            autocompletion=completion.namespaces,
        ),
    ] = "",
    all_namespaces: AllNamespaces = False,
    format_: Annotated[
        output.TableFormat, typer.Option("--output", "-o", help="How to print.")
    ] = output.TableFormat.TABLE,
) -> None:
    """Allocate devices to claims, without a cluster.

    Without --claim all pending claims, or those of a namespace, are allocated one by one, in the order of the files,
    each with what the ones before it left. Exit code 0: everything fits; 1: something does not fit; 2: input cannot be
    read or judged, such as a claim of an unknown class or with a selector that fails.
    """
    namespace = one_of(namespace, all_namespaces=all_namespaces)
    snapshot = inputs.load([*(sources or ()), *(files or ())])
    inputs.check_node(snapshot, node)
    wanted = list(dict.fromkeys(read_name(one, namespace, "claim") for one in claim or ()))
    results = _together(snapshot, wanted, node) if wanted else list(_one_by_one(snapshot, node, namespace))
    if format_ is output.TableFormat.TABLE:
        _print_text(results, namespace)
    else:
        value = {"results": [_to_dict(one) for one in results]}
        tables.print_value(value, "Allocation", as_yaml=format_ is output.TableFormat.YAML)
    raise typer.Exit(_exit_code(one.outcome for one in results))


def _together(snapshot: Snapshot, claims: list[str], node: str | None) -> list[Answer]:
    from dray.snapshot import SnapshotError
    from dray.snapshot.device_troubles import tell_short_stays

    try:
        with inputs.busy("Allocating"):
            outcome = snapshot.allocate(*claims, node=node)
            return [Answer(claims, outcome, tell_short_stays(snapshot, outcome))]
    except SnapshotError as error:
        output.fail(f"{error}.")


def _one_by_one(snapshot: Snapshot, node: str | None, namespace: str) -> Iterator[Answer]:
    from dray.snapshot.device_troubles import tell_short_stays

    pending = [name for name in snapshot.pending() if not namespace or name.startswith(f"{namespace}/")]
    for name in inputs.track(pending, "Allocating"):
        outcome = snapshot.allocate(name, node=node)
        yield Answer([name], outcome, tell_short_stays(snapshot, outcome))
        if outcome.status == "allocated":
            snapshot = snapshot.with_allocations(outcome)


def _exit_code(outcomes: Iterator[Outcome]) -> int:
    statuses = {outcome.status for outcome in outcomes}
    if "error" in statuses:
        return output.CANNOT
    return output.NO if "unsatisfiable" in statuses else output.YES


def _to_dict(answer: Answer) -> dict[str, Any]:
    names, outcome, notes = answer
    value: dict[str, Any] = {"claims": names, "status": outcome.status}
    if outcome.status == "allocated":
        return {**value, "node": outcome.node, "allocations": outcome.allocations, "notes": notes}
    return {**value, "message": _why(outcome)}


def _print_text(results: list[Answer], namespace: str) -> None:
    if not results:
        print(f"No claim is pending{f' in namespace {namespace}' if namespace else ''}.")
        return
    if len(results) == 1:
        _print_one(results[0])
        return
    rows, explained = [], 0
    for names, outcome, _ in results:
        if outcome.status == "allocated":
            rows.append((names[0], outcome.node or "–", _devices(outcome, names[0])))
            continue
        explained += outcome.status == "unsatisfiable"
        why = _why(outcome) if explained <= MAX_EXPLAINED else outcome.message
        rows.append((names[0], "–", f"{'error' if outcome.status == 'error' else 'does not fit'}: {why}"))
    tables.print_table(("claim", "node", "devices"), rows)
    fitting = sum(outcome.status == "allocated" for _, outcome, _ in results)
    print(
        "\n".join(
            [f"{fitting} of {count(len(results), 'claim')} fit.", *(note for one in results for note in one.notes)]
        )
    )


def _print_one(answer: Answer) -> None:
    names, outcome, notes = answer
    if outcome.status == "allocated":
        for name in names:
            where = f" on {outcome.node}" if outcome.node else ""
            print(f"{name} fits{where}: {_devices(outcome, name)}")
        for note in notes:
            print(note)
        return
    verdict = "cannot be judged" if outcome.status == "error" else "do not fit" if len(names) > 1 else "does not fit"
    print(f"{', '.join(names)} {verdict}: {_why(outcome)}")


def _devices(outcome: Outcome, claim: str) -> str:
    """Devices by name; with the pool, where that is not the node."""
    results = outcome.allocations[claim].get("devices", {}).get("results", ())
    least = 1 if {result["pool"] for result in results} == {outcome.node} else 2
    called = tell_apart(((result["driver"], result["pool"], result["device"]) for result in results), least)
    return ", ".join(called) or "no devices needed"


def _why(outcome: Outcome) -> str:
    if outcome.status == "error":
        return outcome.error or outcome.message
    # Nothing is explained of claims that are allocated already; what stands in their way is in the message.
    return outcome.explain().brief() or outcome.message
