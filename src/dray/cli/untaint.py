"""`dray untaint`: puts devices, a node or a cluster back into service."""

from __future__ import annotations

from typing import Annotated

import typer

from dray.cli import completion, output
from dray.cli import taint_options as options
from dray.cli.names import ByKind, rule_name
from dray.cli.running_cluster import RunningCluster

app = typer.Typer(
    help="Put devices, nodes or clusters back into service.", cls=ByKind, no_args_is_help=True, rich_markup_mode=None
)


@app.command("device")
def device(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Only taints with this key.")] = "",
    *,
    devices: options.Devices,
    rule: Annotated[
        str,
        typer.Option(
            "--rule",
            help="The rule of this name, whatever it selects.",
            callback=rule_name,
            autocompletion=completion.rules,
        ),
    ] = "",
    all_: Annotated[bool, typer.Option("--all", help="Rules for every device; nothing else selects.")] = False,
    showing: options.Showing,
    cluster: RunningCluster,
) -> None:
    """Remove the rules that were made for a selection; else those that taint only devices of it, whoever made them.

    Pods that were about to be evicted stay. Exit code 0: done; 1: there was nothing to remove; 2: cannot.
    """
    from dray.cli import device_untaints
    from dray.snapshot.device_selection import DeviceSelection

    selection = devices.selection()
    ways = [bool(rule), all_, selection != DeviceSelection()]
    if sum(ways) != 1:
        output.fail("say which devices with --node, --device and the like, or give one of --rule and --all.")
    device_untaints.untaint(selection, key, rule, cluster, showing.manner())


@app.command("node")
def node(
    name: Annotated[str, typer.Argument(metavar="NODE", help="The node.", autocompletion=completion.nodes)],
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY[:EFFECT]", help="Which taint. Further nodes may come first."),
    ] = None,
    *,
    showing: options.Showing,
    cluster: RunningCluster,
) -> None:
    """Take taints of a key away from nodes; without a key, what `dray drain node` put there.

    Pods that were about to be evicted stay. Exit code 0: done; 1: no node has such a taint; 2: cannot.
    """
    from dray.cli import node_taints

    names, taints = options.split_nodes([name, *(more or ())])
    if not names or len(taints) > 1:
        output.fail(f"{'more than one taint' if names else 'no node'} is given. Write NODE... [KEY[:EFFECT]]")
    taint = taints[0] if taints else ""
    key, colon, effect = taint.partition(":")
    if colon and effect not in options.NODE_EFFECTS:
        output.fail(f"taint {taint!r}: there is no effect {effect!r}. Effects are {', '.join(options.NODE_EFFECTS)}.")
    node_taints.untaint(names, key.partition("=")[0], effect, cluster, showing.manner())


@app.command("cluster")
def cluster(
    name: Annotated[
        str,
        typer.Argument(metavar="CLUSTER", help="A ManagedCluster of the hub.", autocompletion=completion.members),
    ],
    taint: Annotated[str, typer.Argument(metavar="KEY[:EFFECT]", help="Which taint.")],
    *,
    showing: options.Showing,
    cluster: RunningCluster,
) -> None:
    """Take taints of a key away from a cluster on its hub, with a look at the placements that get it.

    Exit code 0: done; 1: the cluster has no such taint; 2: cannot.
    """
    from dray.cli import cluster_taints

    key, colon, effect = taint.partition(":")
    if colon and effect not in options.CLUSTER_EFFECTS:
        known = ", ".join(options.CLUSTER_EFFECTS)
        output.fail(f"taint {taint!r}: there is no effect {effect!r}. Effects are {known}.")
    cluster_taints.untaint(name, key.partition("=")[0], effect, cluster, showing.manner())
