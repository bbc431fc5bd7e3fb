"""`dray doctor`: what a cluster has, what you may do there, and what of dray works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from dray.cli import live, output
from dray.cli.running_cluster import RunningCluster

if TYPE_CHECKING:
    from dray.client.http import HttpClient
    from dray.live.diagnosis import Facts, Finding


def run(
    *,
    cluster: RunningCluster,
    format_: Annotated[output.Format, typer.Option("--output", "-o", help="How to print.")] = output.Format.TEXT,
) -> None:
    """Say what a cluster has (version, kinds of devices, gates, leases), what you may do, and what of dray works there.

    Exit code 0: all of it works; 1: something does not, or only in part; 2: the cluster cannot be asked.
    """
    from dray.live.diagnosis import examine, judge
    from dray.process.clock import RealClock

    connection = cluster.connect()

    async def ask(client: HttpClient) -> Facts:
        return await examine(client, connection.server, RealClock().now())

    facts = live.call(ask, "doctor", cluster)
    findings = list(judge(facts))
    if format_ is output.Format.JSON:
        output.print_json(_document(facts, findings), "Diagnosis")
    else:
        print("\n".join(_lines(facts, findings)))
    raise typer.Exit(output.YES if all(one.works == "yes" for one in findings) else output.NO)


def _document(facts: Facts, findings: list[Finding]) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(facts)
    return found | {"dray": facts.is_dray, "findings": msgspec.to_builtins(findings)}


def _lines(facts: Facts, findings: list[Finding]) -> list[str]:
    what = "dray" if facts.is_dray else "Kubernetes"
    lines = [f"{facts.server} · {what} {facts.version} · you are {facts.user or 'somebody'}", ""]
    lines += [f"  {place:<26} {', '.join(names) or 'nothing'}" for place, names in facts.served.items()]
    lines += [f"  {'feature gates':<26} {_gates(facts)}"]
    lines += [f"  lease {name:<20} held by {holder}" for name, holder in facts.leases.items()]
    lines += [""]
    for finding in findings:
        lines.append(f"  {finding.works:<7} {finding.what}")
        lines += [f"          {note}" for note in finding.notes]
    return lines


def _gates(facts: Facts) -> str:
    if facts.gates is None:
        return "not visible" + ("" if facts.is_dray else " (you may not read /metrics)")
    off = sorted(name for name, is_on in facts.gates.items() if not is_on)
    return f"of {len(facts.gates)} about devices off: {', '.join(off)}" if off else f"all {len(facts.gates)} on"
