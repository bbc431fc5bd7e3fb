"""Taints on devices of a running cluster: look, ask, write the rules, and wait if that is wanted."""

from __future__ import annotations

import asyncio
import shlex
import sys
from typing import TYPE_CHECKING, Any

import typer
from msgspec.structs import replace

from dray.api.resource.taint import EFFECT_NO_SCHEDULE
from dray.api.taints import TaintName, taint_text
from dray.cli import inputs, live, output, tables
from dray.cli.taint_options import Manner, TaintText, Terms, confirm, confirm_many, mark
from dray.eviction.drain import DRAIN_ANNOTATION, is_drained
from dray.prose.wording import names
from dray.snapshot.device_selection import (
    DeviceSelection,
    SelectionError,
    check,
    check_key,
    find_devices,
    find_unpublished,
    tell_nothing,
    tell_passed_over,
)
from dray.snapshot.objects import current_time
from dray.snapshot.taint_rules import TaintRequest, as_stored, made_before
from dray.what_if.drain_preview import paced, tell_broken, tell_ended
from dray.what_if.taint_preview import TaintPreview, preview_rules
from dray.what_if.taint_preview_text import tell

if TYPE_CHECKING:
    from dray.api.resource import DeviceTaintRule
    from dray.cli.waiting import Ending
    from dray.client.http import HttpClient
    from dray.snapshot import Snapshot


def taint(selection: DeviceSelection, text: TaintText, terms: Terms, source: live.Source, manner: Manner) -> None:
    """Taints devices after showing who is hit. Ends with 0, or 1 if no device matches or it did not end in time."""
    request = TaintRequest(selection=selection, **text._asdict(), **terms._asdict())

    async def work(client: HttpClient | None) -> int:
        snapshot = inputs.load(source.given) if client is None else await live.load_snapshot(client)
        rules = await _plan(client, snapshot, request)
        if not rules:
            why = tell_nothing(snapshot, request.selection)
            print(f"{why[0].upper()}{why[1:]}. Nothing was changed.", file=sys.stderr)
            return output.NO
        now = current_time()
        drains = manner.drain is not None
        preview = preview_rules(snapshot, as_stored(rules, snapshot, now), now.datetime(), drains=drains)
        if manner.drain is not None:
            rules = tuple(_as_kept_away(rule) for rule in rules)
            told = tuple(dict.fromkeys(taint_text(rule.spec.taint) for rule in rules))
            preview = paced(preview, manner.drain, told, snapshot)
        else:
            broken = tell_broken(preview) if preview.evicts else ()
            ended = tell_ended(
                f"rule/{rule.metadata.name}" for rule in made_before(snapshot, request) if is_drained(rule)
            )
            preview = replace(preview, notes=(*broken, *ended, *preview.notes))
        preview = replace(preview, notes=(*tell_passed_over(snapshot, selection), *preview.notes))
        return await _go_on(client, snapshot, request, rules, preview, manner)

    if source.given:
        raise typer.Exit(asyncio.run(work(None)))
    raise typer.Exit(live.call(work, "taint", source))


async def _plan(client: HttpClient | None, snapshot: Snapshot, request: TaintRequest) -> tuple[DeviceTaintRule, ...]:
    """The rules; none if there is nothing to taint. Ends with exit code 2 for what the cluster does not have."""
    from dray.maintenance.rule_writing import Support, find_support, plan_rules

    try:
        check(snapshot, request.selection)
        check_key(snapshot, request.selection, request.key)
        if not (find_devices(snapshot, request.selection) or find_unpublished(snapshot, request.selection)):
            return ()
        support = Support() if client is None else await find_support(client, request)
        if not support.rate:
            live.warn_of_rate("device-taint-eviction-controller")
        await live.warn_of_end(client, request.until)
        return plan_rules(snapshot, request, support)
    except SelectionError as error:
        output.fail(f"{error}.")


