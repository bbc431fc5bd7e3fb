"""`dray drain`: makes pods leave devices or a node, as far as disruption budgets allow, and waits until it is idle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dray.api.resource.taint import EFFECT_NO_EXECUTE
from dray.api.well_known import MAINTENANCE
from dray.cli import completion, component, inputs, output
from dray.cli import taint_options as options
from dray.cli.names import ByKind

if TYPE_CHECKING:
    from dray.eviction.drain import DrainTerms

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
        help="What is drained: a node, or devices by their rule.",
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
    node: options.Node = "",
    device: options.Device = "",
    driver: options.Driver = "",
    pool: options.Pool = "",
    device_class: options.Class = "",
    cel: options.Cel = None,
    dry_run: options.DryRun = False,
    rate: options.Rate = None,
    ignore_budgets: options.IgnoreBudgets = False,
    wait_for_replacements: options.WaitForReplacements = False,
    deadline: options.Deadline = "",
    for_: options.For = "",
    wait: options.Wait = False,
    timeout: options.Timeout = "",
    yes: options.Yes = False,
    format_: options.Format = output.Format.TEXT,
    files: inputs.Files = None,
    kubeconfig: component.Kubeconfig = None,
    context: component.Context = "",
) -> None:
    """Keep new work away from devices, and have their pods leave, one by one, as disruption budgets allow.

    Goes on until all were told to leave; with --wait until they are gone and their claims are released. Ctrl-C stops
    it: the taint stays, nobody else leaves, and the same command again goes on. With --ignore-budgets the taint is
    NoExecute, and controllers delete the pods, whether this command goes on or not.

    Exit code 0: done; 1: no device matches, not confirmed, or not done in time; 2: cannot.
    """
    from dray.cli import device_taints

    terms = _drain_terms(ignore_budgets, rate or DEVICE_RATE, wait_for_replacements, deadline)
    device_taints.taint(
        device_taints.select(node, driver, pool, device, device_class, cel),
        options.read_taint(taint, (EFFECT_NO_EXECUTE,), default_effect=EFFECT_NO_EXECUTE),
        options.Terms.read(rate, for_),
        options.Place.read(kubeconfig, context, files, dry_run=dry_run),
        _manner(dry_run=dry_run, wait=wait, timeout=timeout, yes=yes, format_=format_, drain=terms),
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
    dry_run: options.DryRun = False,
    rate: options.NodeRate = None,
    ignore_budgets: options.IgnoreBudgets = False,
    wait_for_replacements: options.WaitForReplacements = False,
    deadline: options.Deadline = "",
    for_: options.For = "",
    wait: options.Wait = False,
    timeout: options.Timeout = "",
    yes: options.Yes = False,
    format_: options.Format = output.Format.TEXT,
    files: inputs.Files = None,
    kubeconfig: component.Kubeconfig = None,
    context: component.Context = "",
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
    terms = _drain_terms(ignore_budgets, rate, wait_for_replacements, deadline)
    node_taints.taint(
        names,
        [text],
        options.Terms.read(rate, for_),
        options.Place.read(kubeconfig, context, files, dry_run=dry_run),
        _manner(dry_run=dry_run, wait=wait, timeout=timeout, yes=yes, format_=format_, drain=terms),
    )


@app.command("pause")
def pause(
    target: Target,
    kubeconfig: component.Kubeconfig = None,
    context: component.Context = "",
) -> None:
    """Let a drain that goes on somewhere stand still: nobody else leaves until dray drain resume.

    Exit code 0: done; 2: cannot.
    """
    from dray.cli import drain_pause

    drain_pause.set_paused("/".join(target), options.Place(kubeconfig, context), is_so=True)


@app.command("resume")
def resume(
    target: Target,
    kubeconfig: component.Kubeconfig = None,
    context: component.Context = "",
) -> None:
    """Let a drain that stands still go on. One whose command has ended goes on with the same command again.

    Exit code 0: done; 2: cannot.
    """
    from dray.cli import drain_pause

    drain_pause.set_paused("/".join(target), options.Place(kubeconfig, context), is_so=False)


def _drain_terms(
    ignore_budgets: bool, rate: int | None, wait_for_replacements: bool, deadline: str
) -> DrainTerms | None:
    """What the drain keeps; None if it ignores budgets. Ends with exit code 2 for what does not go together."""
    from dray.eviction.drain import DrainTerms

    length = options.read_duration(deadline, "--deadline")
    if ignore_budgets:
        if wait_for_replacements or length is not None:
            what = "--wait-for-replacements" if wait_for_replacements else "--deadline"
            output.fail(f"{what} needs a drain that keeps budgets: leave out --ignore-budgets.")
        return None
    seconds = None if length is None else length.total_seconds()
    return DrainTerms(rate=rate, wait_for_replacements=wait_for_replacements, deadline=seconds)


def _manner(
    *,
    dry_run: bool,
    wait: bool,
    timeout: str,
    format_: output.Format,
    drain: DrainTerms | None,
    yes: bool,
) -> options.Manner:
    return options.Manner(
        dry_run=dry_run,
        wait=wait or drain is not None,
        until_idle=wait,
        drain=drain,
        timeout=options.read_timeout(timeout),
        yes=yes,
        format=format_,
    )
