"""The taints on devices by name, whether published now, half published, or only allocated."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from dray.api.resource import DeviceTaintRule
from dray.api.resource.pool import PoolKey
from dray.api.resource.rule_annotations import taint_of
from dray.eviction.causes import names_device
from dray.tracker import DeviceId, EffectiveDevice, PoolView, TrackedTaint, Tracker

Taints = tuple[TrackedTaint, ...]

UNPUBLISHED = 0
"""The id of a rule's taint on a device that the tracker does not know."""


class _Published(NamedTuple):
    """A pool, and its devices by part and name: several nodes may have one of the same name."""

    view: PoolView
    parts: dict[str, dict[str, list[EffectiveDevice]]]

    @classmethod
    def of(cls, view: PoolView) -> _Published:
        parts: dict[str, dict[str, list[EffectiveDevice]]] = {}
        for part in view.each():
            devices = parts.setdefault(part.node, {})
            for device in part.devices:
                devices.setdefault(device.id.device, []).append(device)
        return cls(view, parts)

    def taints(self, name: str, nodes: Iterable[str]) -> Taints | None:
        """The taints on the devices of a name as these nodes see them; None if they see none."""
        found: dict[EffectiveDevice, None] = {}
        for node in nodes:
            part = self.view.for_node(node)
            for device in self.parts[part.node].get(name, ()) if part is not None else ():
                if not node or device.access.node_name in (None, node):
                    found[device] = None
        if len(found) == 1:
            return next(iter(found)).taints
        return tuple([taint for device in found for taint in device.taints]) if found else None


class DeviceTaints:
    """Looks devices up in the tracker's pools. Keeps one table per pool, made when first asked for."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self._published: dict[PoolKey, _Published] = {}
        self._complete: dict[PoolKey, _Published] = {}

    def of(self, device: DeviceId, rules: Mapping[str, DeviceTaintRule], nodes: Collection[str]) -> tuple[Taints, bool]:
        """The taints on a device that was allocated for these nodes (empty: for several), and whether it is published.

        What other nodes publish under its name does not count. Rules that select by name also reach devices that are
        no longer published (SVS-23).
        """
        key = (device.driver, device.pool)
        view = self._tracker.pool(*key)
        if view is None:
            return tuple(self._of_rules(device, None, rules)), False
        published = self._look_up(key, view).taints(device.device, nodes)
        before = self._complete.get(key)
        if before is not None and _is_incomplete(view, nodes):
            # While a driver replaces its slices, what it said last stands (5055-77).
            said = before.taints(device.device, nodes)
            if said is not None:
                own = tuple(taint for taint in said if taint.rule is None)
                return (*own, *self._of_rules(device, published, rules)), published is not None
        if published is not None:
            return published, True
        return tuple(self._of_rules(device, None, rules)), False

    def forget(self, pools: Iterable[PoolKey]) -> None:
        """These pools have changed."""
        for key in pools:
            view = self._tracker.pool(*key)
            known = self._published.pop(key, None)
            if view is None or not any(part.incomplete for part in view.each()):
                self._complete.pop(key, None)
            elif known is not None and not any(part.incomplete for part in known.view.each()):
                self._complete[key] = known

    def _look_up(self, key: PoolKey, view: PoolView) -> _Published:
        known = self._published.get(key)
        if known is None or known.view is not view:
            known = self._published[key] = _Published.of(view)
        return known

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


def _is_incomplete(view: PoolView, nodes: Iterable[str]) -> bool:
    parts = (view.for_node(node) for node in nodes)
    return any(part is not None and part.incomplete for part in parts)