async def _go_on(
    client: HttpClient | None,
    snapshot: Snapshot,
    request: TaintRequest,
    rules: tuple[DeviceTaintRule, ...],
    preview: TaintPreview,
    manner: Manner,
) -> int:
    from dray.maintenance.rule_writing import write_rules

    answer: dict[str, Any] = {"dryRun": manner.dry_run, "preview": preview.to_dict()}
    if not manner.is_json:
        print(tell(preview, tables.width(), is_done=not manner.dry_run, rest=tables.REST))
    if client is not None and not manner.dry_run:
        if request.selection.is_broad and request.effect != "None" and not manner.yes:
            confirm(len(preview.devices), f"This taints {request.selection}.", "devices")
        confirm_many(preview, manner)
        is_meant = preview.guard is not None and not preview.guard.is_over  # the number was given, or --yes
        await write_rules(client, snapshot, request, rules, is_meant=is_meant)
    code = output.YES
    if manner.dry_run:
        manner.say("\nNothing was changed. Run again without --dry-run to apply.")
    elif client is not None and manner.wait:
        ending = await _wait(client, request, preview, manner)
        code, answer["result"] = ending.code, ending.to_dict()
    else:
        end = await live.tell_end(client, request.until)
        manner.say(f"\n{_tell_written(request, preview, end)}\nPut back with: {untaint_command(request.selection)}")
    if manner.is_json:
        output.print_json(answer, "Taint")
    return code


def _as_kept_away(rule: DeviceTaintRule) -> DeviceTaintRule:
    """The rule of a drain that keeps budgets: it keeps new work away, evicts nobody by itself, and says what it is."""
    taint = replace(rule.spec.taint, effect=EFFECT_NO_SCHEDULE, evictions_per_second=None)
    told = {**rule.metadata.annotations, DRAIN_ANNOTATION: str(TaintName.of(taint))}
    return replace(rule, metadata=replace(rule.metadata, annotations=told), spec=replace(rule.spec, taint=taint))


def _tell_written(request: TaintRequest, preview: TaintPreview, end: str) -> str:
    name = f"rule {preview.rules[0]}" if len(preview.rules) == 1 else f"{len(preview.rules)} rules {request.name}-…"
    return f"✔ tainted ({name}{end})"


async def _wait(client: HttpClient, request: TaintRequest, preview: TaintPreview, manner: Manner) -> Ending:
    """Waits until all pods are evicted, or until the devices are idle, and says how it ended."""
    from dray.cli.waiting import moving_pods, wait_for
    from dray.controllers.eviction.progress import DeviceProgress
    from dray.reconcile import RealClock

    progress = DeviceProgress(
        client, RealClock(), preview.rules, preview.devices, moving_pods(preview), drains=manner.drain is not None
    )
    ending = await wait_for(progress, manner, client)
    written = _tell_written(request, preview, await live.tell_end(client, request.until))
    manner.say(_tell_ending(written, request, preview, ending, until_idle=manner.until_idle))
    return ending


def _tell_ending(
    written: str, request: TaintRequest, preview: TaintPreview, ending: Ending, *, until_idle: bool
) -> str:
    standing = ending.standing
    if standing.is_called_off:
        what = "its drain was taken back" if ending.drains else "evicts nobody any more"
        return f"✘ called off: the rule is gone, or {what}; {standing.evicted} of {standing.total} evicted"
    parts = [written, f"{mark(standing.is_evicted)} {standing.evicted} of {standing.total} evicted"]
    if until_idle:
        nodes = sorted({pod.node for pod in preview.pods if pod.node})
        where = f" on {', '.join(nodes)}" if 0 < len(nodes) <= 3 else ""
        parts.append(f"{mark(not standing.held)} {'claims released' if not standing.held else 'held still'}")
        parts.append(f"{mark(standing.gone >= standing.total)} unprepared{where}")
    line = "   ".join([*parts, f"{ending.seconds:.0f} s"])
    undo = untaint_command(request.selection)
    if others := ending.tell_others():
        line = f"{line}\n{others}"
    if until_idle and not standing.is_idle:
        return f"{line}\nNot idle: {names(standing.held, 5) or 'pods are still stopping'}. {ending.goes_on}: {undo}"
    if not ending.is_done:
        return f"{line}\n{ending.goes_on}: {undo}"
    if not until_idle:
        return f"{line}\nPut back with: {undo}"
    what = "Device is" if len(preview.devices) == 1 else f"{len(preview.devices)} devices are"
    stay = ending.tell_rest(len(preview.protected))
    return f"{line}\n{what} idle{stay}. Put back with: {undo}"


def untaint_command(selection: DeviceSelection) -> str:
    """What takes the taint away again."""
    options = {"node": "node", "driver": "driver", "pool": "pool", "device": "device", "class": "device_class"}
    words = [
        word for name, field in options.items() if (value := getattr(selection, field)) for word in (f"--{name}", value)
    ]
    words += [word for expression in selection.cel for word in ("--cel", expression)]
    return shlex.join(["dray", "untaint", "device", *(words or ["--all"])])
