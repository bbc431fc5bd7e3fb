"""Which rules or patches select which devices, kept up to date as either side changes.

A selection that names a pool looks at the slices of that pool alone, any other one at all slices; both look at groups
of slices that are evaluation in what they read, once per group (5055-82, 5027-30).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TypeVar

from dray import cel
from dray.tracker.columns import Sheet
from dray.tracker.selecting.criteria import Criteria
from dray.tracker.selecting.evaluation import SharedEvaluation
from dray.tracker.selecting.selection import Selection
from dray.tracker.selecting.slice_groups import Signature

_Key = TypeVar("_Key")
_Inner = TypeVar("_Inner")
_Entry = TypeVar("_Entry")


class SelectionIndex:
    """Rules, or patches, by name against the sheets of all current slices."""

    def __init__(self, backlog: cel.Backlog | None = None) -> None:
        self._backlog = backlog
        self._selections: dict[str, Selection] = {}
        self._evaluations: dict[str | None, dict[Signature, SharedEvaluation]] = {}
        """By the pool that selections name, or None, and by what they read."""
        self._sheets: dict[str, Sheet] = {}
        self._sheets_of_pool: dict[str, dict[str, Sheet]] = {}
        self._wide_hits: list[tuple[str, dict[str, int]]] | None = None

    def get(self, name: str) -> Selection | None:
        """The selection of that name, if any."""
        return self._selections.get(name)

    def items(self) -> Iterable[tuple[str, Selection]]:
        """All selections, in the order of their names."""
        return sorted(self._selections.items())

    @property
    def is_complete(self) -> bool:
        """Whether no selectors are still being evaluated."""
        return all(selection.is_complete for selection in self._selections.values())

    def resume(self) -> dict[str, None]:
        """Evaluate what was still being evaluated. Returns the slices where other devices are selected now."""
        changed: dict[str, None] = {}
        for evaluations in self._evaluations.values():
            for evaluation in evaluations.values():
                changed |= evaluation.resume()
        self._wide_hits = None
        return changed

    def put_sheet(self, sheet: Sheet) -> None:
        """Add a slice, or replace it. Nothing is done for the sheet that is known."""
        if self._sheets.get(sheet.slice_name) is sheet:
            return
        self.drop_sheet(sheet.slice_name)
        if not sheet.devices:
            return
        self._sheets[sheet.slice_name] = sheet
        self._sheets_of_pool.setdefault(sheet.pool, {})[sheet.slice_name] = sheet
        for evaluation in self._concerned(sheet):
            evaluation.join(sheet)
        self._wide_hits = None

    def drop_sheet(self, slice_name: str) -> None:
        """Forget a slice, if it is known."""
        sheet = self._sheets.pop(slice_name, None)
        if sheet is None:
            return
        _discard(self._sheets_of_pool, sheet.pool, slice_name)
        for evaluation in self._concerned(sheet):
            evaluation.leave(sheet)
        self._wide_hits = None

    def put(self, name: str, criteria: Criteria | None) -> dict[str, None]:
        """Add or replace a selection; None selects nothing.

        Returns the slices where its devices are others now, in an order that is the same each time.
        """
        old = self._selections.pop(name, None)
        if old is not None:
            self._remove(name, old.criteria)
        selection = None if criteria is None else Selection(criteria)
        if selection is not None:
            self._selections[name] = selection
            self._add(name, selection)
        if old is not None:
            self._drop_unused(old.criteria)
        self._wide_hits = None
        return _changed({} if old is None else old.hits, {} if selection is None else selection.hits)

    def hits(self, sheet: Sheet) -> list[tuple[str, int]]:
        """The selections that select devices of the slice, in the order of their names, with the positions."""
        if self._wide_hits is None:
            self._wide_hits = list(_nonempty_hits(self._evaluations.get(None, {}).values()))
        slice_name = sheet.slice_name
        in_pool = _nonempty_hits(self._evaluations.get(sheet.pool, {}).values())
        found = [(name, hits[slice_name]) for name, hits in chain(self._wide_hits, in_pool) if slice_name in hits]
        found.sort()
        return found

    def _concerned(self, sheet: Sheet) -> Iterator[SharedEvaluation]:
        return chain(self._evaluations.get(None, {}).values(), self._evaluations.get(sheet.pool, {}).values())

    def _add(self, name: str, selection: Selection) -> None:
        criteria = selection.criteria
        if criteria.faults:
            return
        evaluations = self._evaluations.setdefault(criteria.pool, {})
        evaluation = evaluations.get(criteria.signature)
        if evaluation is None:
            of_pool = self._sheets if criteria.pool is None else self._sheets_of_pool.get(criteria.pool, {})
            evaluation = evaluations[criteria.signature] = SharedEvaluation(
                criteria.signature, of_pool.values(), self._backlog
            )
        evaluation.add(name, selection)

    def _remove(self, name: str, criteria: Criteria) -> None:
        if not criteria.faults:
            self._evaluations[criteria.pool][criteria.signature].remove(name)

    def _drop_unused(self, criteria: Criteria) -> None:
        """Give up the groups that no selection needs. After an edit they mostly are needed again."""
        if not criteria.faults and not self._evaluations[criteria.pool][criteria.signature].selections:
            _discard(self._evaluations, criteria.pool, criteria.signature)


def _changed(before: dict[str, int], after: dict[str, int]) -> dict[str, None]:
    if not before or not after:
        return dict.fromkeys(before or after)
    return dict.fromkeys(name for name in before | after if before.get(name) != after.get(name))


def _nonempty_hits(evaluations: Iterable[SharedEvaluation]) -> Iterator[tuple[str, dict[str, int]]]:
    for evaluation in evaluations:
        for name, selection in evaluation.selections.items():
            if selection.hits:
                yield name, selection.hits


def _discard(tables: dict[_Key, dict[_Inner, _Entry]], key: _Key, inner: _Inner) -> None:
    """Remove an entry from a table of tables, and the table with its last entry."""
    del tables[key][inner]
    if not tables[key]:
        del tables[key]
