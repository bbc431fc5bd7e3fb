"""The taints on devices by name, whether published now, half published, or only allocated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dray.api.resource import DeviceTaintRule
from dray.api.resource.rule_annotations import taint_of
from dray.eviction.allocations import PoolKey
from dray.eviction.causes import names_device
from dray.tracker import DeviceId, PoolView, TrackedTaint, Tracker

Taints = tuple[TrackedTaint, ...]

UNPUBLISHED = 0
"""The id of a rule's taint on a device that the tracker does not know."""


class DeviceTaints:
    """Looks devices up in the tracker's pools. Keeps one table per pool, made when first asked for."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self._tables: dict[PoolKey, tuple[PoolView, dict[str, Taints]]] = {}
        self._complete: dict[PoolKey, dict[str, Taints]] = {}

    def of(self, device: DeviceId, rules: Mapping[str, DeviceTaintRule]) -> tuple[Taints, bool]:
        """The taints on an allocated device, and whether it is published.

        Rules that select by name also reach devices that are no longer published (SVS-23).
        """
        key = (device.driver, device.pool)
        view = self._tracker.pool(*key)
        published = None if view is None else self._table(key, view).get(device.device)
        if view is not None and view.incomplete:
            # While a driver replaces its slices, what it said last stands (5055-77).
            before = self._complete.get(key, {}).get(device.device)
            if before is not None:
                own = tuple(taint for taint in before if taint.rule is None)
                return (*own, *self._of_rules(device, published, rules)), published is not None
        if published is not None:
            return published, True
        return tuple(self._of_rules(device, None, rules)), False

    def forget(self, pools: Iterable[PoolKey]) -> None:
        """These pools have changed."""
        for key in pools:
            view = self._tracker.pool(*key)
            table = self._tables.pop(key, None)
            if view is None or not view.incomplete:
                self._complete.pop(key, None)
            elif table is not None and not table[0].incomplete:
                self._complete[key] = table[1]

    def _table(self, key: PoolKey, view: PoolView) -> dict[str, Taints]:
        known = self._tables.get(key)
        if known is not None and known[0] is view:
            return known[1]
        table: dict[str, Taints] = {}
        for device in view.devices:
            name = device.id.device
            # One name may stand for devices of several nodes: the allocation does not say which.
            table[name] = (*table[name], *device.taints) if name in table else device.taints
        self._tables[key] = (view, table)
        return table

    @staticmethod
    def _of_rules(
        device: DeviceId, published: Taints | None, rules: Mapping[str, DeviceTaintRule]
    ) -> Iterable[TrackedTaint]:
        if published is not None:
            return [taint for taint in published if taint.rule is not None]
        return [
            TrackedTaint(UNPUBLISHED, taint_of(rule), name)
            for name, rule in sorted(rules.items())
            if names_device(rule, device)
        ]
