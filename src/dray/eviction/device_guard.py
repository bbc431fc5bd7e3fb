"""The guard of evictions because of device taints: who confirms what.

A rule is confirmed by an annotation with its generation, so that a changed rule needs another confirmation. A taint
that a driver published is confirmed by an annotation with the pool's generation, on any ResourceSlice of that pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dray.api.resource import DeviceTaintRule, ResourceSlice
from dray.eviction.allocations import PoolKey
from dray.eviction.causes import Cause, Causes, TaintKey
from dray.eviction.guard import Guard, Hold
from dray.eviction.pods import PodRef
from dray.eviction.settings import CONFIRM_ANNOTATION, Limit


class DeviceGuard:
    """Counts and holds; the planner says what pods must leave for."""

    def __init__(self, limit: Limit) -> None:
        self._guard: Guard[TaintKey, PodRef] = Guard(limit)
        self._wanted: dict[PodRef, Causes] = {}
        self._samples: dict[TaintKey, Cause] = {}
        self._confirmed: dict[PoolKey, dict[str, int]] = {}

    @property
    def is_sure(self) -> bool:
        """Whether `judge` has nothing to do."""
        return self._guard.is_sure

    def wanted(self, pod: PodRef) -> Causes:
        """What a pod must leave for, held or not."""
        return self._wanted.get(pod, {})

    def want(self, pod: PodRef, causes: Causes) -> Causes:
        """A pod must leave for these causes. Returns those that are allowed."""
        if causes:
            self._wanted[pod] = causes
            self._samples.update(causes)
        else:
            self._wanted.pop(pod, None)
        self._guard.want(pod, causes.keys())
        return self.allowed(causes)

    def allowed(self, causes: Causes) -> Causes:
        """Those of some causes for which pods may be evicted now."""
        if all(map(self._guard.allows, causes)):
            return causes
        return {taint: cause for taint, cause in causes.items() if self._guard.allows(taint)}

    def mark_going(self, pod: PodRef, *, is_so: bool) -> None:
        """A pod is being evicted, or (not so) stays for the time being."""
        self._guard.mark_going(pod, is_so=is_so)

    def rule_changed(self, before: DeviceTaintRule | None, after: DeviceTaintRule | None) -> None:
        """A rule is new, different or gone."""
        if before is not None and (after is None or before.metadata.generation != after.metadata.generation):
            self._guard.reset(_key(before))
        if after is not None:
            self._guard.review(_key(after))

    def slice_changed(self, name: str, after: ResourceSlice | None) -> None:
        """A slice is new, different or gone."""
        for key, confirmed in self._confirmed.items():
            if confirmed.pop(name, None) is not None:
                self._review_pool(key)
        text = "" if after is None else after.metadata.annotations.get(CONFIRM_ANNOTATION, "")
        if after is not None and text.isdecimal():
            pool = after.spec.driver, after.spec.pool.name
            if int(text) == after.spec.pool.generation:
                self._confirmed.setdefault(pool, {})[name] = int(text)
            self._review_pool(pool)

    def judge(self, of: int, rules: Mapping[str, DeviceTaintRule]) -> Iterable[PodRef]:
        """Decides about what has changed. Returns the pods that are concerned."""
        changed = self._guard.judge(of, lambda taint: self._is_confirmed(taint, rules))
        concerned = {pod: None for taint in changed for pod in self._guard.pods(taint)}
        self._samples = {taint: cause for taint, cause in self._samples.items() if self._guard.pods(taint)}
        return concerned

    def hold_of(self, rule: DeviceTaintRule) -> Hold | None:
        """What is held of a rule."""
        return self._guard.held.get(_key(rule))

    def held_pools(self) -> dict[PoolKey, list[tuple[Cause, Hold]]]:
        """What is held of taints that drivers published, by pool."""
        found: dict[PoolKey, list[tuple[Cause, Hold]]] = {}
        for taint, hold in self._guard.held.items():
            cause = self._samples.get(taint)
            if cause is not None and cause.pool is not None:
                found.setdefault(cause.pool, []).append((cause, hold))
        return found

    def _review_pool(self, pool: PoolKey) -> None:
        for taint, cause in self._samples.items():
            if cause.pool == pool:
                self._guard.review(taint)

    def _is_confirmed(self, taint: TaintKey, rules: Mapping[str, DeviceTaintRule]) -> bool:
        cause = self._samples.get(taint)
        if cause is None:
            return False
        if cause.pool is not None:
            return bool(self._confirmed.get(cause.pool))
        rule = rules.get(cause.rule or "")
        return rule is not None and is_confirmed(rule)


def is_confirmed(rule: DeviceTaintRule) -> bool:
    """Whether somebody said that what this version of a rule evicts is meant."""
    return rule.metadata.annotations.get(CONFIRM_ANNOTATION) == str(rule.metadata.generation)


def _key(rule: DeviceTaintRule) -> TaintKey:
    return rule.metadata.uid or rule.metadata.name
