"""Puts devices of a running cluster back into service: removes the rules that taint them, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from dray.api.taints import TaintName
from dray.cli import live, output
from dray.cli.running_cluster import RunningCluster
from dray.cli.taint_options import Manner
from dray.prose.wording import names, there_is
from dray.snapshot.device_selection import DeviceSelection, SelectionError, check, find_devices, find_unpublished
from dray.snapshot.taint_rules import rules_of
from dray.what_if.taint_preview_text import tell_devices

if TYPE_CHECKING:
    from dray.api.resource import DeviceTaintRule
    from dray.client.http import HttpClient
    from dray.snapshot import Snapshot


class Unwanted(NamedTuple):
    """The rules to remove, and what taints the devices besides."""

    rules: tuple[DeviceTaintRule, ...]
    wider: tuple[str, ...] = ()
    """Rules that taint other devices as well; they stay."""


def untaint(selection: DeviceSelection, key: str, rule: str, cluster: RunningCluster, manner: Manner) -> None:
    """Removes the rule of that name, or those for a selection. Ends with 0, or 1 if there was nothing to remove."""

    async def work(client: HttpClient) -> int:
        snapshot = await live.load_snapshot(client)
        unwanted = _named(snapshot, rule) if rule else _find(snapshot, selection, key)
        return await _remove(client, snapshot, unwanted, manner)

    raise typer.Exit(live.call(work, "untaint", cluster))


def _named(snapshot: Snapshot, name: str) -> Unwanted:
    from dray.api.resource import DeviceTaintRule

    known = {rule.metadata.name: rule for rule in snapshot.objects(DeviceTaintRule)}
    if name not in known:
        output.fail(f"no rule {name}; {there_is(known)}.")
    return Unwanted((known[name],))


def _find(snapshot: Snapshot, selection: DeviceSelection, key: str) -> Unwanted:
    """Rules that were made for this selection; else those that taint devices of it only, whoever made them."""
    from dray.api.resource import DeviceTaintRule

    made = rules_of(snapshot, selection, key)
    if made:
        return Unwanted(made)
    try:
        check(snapshot, selection)
    except SelectionError as error:
        output.fail(f"{error}.")
    meant = {str(device.id) for device in find_devices(snapshot, selection)}
    meant.update(map(str, find_unpublished(snapshot, selection)))
    only: list[DeviceTaintRule] = []
    wider: list[DeviceTaintRule] = []
    for rule in snapshot.objects(DeviceTaintRule):
        hit = {str(device.id) for device in snapshot.selected_devices(rule.metadata.name)}
        if hit & meant and key in ("", rule.spec.taint.key):
            (only if hit <= meant else wider).append(rule)
    return Unwanted(tuple(only), tuple(rule.metadata.name for rule in wider))


async def _remove(client: HttpClient, snapshot: Snapshot, unwanted: Unwanted, manner: Manner) -> int:
    from dray.maintenance.rule_writing import delete_rules, tell_dying

    staying = [rule for rule in unwanted.rules if rule.metadata.finalizers]
    removed = [rule.metadata.name for rule in unwanted.rules if rule not in staying]
    devices = tuple(dict.fromkeys(str(device.id) for name in removed for device in snapshot.selected_devices(name)))
    after = snapshot.without(*(f"devicetaintrule/{name}" for name in removed))
    still = {
        str(device.id): sorted({f"{TaintName.of(one.taint)} ({_source(one.rule)})" for one in device.taints})
        for device in after.devices()
        if device.taints and str(device.id) in devices
    }
    if not manner.dry_run:
        await delete_rules(client, unwanted.rules)
    if manner.is_json:
        answer = _to_dict(manner, removed, devices, still, unwanted.wider)
        finalizers = {rule.metadata.name: list(rule.metadata.finalizers) for rule in staying}
        output.print_json(answer | {"finalizers": finalizers}, "DeviceUntaint")
    elif removed or not staying:
        _tell(manner, removed, devices, still, unwanted.wider)
    for rule in staying if not manner.dry_run else ():
        told = tell_dying(rule)
        manner.say(f"{told[0].upper()}{told[1:]}.")
    return output.YES if removed and not staying else output.NO


def _to_dict(
    manner: Manner, removed: list[str], devices: tuple[str, ...], still: dict[str, list[str]], wider: tuple[str, ...]
) -> dict[str, Any]:
    return {
        "dryRun": manner.dry_run,
        "rules": removed,
        "devices": list(devices),
        "stillTainted": still,
        "widerRules": list(wider),
    }


def _tell(
    manner: Manner, removed: list[str], devices: tuple[str, ...], still: dict[str, list[str]], wider: tuple[str, ...]
) -> None:
    if removed:
        verb = "Would remove" if manner.dry_run else "Removed"
        which = tell_devices(devices) if devices else "no device was selected"
        print(f"{verb} {'rule' if len(removed) == 1 else 'rules'} {names(removed, 5)}: {which}.")
    else:
        print(f"No rule taints {'only ' if wider else ''}these devices. Nothing was changed.")
    for name in wider:
        print(f"Rule {name} taints others as well, and stays. Remove it with: dray untaint device --rule {name}")
    for device, taints in list(still.items())[:10]:
        print(f"{device.partition('/')[2]} still has {', '.join(taints)}.")


def _source(rule: str | None) -> str:
    return f"rule {rule}" if rule else "the driver"
