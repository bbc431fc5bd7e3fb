"""Taking devices out of service while somebody looks on: preview, apply, confirm, stop, undo. With the rights of the
client that is given, and on the snapshot that its owner sees."""

from __future__ import annotations

import asyncio
import hashlib
from datetime import timedelta
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from dray.api import kinds
from dray.api.names import validate_label_key, validate_label_value
from dray.api.registry import Kind
from dray.api.resource import DeviceTaintRule
from dray.api.resource.taint import EFFECT_NO_EXECUTE, EFFECT_NO_SCHEDULE, EFFECT_NONE
from dray.api.times import Time
from dray.client.http import HttpClient
from dray.maintenance.confirmation import CannotCancel, cancelling, confirming
from dray.maintenance.rule_writing import Support, delete_rules, find_support, plan_rules, tell_dying, write_rules
from dray.snapshot import Snapshot
from dray.snapshot.device_selection import (
    DeviceSelection,
    SelectionError,
    check,
    find_devices,
    tell_nothing,
    tell_passed_over,
)
from dray.snapshot.objects import current_time
from dray.snapshot.taint_rules import TaintRequest, as_stored
from dray.what_if.drain_preview import tell_broken
from dray.what_if.taint_preview import TaintPreview, preview_rules

EFFECTS: Final = (EFFECT_NONE, EFFECT_NO_SCHEDULE, EFFECT_NO_EXECUTE)
MOST_SELECTIONS: Final = 64
LONGEST_DAYS: Final = 3650


class ChangeError(Exception):
    """What was asked for makes no sense, or is not what was previewed. The message says what to do."""


class Wish(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What to take out of service: devices one by one, or whatever a selection selects."""

    selections: tuple[DeviceSelection, ...]
    key: str
    value: str = ""
    effect: str = EFFECT_NO_EXECUTE
    rate: int | None = None
    hours: int | None = None
    """After so many hours the taint goes away by itself."""
    expected: str = ""
    """When applied: the digest of the preview that somebody has seen."""


class PreviewedRules(msgspec.Struct, frozen=True):
    """A preview, and the rules that it is about."""

    preview: TaintPreview
    requests: tuple[TaintRequest, ...]
    rules: tuple[tuple[DeviceTaintRule, ...], ...]
    snapshot: Snapshot

    @property
    def digest(self) -> str:
        """Changes with who is hit: devices and pods that leave."""
        hit = (sorted(self.preview.devices), sorted(pod.pod for pod in self.preview.pods), self.preview.taints)
        return hashlib.sha256(repr(hit).encode()).hexdigest()[:20]

    @property
    def is_broad(self) -> bool:
        """Whether it may reach devices all over the cluster, so that somebody should say how many are meant."""
        return any(one.selection.is_broad for one in self.requests) and bool(self.preview.taints)

    def to_dict(self) -> dict[str, Any]:
        """For the page."""
        return {**self.preview.to_dict(), "digest": self.digest, "isBroad": self.is_broad}


async def preview(snapshot: Snapshot, client: HttpClient, wish: Wish) -> PreviewedRules:
    """Who would be hit. Raises ChangeError, ApiError or OSError."""
    _check(wish)
    requests = tuple(
        TaintRequest(
            selection=one,
            key=wish.key,
            value=wish.value,
            effect=wish.effect,
            rate=wish.rate,
            until=_until(wish.hours),
        )
        for one in wish.selections
    )
    try:
        await asyncio.to_thread(_check_selections, snapshot, requests)  # before the server says it of a rule on trial
        support = await find_support(client, requests[0])
        return await asyncio.to_thread(_look, snapshot, requests, support)
    except SelectionError as error:
        raise ChangeError(str(error)) from None


async def apply(snapshot: Snapshot, client: HttpClient, wish: Wish) -> dict[str, Any]:
    """Writes the rules if the preview is still the one that was seen. Raises ChangeError, ApiError or OSError."""
    seen = await preview(snapshot, client, wish)
    if seen.digest != wish.expected:
        raise ChangeError("the cluster has changed since the preview: look at the new one, then apply")
    guard = seen.preview.guard
    is_meant = guard is not None and not guard.is_over  # whoever applies has typed how many devices are meant
    for request, rules in zip(seen.requests, seen.rules, strict=True):
        await write_rules(client, seen.snapshot, request, rules, is_meant=is_meant)
    return {"rules": [rule.metadata.name for rules in seen.rules for rule in rules]}


async def confirm(client: HttpClient, name: str, kind: Kind = kinds.RULES) -> None:
    """Says of a rule, a node or a slice that the guard holds that it is meant. Raises ApiError or OSError."""
    held = await client.get(kind, "", name)
    await client.patch(kind, "", name, confirming(held))


async def stop(client: HttpClient, name: str, kind: Kind = kinds.RULES) -> None:
    """Nobody else leaves for a rule, or a node: NoExecute becomes NoSchedule. Raises ApiError, OSError, ChangeError."""
    evicting = await client.get(kind, "", name)
    try:
        patch = cancelling(evicting)
    except CannotCancel as error:
        raise ChangeError(str(error)) from None
    await client.patch(kind, "", name, patch)


async def undo(client: HttpClient, name: str) -> None:
    """Deletes a rule: its devices are back in service. Raises ApiError or OSError, ChangeError if it stays for now."""
    rule = await client.get(kinds.RULES, "", name)
    assert isinstance(rule, DeviceTaintRule)
    await delete_rules(client, [rule])
    if rule.metadata.finalizers:
        raise ChangeError(tell_dying(rule))


def _check(wish: Wish) -> None:
    if not wish.selections:
        raise ChangeError("no device is chosen")
    if len(wish.selections) > MOST_SELECTIONS:
        raise ChangeError(f"{len(wish.selections)} choices are more than {MOST_SELECTIONS}: choose nodes, or use CEL")
    if wish.effect not in EFFECTS:
        raise ChangeError(f"there is no effect {wish.effect}; give {', '.join(EFFECTS)}")
    for what, problems in (("key", validate_label_key(wish.key)), ("value", validate_label_value(wish.value))):
        if problems:
            raise ChangeError(f"the {what} of the taint is not valid: {problems[0]}")
    if wish.rate is not None and not 0 < wish.rate < 1_000_000_000:
        raise ChangeError("evictions per second must be at least 1")
    if wish.hours is not None and not 0 < wish.hours <= LONGEST_DAYS * 24:
        raise ChangeError(f"it may last from 1 hour to {LONGEST_DAYS} days")


def _until(hours: int | None) -> Time | None:
    return None if hours is None else Time.of(current_time().datetime() + timedelta(hours=hours))


def _check_selections(snapshot: Snapshot, requests: tuple[TaintRequest, ...]) -> None:
    for request in requests:
        check(snapshot, request.selection)


def _look(snapshot: Snapshot, requests: tuple[TaintRequest, ...], support: Support) -> PreviewedRules:
    planned = []
    for request in requests:
        if not find_devices(snapshot, request.selection):
            raise SelectionError(tell_nothing(snapshot, request.selection))
        planned.append(plan_rules(snapshot, request, support))
    now = current_time()
    rules = [rule for each in planned for rule in each]
    told = preview_rules(snapshot, as_stored(rules, snapshot, now), now.datetime())
    if told.evicts:
        told = replace(told, notes=(*tell_broken(told), *told.notes))
    passed_over = [why for request in requests for why in tell_passed_over(snapshot, request.selection)]
    told = replace(told, notes=(*passed_over, *told.notes))
    return PreviewedRules(told, requests, tuple(planned), snapshot)
