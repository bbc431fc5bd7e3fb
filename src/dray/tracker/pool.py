"""One pool: its slices of whatever generation, divided into the parts that count, and what it looks like as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from dray.api.resource import ResourceSlice
from dray.tracker.columns import ColumnTable, Sheet
from dray.tracker.current_slice import CurrentSlice
from dray.tracker.pool_part import Known, PoolPart
from dray.tracker.pool_parts import OTHERS, split
from dray.tracker.taints import PublishedTaints, TaintHits, TaintIds
from dray.tracker.view import PoolView


class Staged(NamedTuple):
    """What a change of slices did: slices that no longer count, and those whose devices may be different now."""

    gone: set[str]
    fresh: set[str]


class Pool:
    """One pool of a driver. Change `slices`, then call `stage`, and when its slices are patched, `rebuild`."""

    def __init__(self, driver: str, name: str, ids: TaintIds, *, with_taints: bool) -> None:
        self.driver = driver
        self.name = name
        self.slices: dict[str, ResourceSlice] = {}
        """Of whatever generation."""
        self._taints = PublishedTaints(ids) if with_taints else None
        self._parts: dict[str, PoolPart] = {}
        self._view: PoolView | None = None

    def slice(self, name: str) -> CurrentSlice:
        """A slice that counts."""
        return next(part.current[name] for part in self._parts.values() if name in part.current)

    def names(self) -> Iterator[str]:
        """The slices that count."""
        return chain.from_iterable(part.current for part in self._parts.values())

    def stage(self, columns: ColumnTable) -> Staged:
        """Find the slices that count, for which nodes, and what they say besides devices."""
        counted = split(self.slices.values())
        known = Known(
            {name: state for part in self._parts.values() for name, state in part.current.items()},
            {access: access for part in self._parts.values() for access in part.accesses},
        )
        before, self._parts = self._parts, {}
        fresh: set[str] = set()
        for node, slices in sorted(counted.items(), key=lambda item: item[0]):
            part = before.get(node) or PoolPart(self.driver, self.name, node, self._taints)
            # A node's own part has nothing that others could see.
            hidden_from = frozenset(counted) - {OTHERS} if node == OTHERS else frozenset()
            fresh |= part.take(slices, hidden_from, known, columns)
            self._parts[node] = part
        for state in known.slices.values():
            state.release(columns)
        if self._taints is not None:
            self._taints.refresh(chain.from_iterable(part.published_taints() for part in self._parts.values()))
            for part in self._parts.values():
                fresh |= part.stage_taints()
        return Staged(set(known.slices), fresh)

    def rebuild(self, dirty: Iterable[str], taint_hits: Callable[[Sheet], TaintHits], *, staged: bool) -> PoolView:
        """Make the effective devices of these slices anew, and the view; it is the old one if it looks the same.

        `staged` says that `stage` was called since the last time, so that all of the view may be different.
        """
        names = set(dirty)
        views = tuple(
            [
                part.rebuild([part.current[name] for name in names & part.current.keys()], taint_hits, staged=staged)
                for part in self._parts.values()
            ]
        )
        if self._view is None or self._view.each() != views:
            self._view = views[0] if len(views) == 1 else self._sum(views)
        return self._view

    def _sum(self, views: tuple[PoolView, ...]) -> PoolView:
        """A pool in parts: what all of them have, by slice name."""
        devices = sorted(chain.from_iterable(view.devices for view in views), key=lambda device: device.slice_name)
        accesses = dict.fromkeys(chain.from_iterable(view.accesses for view in views))
        return PoolView(
            self.driver,
            self.name,
            max(view.generation for view in views),
            tuple(devices),
            accesses=tuple(accesses),
            parts=views,
        )
