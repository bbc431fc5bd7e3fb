"""`dray drain`: makes pods leave devices or a node, and waits until these are idle."""

from __future__ import annotations

from typing import Annotated

import typer

from dray.cli import component, output
from dray.cli import taint_options as options

app = typer.Typer(
    help="Empty devices or nodes, and wait until they are idle.", no_args_is_help=True, rich_markup_mode=None
)

NO_EXECUTE = "NoExecute"


@app.command("device")
def device(
    taint: Annotated[
        str, typer.Argument(metavar="[KEY[=VALUE]]", help="The taint; its effect is NoExecute.")
    ] = options.MAINTENANCE,
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
    from dray.cli import device_taints

    device_taints.taint(
        device_taints.select(node, driver, pool, device, device_class, cel),
        options.read_taint(taint, (NO_EXECUTE,), default_effect=NO_EXECUTE),
        options.Terms.read(rate, for_),
        options.Place(kubeconfig, context),
        _manner(dry_run=dry_run, wait=wait, timeout=timeout, yes=yes, format_=format_),
    )


@app.command("node")
def node(
    name: Annotated[str, typer.Argument(metavar="NODE", help="The node.")],
    more: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY[=VALUE]:NoExecute",
            help="The taint; its key is maintenance if not given. Further nodes may come first.",
        ),
    ] = None,
    dry_run: options.DryRun = False,
    rate: options.NodeRate = None,
    for_: options.For = "",
    wait: options.Wait = False,
    timeout: options.Timeout = "",
    format_: options.Format = output.Format.TEXT,
    kubeconfig: component.Kubeconfig = None,
    context: component.Context = "",
) -> None:
    """Taint nodes with NoExecute; with --wait until all pods that do not tolerate it are gone.

    Exit code 0: done; 1: not idle in time; 2: cannot.
    """
    names, taints = options.split_nodes([name, *(more or ())])
    if not names or len(taints) > 1:
        output.fail(f"{'more than one taint' if names else 'no node'} is given. Write NODE... [KEY[=VALUE]:NoExecute]")
    from dray.cli import node_taints

    text = options.read_taint((taints or [options.MAINTENANCE])[0], (NO_EXECUTE,), default_effect=NO_EXECUTE)
    node_taints.taint(
        names,
        [text],
        options.Terms.read(rate, for_),
        options.Place(kubeconfig, context),
        _manner(dry_run=dry_run, wait=wait, timeout=timeout, format_=format_),
    )


def _manner(*, dry_run: bool, wait: bool, timeout: str, format_: output.Format, yes: bool = False) -> options.Manner:
    return options.Manner(
        dry_run=dry_run,
        wait=wait,
        until_idle=True,
        timeout=options.read_timeout(timeout),
        yes=yes,
        format=format_,
    )
