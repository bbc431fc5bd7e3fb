"""`dray taint`: takes devices, a node or a cluster out of service, after showing who is hit."""

from __future__ import annotations

from typing import Annotated

import typer

from dray.cli import completion, live, output
from dray.cli import taint_options as options
from dray.cli.names import ByKind
from dray.cli.running_cluster import RunningCluster

app = typer.Typer(
    help="Take devices, nodes or clusters out of service, after a look at who is hit.",
    cls=ByKind,
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("device")
def device(
    taint: Annotated[
        str, typer.Argument(metavar="KEY[=VALUE]:EFFECT", help="The taint; effects: None, NoSchedule, NoExecute.")
    ],
    *,
    devices: options.Devices,
    rate: options.Rate = None,
    for_: options.For = "",
    asking: options.Asking,
    source: live.Source,
) -> None:
    """Taint devices with a DeviceTaintRule. Asked for again with another effect, the same rule is changed.

    Everything that is given must hold of a device; with nothing given every device is meant, and the number of devices
    is asked for. Exit code 0: done; 1: no device matches, not confirmed, or not ended in time; 2: cannot.
    """
    from dray.cli import device_taints

    manner = asking.manner()
    options.check_preview(source, manner)
    device_taints.taint(
        devices.selection(),
        options.read_taint(taint, options.DEVICE_EFFECTS),
        options.Terms.read(rate, for_),
        source,
        manner,
    )


@app.command("node")
def node(
    name: Annotated[str, typer.Argument(metavar="NODE", help="The node.", autocompletion=completion.nodes)],
    more: Annotated[
        list[str],
        typer.Argument(
            metavar="KEY[=VALUE]:EFFECT",
            help="Its taints; effects: NoSchedule, PreferNoSchedule, NoExecute. Further nodes may come first.",
        ),
    ],
    *,
    rate: options.NodeRate = None,
    for_: options.For = "",
    waiting: options.Waiting,
    source: live.Source,
) -> None:
    """Taint nodes, as `kubectl taint node` does, with a look at the pods that have to leave.

    A taint of the same key and effect is replaced. Exit code 0: done; 1: not ended in time; 2: cannot.
    """
    names, taints = options.split_nodes([name, *more])
    if not names or not taints:
        output.fail(f"no {'taint' if names else 'node'} is given. Write NODE... KEY[=VALUE]:EFFECT...")
    from dray.cli import node_taints

    manner = waiting.manner()
    options.check_preview(source, manner)
    node_taints.taint(
        names,
        options.read_taints(taints, options.NODE_EFFECTS),
        options.Terms.read(rate, for_),
        source,
        manner,
    )


@app.command("cluster")
def cluster(
    name: Annotated[
        str,
        typer.Argument(metavar="CLUSTER", help="A ManagedCluster of the hub.", autocompletion=completion.members),
    ],
    taints: Annotated[
        list[str],
        typer.Argument(metavar="KEY[=VALUE]:EFFECT", help="Taints; effects: NoSelect, PreferNoSelect, NoSelectIfNew."),
    ],
    *,
    showing: options.Showing,
    cluster: RunningCluster,
) -> None:
    """Taint a cluster on its hub, with a look at the placements that lose it.

    A taint of the same key and effect is replaced. Exit code 0: done; 2: cannot.
    """
    texts = options.read_taints(taints, options.CLUSTER_EFFECTS)
    from dray.cli import cluster_taints

    cluster_taints.taint(name, texts, cluster, showing.manner())
