"""Selectors that fail on a device are errors of the claim or class, not of the nodes that have such devices.

A claim that fits on one node and cannot be judged on another gets nothing: something is wrong with it, and nobody would
notice if it were allocated where its selectors happen to work (4381-84, SVS-51; Kubernetes aborts the attempt if one
node fails). So before a node is chosen, those are asked that have a device in sight on which the criteria fail:

    pools ─▶ FaultLog: which pools have such devices, by criteria ─▶ nodes that see them ─▶ does the search fail there?

As a rule there are none, and asking costs a comparison. Pools are judged once for each criteria, and again when they
change. A live scheduler limits how many devices are judged at a time (`Options.devices_judged`): on a large cluster
the first claims with a new selector may then be allocated before the device is found on which it fails.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from dray.allocator.pools import Pool
from dray.allocator.selection import Criteria
from dray.allocator.shapes import Shape
from dray.api.recent import Newest
from dray.api.resource.pool import PoolKey

_CACHED_SCANS: Final = 512
_SPARE_ENTRIES: Final = 1024


class _Scan:
    """How far the pools have been judged by some criteria."""

    __slots__ = ("faulty", "position", "unsettled")

    def __init__(self) -> None:
        self.position = 0
        self.faulty: set[PoolKey] = set()
        self.unsettled: set[PoolKey] = set()
        """Pools with devices on which selectors are still being evaluated, or for which there was no time."""


class FaultLog:
    """The pools in the order in which they changed, and by criteria those with devices that cannot be judged."""

    def __init__(self, pools: Mapping[PoolKey, Sequence[Pool]]) -> None:
        """`pools` are those of the inventory in their parts, which keeps them current."""
        self._pools = pools
        self._log: list[PoolKey] = []
        self._changes = 0
        self._scans: Newest[Criteria, _Scan] = Newest(_CACHED_SCANS)

    def changed(self, key: PoolKey) -> None:
        """A pool is new or different."""
        self._changes += 1
        self._log.append(key)
        if len(self._log) > 2 * len(self._pools) + _SPARE_ENTRIES:
            self._shorten()

    def faulty_pools(self, shape: Shape, most: int | None) -> Collection[PoolKey]:
        """Pools with devices that a problem cannot be judged on, as far as is known after judging `most` more."""
        if shape.faultless_at == self._changes:
            return ()
        found: set[PoolKey] = set()
        is_whole = True
        for criteria in shape.criteria:
            scan = self._scans.get(criteria)
            if scan is None:
                scan = self._start(criteria)
            for key in sorted(scan.unsettled):
                if criteria.judge.must_wait():
                    break
                self._judge(criteria, scan, key)
            if scan.position < len(self._log):
                most = self._go_on(criteria, scan, most)
            is_whole = is_whole and scan.position == len(self._log) and not scan.unsettled
            found.update(key for key in scan.faulty if key in self._pools)
        if is_whole and not found:
            shape.faultless_at = self._changes
        return found

    def _start(self, criteria: Criteria) -> _Scan:
        return self._scans.keep(criteria, _Scan())

    def _go_on(self, criteria: Criteria, scan: _Scan, most: int | None) -> int | None:
        """Judges further pools until all are, or `most` devices; how many more may be judged then."""
        while scan.position < len(self._log) and (most is None or most > 0):
            if most is not None and criteria.judge.must_wait():
                return 0
            key = self._log[scan.position]
            scan.position += 1
            judged = self._judge(criteria, scan, key)
            if most is not None:
                most -= judged
        return most

    def _judge(self, criteria: Criteria, scan: _Scan, key: PoolKey) -> int:
        """Finds out whether a pool has faulty devices, or goes on with it; how many it has that were judged."""
        scan.faulty.discard(key)
        scan.unsettled.discard(key)
        judged = 0
        for part in self._pools.get(key, ()):
            if part.problem is not None:
                continue  # it is not looked at
            found = part.candidates(criteria)
            judged += len(part.view.devices)
            if found.faulty & ~found.unsettled or found.overflowing:
                scan.faulty.add(key)
                break
            if found.unsettled:
                scan.unsettled.add(key)
        return judged

    def _shorten(self) -> None:
        """Each pool once, the newest last. Scans that lack only that one go on from there, others start again."""
        end, newest = len(self._log), self._log[-1]
        self._log = [*(key for key in self._pools if key != newest), newest]
        for scan in self._scans.values():
            scan.position = len(self._log) - 1 if scan.position >= end - 1 else 0
