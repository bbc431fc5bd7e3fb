"""`dray drain`: makes pods leave devices or a node, as far as disruption budgets allow, and waits until it is idle."""

from __future__ import annotations

from typing import Annotated

import typer

from dray.api.resource.taint import EFFECT_NO_EXECUTE
from dray.api.well_known import MAINTENANCE
from dray.cli import completion, live, output
from dray.cli import taint_options as options
from dray.cli.names import ByKind
from dray.cli.running_cluster import RunningCluster

app = typer.Typer(
    help="Empty devices or nodes, and wait until they are idle.",
    cls=ByKind,
    no_args_is_help=True,
    rich_markup_mode=None,
)

Target = Annotated[
    list[str],
    typer.Argument(
        metavar="node/NODE|rule/RULE",
        help="What is drained: nodes, or devices by their rule.",
        autocompletion=completion.drains,
    ),
]
DEVICE_RATE = 10
"""Pods per second that leave devices if nothing is said, as for rules."""


@app.command("device")
def device(
    taint: Annotated[
        str, typer.Argument(metavar="KEY[=VALUE]", help="The taint that keeps new work away.")
    ] = MAINTENANCE,
    *,
    devices: options.Devices,
    rate: options.Rate = None,
    for_: options.For = "",
    draining: options.Draining,
    source: live.Source,
) -> None:
    """Keep new work away from devices, and have their pods leave, one by one, as disruption budgets allow.

    Goes on until all were told to leave; with --wait until they are gone and their claims are released. Ctrl-C stops
    it: the taint stays, nobody else leaves, and the same command again goes on. With --ignore-budgets the taint is
    NoExecute, and controllers delete the pods, whether this command goes on or not.

    Exit code 0: done; 1: no device matches, not confirmed, or not done in time; 2: cannot.
    """
    from dray.cli import device_taints

    manner = draining.at_rate(rate or DEVICE_RATE)
    options.check_preview(source, manner)
    device_taints.taint(
        devices.selection(),
        options.read_taint(taint, (EFFECT_NO_EXECUTE,), default_effect=EFFECT_NO_EXECUTE),
        options.Terms.read(rate, for_),
        source,
        manner,
    )


@app.command("node")
def node(
    name: Annotated[str, typer.Argument(metavar="NODE", help="The node.", autocompletion=completion.nodes)],
    more: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY[=VALUE]:NoExecute",
            help="The taint; its key is maintenance if not given. Further nodes may come first.",
        ),
    ] = None,
    *,
    rate: options.NodeRate = None,
    for_: options.For = "",
    draining: options.Draining,
    source: live.Source,
) -> None:
    """Keep new work away from nodes, and have their pods leave, one by one, as disruption budgets allow.

    Pods that tolerate the taint with NoExecute stay. Goes on until all others were told to leave; with --wait until
    they are gone. Ctrl-C stops it: the taint stays, nobody else leaves, and the same command again goes on. With
    --ignore-budgets the taint is NoExecute, and controllers delete the pods, whether this command goes on or not.

    Asks first if more pods leave than the eviction guard's limit. Exit code 0: done; 1: not confirmed, or not done in
    time; 2: cannot.
    """
    names, taints = options.split_nodes([name, *(more or ())])
    if not names or len(taints) > 1:
        output.fail(f"{'more than one taint' if names else 'no node'} is given. Write NODE... [KEY[=VALUE]:NoExecute]")
    from dray.cli import node_taints

    text = options.read_taint((taints or [MAINTENANCE])[0], (EFFECT_NO_EXECUTE,), default_effect=EFFECT_NO_EXECUTE)
    manner = draining.at_rate(rate)
    options.check_preview(source, manner)
    node_taints.taint(
        names,
        [text],
        options.Terms.read(rate, for_),
        source,
        manner,
    )


@app.command("pause")
def pause(
    target: Target,
    format_: options.Format = output.Format.TEXT,
    *,
    cluster: RunningCluster,
) -> None:
    """Let a drain that goes on somewhere stand still: nobody else leaves until dray drain resume.

    Exit code 0: done; 2: cannot, such as where nothing is drained.
    """
    from dray.cli import drain_pause

    drain_pause.set_paused(target, cluster, format_, is_so=True)


@app.command("resume")
def resume(
    target: Target,
    format_: options.Format = output.Format.TEXT,
    *,
    cluster: RunningCluster,
) -> None:
    """Let a drain that stands still go on. One whose command has ended goes on with the same command again.

    Exit code 0: done; 2: cannot.
    """
    from dray.cli import drain_pause

    drain_pause.set_paused(target, cluster, format_, is_so=False)
