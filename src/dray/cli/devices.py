"""`dray devices`: every device as the scheduler sees it, put together from slices, patches, rules and claims.

The full view is spread over several objects (5055-131, 5027-49); this is the one place that shows it whole.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dray.cli import inputs, output, tables

if TYPE_CHECKING:
    from dray.snapshot import Snapshot
    from dray.tracker import EffectiveDevice, PoolView

MAX_VALUES = 5


class Format(StrEnum):
    """How to print devices."""

    TABLE = "table"
    WIDE = "wide"
    YAML = "yaml"
    JSON = "json"


def run(
    sources: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE|DIR|-", help="Manifests or dumps of a cluster, as with -f."),
    ] = None,
    files: inputs.Files = None,
    node: Annotated[str | None, typer.Option(help="Only devices in reach of this node.")] = None,
    driver: Annotated[str | None, typer.Option(help="Only devices of this driver.")] = None,
    format_: Annotated[Format, typer.Option("--output", "-o", help="How to print.")] = Format.TABLE,
) -> None:
    """Show devices with everything that is known of them: attributes with patches merged in, taints and where they
    come from, who holds them, and pools that cannot be used.

    Exit code 0: there are such devices; 1: there are none; 2: input cannot be read.
    """
    snapshot = inputs.load([*(sources or ()), *(files or ())])
    devices = [device for device in snapshot.devices(node) if driver in (None, device.id.driver)]
    if format_ in (Format.YAML, Format.JSON):
        tables.print_value(_to_dict(snapshot, devices), as_yaml=format_ is Format.YAML)
    else:
        _print_text(snapshot, devices, is_wide=format_ is Format.WIDE)
    raise typer.Exit(output.YES if devices else output.NO)


def _print_text(snapshot: Snapshot, devices: list[EffectiveDevice], *, is_wide: bool) -> None:
    if devices:
        with_driver = is_wide or len({device.id.driver for device in devices}) > 1
        with_patches = is_wide or any(device.patches for device in devices)
        header = ["device", "node", *(["driver"] if with_driver else []), "attributes"]
        header += [*(["patched by"] if with_patches else []), "taints", "held by", *(["slice"] if is_wide else [])]
        rows = []
        for device in devices:
            row = [f"{device.id.pool}/{device.id.device}", _where(device)]
            row += [device.id.driver] if with_driver else []
            row.append(_values(device, is_wide=is_wide))
            row += [", ".join(device.patches) or "–"] if with_patches else []
            row += [_taints(device, is_wide=is_wide), ", ".join(snapshot.holders(device)) or "–"]
            row += [device.slice_name] if is_wide else []
            rows.append(row)
        tables.print_table(header, rows)
    else:
        print("No devices.")
    for pool in _bad_pools(snapshot):
        print(f"Devices of pool {pool.driver}/{pool.name} do not count: {pool.problem}")
    for problem in snapshot.problems():
        print(f"{problem.kind} {problem.name} passes over {output.plural(problem.count, 'device')}: {problem.message}")


def _bad_pools(snapshot: Snapshot) -> list[PoolView]:
    return [pool for pool in snapshot.pools() if pool.problem is not None]


def _where(device: EffectiveDevice) -> str:
    access = device.access
    if access.node_name is not None:
        return access.node_name
    return "(all)" if access.node_selector is None else "(by selector)"


def _values(device: EffectiveDevice, *, is_wide: bool) -> str:
    from dray.snapshot.device_changes import values_of
    from dray.snapshot.wording import shorten

    own = f"{device.id.driver}/"
    values = [(name.removeprefix(own), value) for name, value in values_of(device).items()]
    if is_wide:
        return " ".join(f"{name}={value}" for name, value in values) or "–"
    shown = [f"{name.rpartition('/')[2]}={shorten(value, 24)}" for name, value in values[:MAX_VALUES]]
    more = [f"+{len(values) - MAX_VALUES}"] if len(values) > MAX_VALUES else []
    return " ".join([*shown, *more]) or "–"


def _taints(device: EffectiveDevice, *, is_wide: bool) -> str:
    shown = []
    for tracked in device.taints:
        taint = tracked.taint
        value = f"={taint.value}" if taint.value else ""
        since = f" since {taint.time_added}" if is_wide and taint.time_added else ""
        source = f"rule {tracked.rule}" if tracked.rule else "driver"
        shown.append(f"{taint.key}{value}:{taint.effect} ({source}{since})")
    return ", ".join(shown) or "–"


def _to_dict(snapshot: Snapshot, devices: list[EffectiveDevice]) -> dict[str, Any]:
    return {
        "devices": [_device_to_dict(snapshot, device) for device in devices],
        "unusablePools": [
            {"driver": pool.driver, "pool": pool.name, "problem": pool.problem, "incomplete": pool.incomplete}
            for pool in _bad_pools(snapshot)
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


def _device_to_dict(snapshot: Snapshot, device: EffectiveDevice) -> dict[str, Any]:
    from dray.api import codec

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
        "heldBy": list(snapshot.holders(device)),
    }
