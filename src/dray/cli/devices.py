"""`dray devices`: every device as the scheduler sees it, put together from slices, patches, rules and claims.

The full view is spread over several objects (5055-131, 5027-49); this is the one place that shows it whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dray.cli import completion, inputs, live, names, output, tables
from dray.cli.device_table import device_table
from dray.cli.names import node_option
from dray.cli.pool_notes import tell_unpublished
from dray.prose.selector_problems import tell_problem
from dray.views.pools import bad_pools, tell_bad_pools

if TYPE_CHECKING:
    from dray.scheduling.device_states import DeviceState
    from dray.snapshot import Snapshot
    from dray.tracker import PoolView


class Format(StrEnum):
    """How to print devices."""

    TABLE = "table"
    WIDE = "wide"
    YAML = "yaml"
    JSON = "json"


def run(
    *,
    source: live.NamedSource,
    node: Annotated[str | None, node_option("Only devices in reach of this node.")] = None,
    driver: Annotated[
        str | None, typer.Option(help="Only devices of this driver.", autocompletion=completion.drivers)
    ] = None,
    _all_namespaces: names.AlwaysAll = False,
    format_: Annotated[Format, typer.Option("--output", "-o", help="How to print.")] = Format.TABLE,
) -> None:
    """Show devices with everything that is known of them: attributes with patches merged in, taints and where they
    come from, who holds them, why nobody can have them, and pools that cannot be used. With files, of the cluster in
    them; without, of the running one.

    Exit code 0: there are such devices; 1: there are none; 2: input cannot be read.
    """
    snapshot = source.read("devices")
    inputs.check_node(snapshot, node, is_live=not source.given)
    devices = [state for state in snapshot.device_states(node) if driver in (None, state.device.id.driver)]
    bad = [one for one in bad_pools(snapshot.pools(), node or "") if driver in (None, one.driver)]
    if format_ in (Format.YAML, Format.JSON):
        tables.print_value(_to_dict(snapshot, devices, bad), "DeviceReport", as_yaml=format_ is Format.YAML)
    else:
        _print_text(snapshot, devices, bad, is_wide=format_ is Format.WIDE)
    raise typer.Exit(output.YES if devices else output.NO)


def _print_text(snapshot: Snapshot, devices: list[DeviceState], bad: list[PoolView], *, is_wide: bool) -> None:
    if devices:
        tables.print_table(*device_table(devices, is_wide=is_wide))
    else:
        print("No devices.")
    for note in (*tell_bad_pools(bad), *_tell_unpublished(snapshot)):
        print(note)
    for problem in snapshot.problems():
        print(f"{problem.kind} {problem.name} {tell_problem(problem)}")


def _tell_unpublished(snapshot: Snapshot) -> Iterator[str]:
    from dray.api.resource import ResourceClaim

    return tell_unpublished(snapshot.objects(ResourceClaim), snapshot.device_states())


def _to_dict(snapshot: Snapshot, devices: list[DeviceState], bad: list[PoolView]) -> dict[str, Any]:
    return {
        "devices": [_device_to_dict(state) for state in devices],
        "unusablePools": [
            {"driver": pool.driver, "pool": pool.name, "problem": pool.problem, "incomplete": pool.incomplete}
            for pool in bad
        ],
        "problems": [
            {
                "kind": problem.kind,
                "name": problem.name,
                "reason": problem.reason,
                "message": problem.message,
                "devices": problem.count,
            }
            for problem in snapshot.problems()
        ],
    }


def _device_to_dict(state: DeviceState) -> dict[str, Any]:
    from dray.api import codec
    from dray.scheduling.device_state_text import tell_block

    device = state.device
    access = device.access
    if access.node_name is not None:
        where: dict[str, Any] = {"nodeName": access.node_name}
    elif access.node_selector is not None:
        where = {"nodeSelector": codec.to_builtins(access.node_selector)}
    else:
        where = {"allNodes": True}
    taints = [
        {**codec.to_builtins(tracked.taint), **({"rule": tracked.rule} if tracked.rule else {})}
        for tracked in device.taints
    ]
    return {
        "driver": device.id.driver,
        "pool": device.id.pool,
        "name": device.id.device,
        **where,
        "slice": device.slice_name,
        "device": codec.to_builtins(device.device),
        "taints": taints,
        "patches": list(device.patches),
        "heldBy": list(state.holders),
        "state": list(state.words),
        **({"blockedBy": tell_block(state.block)} if state.block is not None else {}),
    }
