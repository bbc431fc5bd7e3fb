"""The fleet for a heat map: all rows at first, then those that changed, grouped and picked as the viewer asks for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from dray.api import kinds
from dray.api.resource import DeviceClass
from dray.dashboard.answers import encode
from dray.live.viewer import Viewer
from dray.tracker.view import EffectiveDevice, PoolView
from dray.views import grouping
from dray.views.fleet import FleetRow

HEARTBEAT_SECONDS: Final = 15.0
BATCH: Final = 500
"""Rows in a line: the first of a large fleet are drawn while the rest is on its way."""


class FleetWish(NamedTuple):
    """How the viewer wants the map: what each device's group is, and which devices are picked."""

    group: Callable[[EffectiveDevice], str]
    pick: Callable[[PoolView], grouping.Picked] | None


async def open_fleet(viewer: Viewer, by: str, expression: str) -> FleetStream:
    """One viewer's map. Expressions are read beside the loop. Raises GroupingError if it cannot be like that."""
    labels = _labels(viewer)
    classes = dict(viewer.cluster.classes)

    def read() -> FleetWish:
        group = grouping.grouper(by, labels, classes)
        return FleetWish(group, grouping.picker(expression) if expression else None)

    wish = await asyncio.to_thread(read)
    return FleetStream(viewer, by, wish, labels, classes)


def _labels(viewer: Viewer) -> dict[str, Mapping[str, str]]:
    return {node.metadata.name: node.metadata.labels for node in viewer.of(kinds.NODES)}


class FleetStream:
    """One viewer's map."""

    def __init__(
        self,
        viewer: Viewer,
        by: str,
        wish: FleetWish,
        labels: dict[str, Mapping[str, str]],
        classes: Mapping[str, DeviceClass],
    ) -> None:
        """The wish goes by these labels of nodes, which are kept current, or by these classes: with others it ends."""
        self._viewer = viewer
        self._group, self._pick = wish
        self._labels = labels
        self._goes_by_labels = by.startswith(grouping.LABEL)
        self._classes = classes if by == "class" else None
        self._known: dict[str, tuple[PoolView, dict[str, Any]]] = {}
        self._names: dict[tuple[str, ...], int] = {}

    async def lines(self) -> AsyncIterator[bytes]:
        """Lines of JSON until the viewer's rights change, or until nobody reads."""
        viewer = self._viewer
        revision = -1
        version = -1
        yield encode({"type": "choices", "choices": grouping.choices(viewer.rows.views.values(), self._labels)}) + b"\n"
        while not viewer.is_outdated and self._classes in (None, viewer.cluster.classes):
            is_first = revision < 0
            if version != viewer.version:
                version = viewer.version
                changed, gone = viewer.rows.since(revision)
                revision = viewer.rows.revision
                if self._goes_by_labels:
                    changed += self._relabelled(changed)
                for line in await asyncio.to_thread(self._tell, changed, gone, is_first):
                    yield line
                yield encode(self._summary()) + b"\n"
            elif not await viewer.changed(version, HEARTBEAT_SECONDS):
                yield b'{"type":"alive"}\n'
        yield b'{"type":"again"}\n'

    def _relabelled(self, changed: Iterable[FleetRow]) -> list[FleetRow]:
        """The rows, beside those that changed, with devices on nodes whose labels are others by now."""
        before, now = dict(self._labels), _labels(self._viewer)
        nodes = {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
        if not nodes:
            return []
        self._labels.clear()
        self._labels.update(now)
        views, told = self._viewer.rows.views, {row.key for row in changed}
        rows = []
        for key, (view, _) in list(self._known.items()):
            if any(device.access.node_name in nodes for device in view.devices):
                del self._known[key]
                if key in views and key not in told:
                    rows.append(self._viewer.rows.rows[key])
        return rows

    def _summary(self) -> dict[str, Any]:
        viewer = self._viewer
        ready, nodes = viewer.ready_nodes
        return {
            "type": "summary",
            "totals": viewer.totals,
            "nodes": nodes,
            "ready": ready,
            "pending": viewer.pending_pods,
            "missing": viewer.missing,
            "seesAllClaims": viewer.sees_all_claims,
        }

    def _tell(self, changed: Iterable[FleetRow], gone: list[str], is_first: bool) -> list[bytes]:
        """In a thread: everything that it looks at is immutable, or its own."""
        rows = [told for row in changed if (told := self._row(row)) is not None]
        for key in gone:
            self._known.pop(key, None)
        if not rows and not gone and not is_first:
            return []
        pieces = [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)] or [[]]
        lines = []
        for number, piece in enumerate(pieces):
            line = {"type": "rows", "rows": piece, "gone": gone if not number else [], "all": is_first and not number}
            lines.append(encode({**line, "more": number + 1 < len(pieces)}) + b"\n")
        return lines

    def _row(self, row: FleetRow) -> dict[str, Any] | None:
        view = self._viewer.rows.views.get(row.key)
        if view is None:
            return None
        known = self._known.get(row.key)
        if known is None or known[0] is not view:
            known = self._known[row.key] = (view, self._about(view))
        told: dict[str, Any] = {"k": row.key, "d": row.driver, "p": row.pool, "n": row.node, "s": row.states}
        told.update(known[1])
        number = self._names.get(row.names)
        if number is None:
            number = self._names[row.names] = len(self._names)
            told["names"] = row.names
        told["c"] = number
        return told

    def _about(self, view: PoolView) -> dict[str, Any]:
        """Groups and picks of a pool's devices: one value if all have the same."""
        about: dict[str, Any] = {"g": _shortest(view, self._group)}
        if self._pick is not None:
            picked = self._pick(view)
            about |= {"m": picked.mask, "w": picked.why}
        return about


def _shortest(view: PoolView, group: Callable[[EffectiveDevice], str]) -> str | list[str]:
    each = [group(device) for device in view.devices]
    return each[0] if each and all(one == each[0] for one in each) else each
