"""The devices that one rule or patch selects, and those that its selectors failed on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from dray.tracker.columns import Sheet, positions
from dray.tracker.selecting.criteria import Criteria, Fault, Outcome
from dray.tracker.selecting.slice_groups import Group


class Failure(NamedTuple):
    """A selector that failed on devices: on how many, and one of them."""

    fault: Fault
    devices: int
    sheet: Sheet
    position: int


class Selection:
    """The devices that one rule or patch selects. Slices come and go in groups that have the same outcome."""

    __slots__ = ("_counts", "_failed", "criteria", "hits", "is_complete")

    def __init__(self, criteria: Criteria) -> None:
        self.criteria = criteria
        self.is_complete = True
        """False while selectors are still being evaluated on some devices, which are not selected until then."""
        self.hits: dict[str, int] = {}
        """By slice name, the positions that are selected."""
        self._failed: dict[Group, Outcome] = {}
        self._counts: Counter[tuple[int, str | None]] = Counter()

    def add(self, group: Group, outcome: Outcome) -> None:
        """Take down the outcome for the slices of a new group."""
        if outcome.mask:
            self.hits.update(dict.fromkeys(group.sheets, outcome.mask))
        if outcome.faults:
            self._failed[group] = outcome
            self._count(outcome, len(group.sheets))

    def join(self, sheet: Sheet, outcome: Outcome) -> None:
        """Take down a slice that joins a known group with this outcome."""
        if outcome.mask:
            self.hits[sheet.slice_name] = outcome.mask
        self._count(outcome, 1)

    def leave(self, sheet: Sheet, group: Group) -> None:
        """Forget a slice of a group with an outcome, and the group if it was the last."""
        self.hits.pop(sheet.slice_name, None)
        failed = self._failed.get(group)
        if failed is not None:
            self._count(failed, -1)
            if not group.sheets:
                del self._failed[group]

    def withdraw(self, group: Group) -> None:
        """Forget the outcome for a group."""
        for slice_name in group.sheets:
            self.hits.pop(slice_name, None)
        failed = self._failed.pop(group, None)
        if failed is not None:
            self._count(failed, -len(group.sheets))

    def failures(self) -> Iterator[Failure]:
        """One entry for each selector that failed on a device."""
        for (selector, device_class), count in sorted(self._counts.items(), key=_in_order):
            if count:
                yield self._failure(selector, device_class, count)

    def passed_over(self) -> Iterator[tuple[str, int, Fault]]:
        """By slice name, the positions that a selector failed on, and how."""
        for group, outcome in self._failed.items():
            for fault, mask in outcome.faults:
                yield from ((slice_name, mask, fault) for slice_name in group.sheets)

    def _count(self, outcome: Outcome, slices: int) -> None:
        for fault, mask in outcome.faults:
            self._counts[fault.selector, fault.device_class] += slices * mask.bit_count()

    def _failure(self, selector: int, device_class: str | None, count: int) -> Failure:
        return next(
            Failure(fault, count, group.sheet, next(positions(mask)))
            for group, outcome in self._failed.items()
            for fault, mask in outcome.faults
            if fault.selector == selector and fault.device_class == device_class
        )


def _in_order(item: tuple[tuple[int, str | None], int]) -> tuple[bool, int]:
    (selector, device_class), _ = item
    return device_class is None, selector
