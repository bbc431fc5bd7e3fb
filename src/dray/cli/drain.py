"""`dray drain`: makes pods leave devices or a node, and waits until these are idle."""

from __future__ import annotations

from typing import Annotated

import typer

from dray.cli import component, output
from dray.cli import taint_options as options

app = typer.Typer(
    help="Empty devices or a node, and wait until they are idle.", no_args_is_help=True, rich_markup_mode=None
)

Why = Annotated[str, typer.Argument(metavar="[KEY[=VALUE]]", help="The taint; its effect is NoExecute.")]


@app.command("device")
def device(
    taint: Why = options.MAINTENANCE,
    node: options.Node = "",
    device: options.Device = "",
    driver: options.Driver = "",
    pool: options.Pool = "",
    device_class: options.Class = "",
    cel: options.Cel = None,
    dry_run: options.DryRun = False,
    rate: options.Rate = None,
    for_: options.For = "",
    wait: options.Wait = False,
    timeout: options.Timeout = "",
    yes: options.Yes = False,
    format_: options.Format = output.Format.TEXT,
    kubeconfig: component.Kubeconfig = None,
    context: component.Context = "",
) -> None:
    """Taint devices with NoExecute; with --wait until their pods are gone and their claims are released.

    Exit code 0: done; 1: no device matches, not confirmed, or not idle in time; 2: cannot.
    """
    text = options.read_taint(taint, ("NoExecute",), default_effect="NoExecute")
    manner = options.Manner(dry_run=dry_run, wait=wait, timeout=options.read_timeout(timeout), yes=yes, format=format_)
    until = options.read_until(for_)
    from dray.cli import device_taints
    from dray.snapshot.device_selection import DeviceSelection
    from dray.snapshot.taint_rules import TaintRequest

    selection = DeviceSelection(node, driver, pool, device, device_class, tuple(cel or ()))
    request = TaintRequest(
        selection=selection, key=text.key, value=text.value, effect=text.effect, rate=rate, until=until
    )
    device_taints.taint(request, options.Place(kubeconfig, context), manner, until_idle=True)


@app.command("node")
def node(
    name: Annotated[str, typer.Argument(metavar="NODE", help="The node.")],
    taint: Why = options.MAINTENANCE,
    dry_run: options.DryRun = False,
    for_: options.For = "",
    wait: options.Wait = False,
    timeout: options.Timeout = "",
    format_: options.Format = output.Format.TEXT,
    kubeconfig: component.Kubeconfig = None,
    context: component.Context = "",
) -> None:
    """Taint a node with NoExecute; with --wait until all pods that do not tolerate it are gone.

    Exit code 0: done; 1: not idle in time; 2: cannot.
    """
    text = options.read_taint(taint, ("NoExecute",), default_effect="NoExecute")
    manner = options.Manner(dry_run=dry_run, wait=wait, timeout=options.read_timeout(timeout), format=format_)
    until = options.read_until(for_)
    from dray.cli import node_taints

    node_taints.taint(name, [text], until, options.Place(kubeconfig, context), manner, until_idle=True)
