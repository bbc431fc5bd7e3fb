"""Patches that say of an eviction that it is meant, or that take it or a drain back: on rules, nodes and slices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from dray.api import codec
from dray.api.generated.core import Node
from dray.api.meta import Object
from dray.api.node_annotations import TAINTS_EXPIRE_AT, rations_without, read_ends, write_entries
from dray.api.resource import DeviceTaintRule, ResourceSlice
from dray.api.resource.rule_annotations import EVICTIONS_PER_SECOND
from dray.api.resource.taint import EFFECT_NO_EXECUTE, EFFECT_NO_SCHEDULE
from dray.api.taints import TaintName, without
from dray.api.times import TimeError
from dray.eviction.confirmations import CONFIRM_ANNOTATION, confirmation, confirmations_without, has_pods_leave
from dray.eviction.drain import DRAIN_ANNOTATION, PAUSED_ANNOTATION, drain_taints, is_drained, undraining

PUBLISHED: Final = "its driver publishes the taint; a patch or dray stop-evictions stops what comes of it"


class CannotCancel(Exception):
    """There is nothing here that a patch could take back. The message says what can be done."""


def evicts(obj: Object) -> bool:
    """Whether controllers have anybody leave for a rule, node or slice, as it is now; if not, nobody can confirm it.

    A slice may be confirmed for others of its pool: whoever asks about one asks about all of these.
    """
    if isinstance(obj, DeviceTaintRule):
        return obj.spec.taint.effect == EFFECT_NO_EXECUTE
    if isinstance(obj, Node):
        return any(taint.effect == EFFECT_NO_EXECUTE for taint in obj.spec.taints)
    return isinstance(obj, ResourceSlice) and has_pods_leave(obj)


def has_drain(obj: Object) -> bool:
    """Whether somebody drains a rule or a node: then pods leave without controllers, and no guard holds them."""
    return isinstance(obj, Node | DeviceTaintRule) and is_drained(obj)


def confirming(obj: Object) -> dict[str, Any]:
    """The patch that lets the pods of a rule, node or slice leave, as it is now."""
    if isinstance(obj, Node):
        said = ",".join(confirmation(taint) for taint in obj.spec.taints if taint.effect == EFFECT_NO_EXECUTE)
    elif isinstance(obj, ResourceSlice):
        said = str(obj.spec.pool.generation)
    else:
        said = str(obj.metadata.generation)
    return {"metadata": {"uid": obj.metadata.uid, "annotations": {CONFIRM_ANNOTATION: said}}}


def waits(obj: Object) -> bool:
    """Whether a rule or node evicts, and nobody has confirmed it as it is now: what a status says may be of before."""
    said = confirming(obj)["metadata"]["annotations"][CONFIRM_ANNOTATION]
    return evicts(obj) and obj.metadata.annotations.get(CONFIRM_ANNOTATION) != said


def untold(rules: Iterable[Object]) -> Iterator[str]:
    """Which rules evict, unconfirmed, without a status that tells whether the guard holds them: those of 1.34."""
    for one in rules:
        if isinstance(one, DeviceTaintRule) and not one.status.conditions and waits(one):
            yield f"rule/{one.metadata.name}"


def cancelling(obj: Object) -> dict[str, Any]:
    """The patch after which nobody leaves: NoExecute becomes NoSchedule, and a drain ends. Raises CannotCancel."""
    if isinstance(obj, DeviceTaintRule):
        meta = {"uid": obj.metadata.uid, "annotations": {DRAIN_ANNOTATION: None, PAUSED_ANNOTATION: None}}
        return {"metadata": meta, "spec": {"taint": {"effect": EFFECT_NO_SCHEDULE}}}
    if not isinstance(obj, Node):
        raise CannotCancel(PUBLISHED)
    taints = list(_softened(codec.to_builtins(obj.spec.taints)))
    meta = {"resourceVersion": obj.metadata.resource_version, "annotations": _after_cancelling(obj)}
    return {"metadata": meta, "spec": {"taints": taints or None}}


def _after_cancelling(node: Node) -> dict[str, str | None]:
    """What annotations say then: a taint that evicted has no rate and no confirmation, and ends when it would have."""
    has, there = node.metadata.annotations, set(map(TaintName.of, node.spec.taints))
    evicting = {name for name in there if name.effect == EFFECT_NO_EXECUTE}
    told = {
        EVICTIONS_PER_SECOND: rations_without(has, evicting, without(node.spec.taints, evicting)),
        CONFIRM_ANNOTATION: confirmations_without(has, [name.key for name in evicting]),
        **undraining(has, [TaintName.of(taint) for taint in drain_taints(node)]),
    }
    try:
        ends = read_ends(has)
    except TimeError:
        return told
    kept = {name: end for name, end in ends.items() if name not in evicting}
    softened = {name._replace(effect=EFFECT_NO_SCHEDULE): end for name, end in ends.items() if name in evicting}
    kept |= {name: end for name, end in softened.items() if name not in there}
    return told | {TAINTS_EXPIRE_AT: write_entries(kept)}


def _softened(taints: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Each key and effect once: where a key was NoSchedule already, that stays as it is."""
    them = list(taints)
    there = {one["key"] for one in them if one["effect"] == EFFECT_NO_SCHEDULE}
    for one in them:
        if one["effect"] != EFFECT_NO_EXECUTE:
            yield one
        elif one["key"] not in there:
            kept = {key: value for key, value in one.items() if key != "timeAdded"}
            yield kept | {"effect": EFFECT_NO_SCHEDULE}
