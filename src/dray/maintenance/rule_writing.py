"""Writes the DeviceTaintRules of a request, in the form that the server at hand can keep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from dray.api import codec
from dray.api.kinds import RULES
from dray.api.meta import DeleteOptions, Object, ObjectMeta, Preconditions
from dray.api.resource import DeviceTaintRule
from dray.api.resource.rule_annotations import EVICTIONS_PER_SECOND, EXPIRES_AT
from dray.api.status import ApiError
from dray.eviction.confirmations import CONFIRM_ANNOTATION
from dray.eviction.drain import DRAIN_ANNOTATION, PAUSED_ANNOTATION
from dray.maintenance.confirmation import confirming, evicts
from dray.snapshot.device_selection import SelectionError, resolve
from dray.snapshot.taint_rules import SELECTION, TaintRequest, build_rules, carry_rate, made_before

if TYPE_CHECKING:
    from dray.client import Client
    from dray.client.http import HttpClient
    from dray.snapshot import Snapshot

NOBODY: Final = "dray-trial"
"""The name of no device, so that a trial could not hurt anybody even if it were stored."""
OURS: Final = (SELECTION, EXPIRES_AT, EVICTIONS_PER_SECOND, DRAIN_ANNOTATION)
"""Annotations that a rule has from its request; what others wrote there stays."""


class Support(msgspec.Struct, frozen=True):
    """What the server keeps of a rule: Kubernetes drops what it does not know (SVS-07, SVS-10)."""

    class_and_cel: bool = True
    rate: bool = True


async def find_support(client: HttpClient, request: TaintRequest) -> Support:
    """Lets the server show what it would keep, without storing anything. Raises ApiError (404 if it has no rules).

    Comes before any write: a rule that lost its class or CEL selectors on the way would hit more than was meant. Who
    only looks hears, too, that rules cannot be written.
    """
    await client.group_of(RULES)
    selection = request.selection
    if not (selection.device_class or selection.cel or request.rate is not None):
        return Support()
    wanted = replace(selection.selector(), device=NOBODY)
    (rule,) = build_rules(request, [wanted])
    kept = (await client.try_create(replace(rule, metadata=ObjectMeta(generate_name="dray-trial-")))).spec
    selector = kept.device_selector
    return Support(
        class_and_cel=selector is not None
        and (selector.device_class_name, selector.selectors) == (wanted.device_class_name, wanted.selectors),
        rate=kept.taint.evictions_per_second == request.rate,
    )


def plan_rules(snapshot: Snapshot, request: TaintRequest, support: Support) -> tuple[DeviceTaintRule, ...]:
    """The rules to write. Raises SelectionError if too many would be needed, or one that is there is going away."""
    for old in made_before(snapshot, request):
        if old.metadata.deletion_timestamp is not None:
            raise SelectionError(f"{tell_dying(old)}. Then give the command again")
    rules = build_rules(request, resolve(snapshot, request.selection, by_names=not support.class_and_cel))
    return rules if support.rate else tuple(map(carry_rate, rules))


async def write_rules(
    client: Client,
    snapshot: Snapshot,
    request: TaintRequest,
    rules: Sequence[DeviceTaintRule],
    *,
    is_meant: bool = False,
) -> None:
    """Makes these the rules of the request, in place of those that were there. Raises ApiError.

    `is_meant`: somebody has said so, and the guard need not ask again for an empty selector.
    """
    known = {rule.metadata.name: rule for rule in made_before(snapshot, request)}
    for rule in rules:
        old = known.pop(rule.metadata.name, None)
        selector = rule.spec.device_selector
        confirms = is_meant and evicts(rule) and selector is not None and selector.is_empty
        await _write(client, rule, old, confirms=confirms)
    await delete_rules(client, known.values())


async def _write(client: Client, rule: DeviceTaintRule, old: DeviceTaintRule | None, *, confirms: bool) -> None:
    """The confirmation comes with the rule, for the generation that it should get: no controller tells of a hold."""
    expected = str(1 if old is None else old.metadata.generation + (_spec(old) != _spec(rule)))
    told = {CONFIRM_ANNOTATION: expected} if confirms else {}
    written: Object
    if old is None:
        annotations = {**rule.metadata.annotations, **told}
        written = await client.create(replace(rule, metadata=replace(rule.metadata, annotations=annotations)))
    else:
        patch = _patch(rule, old)
        patch["metadata"]["annotations"].update(told)
        written = await client.patch(RULES, "", rule.metadata.name, patch)
    if confirms and str(written.metadata.generation) != expected:  # somebody else has changed it, too
        await client.patch(RULES, "", rule.metadata.name, confirming(written))


def _spec(rule: DeviceTaintRule) -> Any:
    return replace(rule.spec, taint=replace(rule.spec.taint, time_added=None))


def tell_dying(rule: DeviceTaintRule) -> str:
    """Why a rule that was deleted is there still."""
    keepers = ", ".join(rule.metadata.finalizers) or "nobody any more"
    return f"rule {rule.metadata.name} is being deleted, and taints until finalizers are taken away: {keepers}"


async def delete_rules(client: Client, rules: Iterable[DeviceTaintRule]) -> None:
    """Deletes these rules, and no others of the same names. Raises ApiError; who is gone already is no matter."""
    for rule in rules:
        options = DeleteOptions(preconditions=Preconditions(uid=rule.metadata.uid))
        try:
            await client.delete(RULES, "", rule.metadata.name, options)
        except ApiError as error:
            if error.code != 404:
                raise


def _patch(rule: DeviceTaintRule, old: DeviceTaintRule) -> dict[str, Any]:
    """What turns the old rule into the new one; what others wrote into the metadata stays.

    The time of the taint is left to the server, which knows when it starts anew (SVS-09).
    """
    meta = rule.metadata
    ours = {name: meta.annotations.get(name) for name in OURS}
    ours |= {} if DRAIN_ANNOTATION in meta.annotations else {PAUSED_ANNOTATION: None}  # a pause ends with its drain
    taint = codec.to_builtins(rule.spec.taint)
    fields = ("key", "value", "effect", "evictionsPerSecond")
    selector = codec.to_builtins(rule.spec.device_selector)
    before = codec.to_builtins(old.spec.device_selector) if old.spec.device_selector is not None else {}
    return {
        "metadata": {"uid": old.metadata.uid, "labels": meta.labels, "annotations": ours},
        "spec": {
            "deviceSelector": {name: selector.get(name) for name in {**before, **selector}},
            "taint": {name: taint.get(name) for name in fields},
        },
    }
