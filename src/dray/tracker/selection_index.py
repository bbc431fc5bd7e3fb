"""Which rules or patches select which devices, kept up to date as either side changes.

A selection that names a pool looks at the slices of that pool alone. Any other one looks at groups of slices that
are alike in what it reads, once per group (5055-82, 5027-30).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TypeVar

from dray.tracker.alike import Alike
from dray.tracker.columns import Sheet
from dray.tracker.criteria import Criteria, Memo, evaluate
from dray.tracker.projection import Projection, Signature
from dray.tracker.selection import Selection

_Entry = TypeVar("_Entry")


class SelectionIndex:
    """Rules, or patches, by name against the sheets of all current slices."""

    def __init__(self) -> None:
        self._selections: dict[str, Selection] = {}
        self._wide: dict[str, Selection] = {}
        self._in_pool: dict[str, dict[str, Selection]] = {}
        self._alike: dict[Signature, Alike] = {}
        self._sheets: dict[str, Sheet] = {}
        self._sheets_of_pool: dict[str, dict[str, Sheet]] = {}

    def get(self, name: str) -> Selection | None:
        """The selection of that name, if any."""
        return self._selections.get(name)

    def items(self) -> Iterable[tuple[str, Selection]]:
        """All selections, in the order of their names."""
        return sorted(self._selections.items())

    def put_sheet(self, sheet: Sheet) -> None:
        """Add a slice, or replace it. Nothing is done for the sheet that is known."""
        if self._sheets.get(sheet.slice_name) is sheet:
            return
        self.drop_sheet(sheet.slice_name)
        if not sheet.devices:
            return
        self._sheets[sheet.slice_name] = sheet
        self._sheets_of_pool.setdefault(sheet.pool, {})[sheet.slice_name] = sheet
        for alike in self._alike.values():
            alike.join(sheet)
        for selection in self._in_pool.get(sheet.pool, {}).values():
            _evaluate_sheets(selection, (sheet,))

    def drop_sheet(self, slice_name: str) -> None:
        """Forget a slice, if it is known."""
        sheet = self._sheets.pop(slice_name, None)
        if sheet is None:
            return
        _discard(self._sheets_of_pool, sheet.pool, slice_name)
        for alike in self._alike.values():
            alike.leave(sheet)
        for _, selection in self._candidates(sheet):
            selection.forget(slice_name)

    def put(self, name: str, criteria: Criteria | None) -> set[str]:
        """Add or replace a selection; None selects nothing. Returns the slices where its devices are others now."""
        old = self._remove(name)
        before = old.hits if old is not None else {}
        after: dict[str, int] = {}
        if criteria is not None:
            selection = self._selections[name] = Selection(criteria)
            if not criteria.faults:
                self._add(name, selection)
            after = selection.hits
        if old is not None:
            self._drop_unused(old.criteria.signature)
        return {
            slice_name for slice_name in before.keys() | after.keys() if before.get(slice_name) != after.get(slice_name)
        }

    def hits(self, sheet: Sheet) -> list[tuple[str, int]]:
        """The selections that select devices of the slice, in the order of their names, with the positions."""
        slice_name = sheet.slice_name
        found = [
            (name, selection.hits[slice_name])
            for name, selection in self._candidates(sheet)
            if slice_name in selection.hits
        ]
        found.sort()
        return found

    def _candidates(self, sheet: Sheet) -> Iterator[tuple[str, Selection]]:
        return chain(self._wide.items(), self._in_pool.get(sheet.pool, {}).items())

    def _add(self, name: str, selection: Selection) -> None:
        pool, signature = selection.criteria.pool, selection.criteria.signature
        if pool is not None:
            self._in_pool.setdefault(pool, {})[name] = selection
            _evaluate_sheets(selection, self._sheets_of_pool.get(pool, {}).values())
            return
        self._wide[name] = selection
        alike = self._alike.get(signature)
        if alike is None:
            alike = self._alike[signature] = Alike(signature, self._sheets.values())
        alike.add(name, selection)

    def _remove(self, name: str) -> Selection | None:
        selection = self._selections.pop(name, None)
        if selection is None:
            return None
        criteria = selection.criteria
        if criteria.pool is not None:
            _discard(self._in_pool, criteria.pool, name)
        elif self._wide.pop(name, None) is not None:
            self._alike[criteria.signature].remove(name)
        return selection

    def _drop_unused(self, signature: Signature) -> None:
        """Give up the groups that no selection needs. After an edit they mostly are needed again."""
        alike = self._alike.get(signature)
        if alike is not None and not alike.selections:
            del self._alike[signature]


def _evaluate_sheets(selection: Selection, sheets: Iterable[Sheet]) -> None:
    """Evaluate a selection that names a pool on slices of that pool."""
    projection = Projection(selection.criteria.signature)
    memo: Memo = {}
    for sheet in sheets:
        selection.record(sheet, evaluate(selection.criteria, projection.group(sheet), memo))


def _discard(tables: dict[str, dict[str, _Entry]], key: str, name: str) -> None:
    """Remove an entry from a table of tables, and the table with its last entry."""
    table = tables.get(key, {})
    table.pop(name, None)
    if not table:
        tables.pop(key, None)
