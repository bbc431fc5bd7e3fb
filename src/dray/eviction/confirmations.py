"""Who confirms what the guard holds, and how: by an annotation on the rule, on a slice of the pool, or on the node.

A rule is confirmed with its generation, so that a changed rule needs another confirmation. The taints of a pool's
driver are confirmed with the pool's generation, on any ResourceSlice of that pool. A node has no generation: its taint
is named by its key, with `@` and the time at which it was added if the taint says so, so that one that is added again
needs another confirmation then.

To confirm is a right of its own where a server knows that: what taints devices or nodes must not wave itself through.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from dray.api.generated.core import Taint
from dray.api.resource import DeviceTaintRule, ResourceSlice
from dray.api.resource.pool import PoolKey, pool_of
from dray.api.resource.taint import EFFECT_NO_EXECUTE

CONFIRM_ANNOTATION: Final = "dray.dev/confirm-evictions"


def adds_confirmation(before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """Whether annotations confirm something that they did not before."""
    return CONFIRM_ANNOTATION in after and not _confirmations(after) <= _confirmations(before)


def _confirmations(annotations: Mapping[str, str]) -> set[str]:
    return {part.strip() for part in annotations.get(CONFIRM_ANNOTATION, "").split(",")} - {""}


def is_confirmed(rule: DeviceTaintRule) -> bool:
    """Whether somebody said that what this version of a rule evicts is meant."""
    return rule.metadata.annotations.get(CONFIRM_ANNOTATION) == str(rule.metadata.generation)


class PoolConfirmations:
    """Which pools are confirmed, as their slices say."""

    def __init__(self) -> None:
        self._pools: dict[str, PoolKey] = {}
        self._slices: dict[PoolKey, set[str]] = {}

    def put(self, name: str, after: ResourceSlice | None) -> dict[PoolKey, bool]:
        """A slice is new, different or gone. Returns whether the pools that it confirmed or confirms are confirmed."""
        touched = []
        before = self._pools.pop(name, None)
        if before is not None:
            touched.append(before)
            self._slices[before].discard(name)
            if not self._slices[before]:
                del self._slices[before]
        if after is not None and confirms(after):
            pool = self._pools[name] = pool_of(after)
            touched.append(pool)
            self._slices.setdefault(pool, set()).add(name)
        return {pool: pool in self._slices for pool in touched}


def has_pods_leave(obj: ResourceSlice) -> bool:
    """Whether a driver publishes a taint with NoExecute on a slice."""
    inside = (taint for device in obj.spec.devices for taint in device.taints)
    return any(taint.effect == EFFECT_NO_EXECUTE for taint in (*inside, *(one.taint for one in obj.spec.taints)))


def place_to_confirm(slices: Iterable[ResourceSlice]) -> ResourceSlice:
    """Of the slices of a pool the one that people are told to confirm on."""
    return min(slices, key=lambda one: (-one.spec.pool.generation, one.metadata.name))


def confirms(obj: ResourceSlice) -> bool:
    """Whether a slice says that what the taints of its pool evict is meant."""
    return obj.metadata.annotations.get(CONFIRM_ANNOTATION) == str(obj.spec.pool.generation)


def confirmation(taint: Taint) -> str:
    """How the annotation of a node confirms a taint."""
    return taint.key if taint.time_added is None else f"{taint.key}@{taint.time_added}"


def is_taint_confirmed(taint: Taint, annotations: Mapping[str, str]) -> bool:
    """Whether somebody said that what a taint of a node evicts is meant."""
    return confirmation(taint) in _confirmations(annotations)


def confirmations_without(annotations: Mapping[str, str], keys: Collection[str]) -> str | None:
    """The annotation without taints of these keys: whoever adds one of them again is to be asked again."""
    parts = [part.strip() for part in annotations.get(CONFIRM_ANNOTATION, "").split(",")]
    return ",".join(part for part in parts if part and part.partition("@")[0] not in keys) or None
