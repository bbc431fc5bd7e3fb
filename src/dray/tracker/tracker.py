"""The tracker: from slices, patches, taint rules and classes to effective devices, one event at a time.

    slices ──→ Pool.stage ──→ CurrentSlice.patch ──→ CurrentSlice.taint ──→ PoolView
                              patches, on devices    rules, on patched
                              as published           devices

Expressions of patches see devices as published, so that no patch depends on another. Expressions of rules see
patched devices, as those of claims do. Every step looks only at slices where something changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from dray import cel
from dray.api.resource import DeviceClass, DeviceTaintRule, ResourceSlice
from dray.api.resource.pool import PoolKey
from dray.tracker.class_table import ClassTable
from dray.tracker.columns import positions
from dray.tracker.current_slice import CurrentSlice
from dray.tracker.events import Event, Remove, TrackedObject, check_kind
from dray.tracker.patch_table import PatchTable
from dray.tracker.pool_table import PoolTable
from dray.tracker.rule_table import RuleTable
from dray.tracker.taints import TaintIds
from dray.tracker.view import Change, EffectiveDevice, PoolView, Problem
from dray.tracker.waiting import Waiting


class Tracker:
    """The devices of a cluster. What it hands out is immutable and may be kept.

    Objects are taken as they are, also where validation would refuse them, and are never changed.
    """

    def __init__(
        self,
        *,
        taints: bool = True,
        taint_rules: bool = True,
        patches: bool = True,
        backlog: cel.Backlog | None = None,
        at_once: int | None = None,
    ) -> None:
        """Feature switches: without `taints` no device has any (5055-114); without `taint_rules` or `patches` these
        objects are ignored (SVS-14, 5027-43).

        With a backlog, evaluations that take long are left to it: until they are made and `resume` is called, the rule
        or patch does not select those devices.

        With `at_once`, a change of rules, patches or classes takes effect on pools with about so many devices; on the
        others with calls of `go_on`. Until then they look as before. What changes in slices takes effect at once.
        """
        ids = TaintIds()
        self._with_rules = taints and taint_rules
        self._with_patches = patches
        self._classes = ClassTable()
        self._patches = PatchTable(backlog)
        self._rules = RuleTable(ids, backlog)
        self._pools = PoolTable(ids, with_taints=taints)
        self._waiting = Waiting(self._pools)
        self._at_once = at_once

    @property
    def pools(self) -> Mapping[PoolKey, PoolView]:
        """All pools by driver and name. The mapping changes with the next event, its values do not."""
        return MappingProxyType(self._pools.views)

    def pool(self, driver: str, name: str) -> PoolView | None:
        """One pool, if any slice of it is there."""
        return self._pools.views.get((driver, name))

    def pool_of_slice(self, name: str) -> PoolKey | None:
        """The pool that a slice is of, whether it counts or not; None if there is none of that name."""
        return self._pools.key_of(name)

    def devices(self) -> Iterator[EffectiveDevice]:
        """All devices, by driver, pool, slice and position, also those of pools that cannot be used now."""
        for _, view in sorted(self._pools.views.items(), key=lambda item: item[0]):
            yield from view.devices

    def selected(self, rule: str) -> tuple[EffectiveDevice, ...]:
        """The devices that a DeviceTaintRule reaches, whatever its effect; none if there is no such rule.

        By slice and position; with partitions, if it reaches them, by pool.
        """
        selection = self._rules.index.get(rule)
        hits = {} if selection is None else selection.hits
        if self._rules.spreads(rule):
            return tuple(
                [device for key in sorted(self._pools.keys_of(hits)) for device in self._tainted_by(rule, key)]
            )
        return tuple(
            [
                self._pools.slice(slice_name).devices[position]
                for slice_name, mask in sorted(hits.items())
                for position in positions(mask)
            ]
        )

    def passed_over(self, rule: str) -> Iterator[tuple[EffectiveDevice, str]]:
        """The devices on which selectors of a DeviceTaintRule fail, so that it does not reach them, each with how."""
        selection = self._rules.index.get(rule)
        for slice_name, mask, fault in () if selection is None else selection.passed_over():
            devices = self._pools.slice(slice_name).devices
            yield from ((devices[position], fault.text) for position in positions(mask))

    def _tainted_by(self, rule: str, key: PoolKey) -> Iterator[EffectiveDevice]:
        for device in self._pools.views[key].devices:
            if any(taint.rule == rule for taint in device.taints):
                yield device

    @property
    def problems(self) -> list[Problem]:
        """What is wrong with rules and patches now, by kind, name and selector."""
        return [*self._rules.problems(), *self._patches.problems()]

    def apply(self, event: Event) -> Change:
        """Take one event. Returns the pools that look different."""
        return self.apply_all((event,))

    def apply_all(self, events: Iterable[Event]) -> Change:
        """Take several events at once: only their sum is computed.

        Raises ValueError, before anything is taken, for a kind that is not tracked.
        """
        events = tuple(events)
        for event in events:
            check_kind(event)
        limit = self._limit
        for event in events:
            if isinstance(event, Remove):
                self._remove(event.kind, event.name)
            else:
                self._put(event.object)
        return Change(frozenset(self._refresh(limit)))

    @property
    def is_behind(self) -> bool:
        """Whether some pools look as they did before a change, and `go_on` brings the next ones up to date."""
        return bool(self._waiting)

    def go_on(self) -> Change:
        """Brings some of the pools up to date that are behind. Returns those that look different."""
        return Change(frozenset(self._refresh(self._at_once)))

    @property
    def is_complete(self) -> bool:
        """Whether every selector was evaluated on every device that it concerns."""
        return self._rules.index.is_complete and self._patches.index.is_complete

    def resume(self) -> Change:
        """Look again at what was still being evaluated. Returns the pools that look different."""
        limit = self._limit
        self._rules.resume()
        self._patches.resume()
        return Change(frozenset(self._refresh(limit)))

    @property
    def _limit(self) -> int | None:
        """On how many devices a change takes effect at once: on none while it is the turn of others."""
        return 0 if self.is_behind else self._at_once

    def _put(self, obj: TrackedObject) -> None:
        if isinstance(obj, ResourceSlice):
            self._pools.put(obj)
        elif isinstance(obj, DeviceClass):
            if self._classes.put(obj):
                self._class_changed(obj.metadata.name)
        elif isinstance(obj, DeviceTaintRule):
            if self._with_rules:
                self._rules.put(obj)
        elif self._with_patches:
            self._patches.put(obj)

    def _remove(self, kind: str, name: str) -> None:
        if kind == "ResourceSlice":
            self._pools.remove(name)
        elif kind == "DeviceTaintRule":
            self._rules.remove(name)
        elif kind == "ResourceSlicePatch":
            self._patches.remove(name)
        elif self._classes.remove(name):
            self._class_changed(name)

    def _class_changed(self, name: str) -> None:
        self._rules.class_changed(name)
        self._patches.class_changed(name)

    def _refresh(self, limit: int | None) -> set[PoolKey]:
        """Brings up to date with the tables: pools whose slices changed, and others with so many devices, or all.

        Returns the pools that look different.
        """
        gone, fresh = self._pools.stage()
        for name in gone:
            self._patches.index.drop_sheet(name)
            self._rules.index.drop_sheet(name)
            self._waiting.drop(name)
        for name in fresh:
            self._patches.index.put_sheet(self._pools.slice(name).published)
        self._waiting.add_to_patch(dict.fromkeys(sorted(fresh)) | self._patches.refresh(self._classes.compiled))
        turn = dict.fromkeys(self._pools.staged)
        self._waiting.take_pools(turn)
        taken = self._waiting.take(limit)
        turn |= dict.fromkeys(taken)
        has_room = limit is None or not (taken or self._waiting)
        for key in turn:
            for name in self._waiting.take_to_patch(key):
                self._patch(self._pools.slice(name))
        concerned = self._rules.refresh(self._classes.compiled)
        self._waiting.add_to_taint(concerned)
        self._waiting.take_pools(turn)
        if has_room and (limit is None or len(concerned) <= limit):  # to find very many was enough for a turn
            turn |= dict.fromkeys(self._waiting.take(limit))
        to_taint = {name for key in turn for name in self._waiting.take_to_taint(key)}
        return self._pools.rebuild(to_taint, self._rules.taint_hits)

    def _patch(self, state: CurrentSlice) -> None:
        state.patch(self._patches.patch_hits(state.published), self._pools.columns)
        self._rules.index.put_sheet(state.patched)
