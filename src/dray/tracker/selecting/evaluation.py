"""Selections that read the same, evaluated on groups of slices that look the same to them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from dray import cel
from dray.tracker.columns import Sheet
from dray.tracker.selecting.criteria import NOTHING, Criteria, Memo, Outcome, evaluate
from dray.tracker.selecting.required_text import TextIndex
from dray.tracker.selecting.selection import Selection
from dray.tracker.selecting.slice_groups import Group, Projection, QualifiedName, Signature


class SharedEvaluation:
    """The selections of one signature, with all slices by group, and what came out.

    An outcome of NOTHING is not kept.
    """

    def __init__(self, signature: Signature, sheets: Iterable[Sheet], backlog: cel.Backlog | None) -> None:
        self.selections: dict[str, Selection] = {}
        self._backlog = backlog
        self._outcomes: dict[str, dict[Group, Outcome]] = {}
        self._projection = Projection(signature)
        self._groups: dict[Hashable, Group] = {}
        self._texts: dict[QualifiedName, TextIndex] = {}
        for sheet in sheets:
            self._group(sheet)

    def join(self, sheet: Sheet) -> None:
        """Add a slice. Nothing is evaluated if one like it is known."""
        group, is_new = self._group(sheet)
        for name, selection in self.selections.items():
            if is_new:
                self._evaluate(name, selection, group, {})
            elif group in self._outcomes[name]:
                selection.join(sheet, self._outcomes[name][group])

    def leave(self, sheet: Sheet) -> None:
        """Take out a slice; the last one of a group ends it."""
        key = self._projection.key(sheet)
        group = self._groups[key]
        del group.sheets[sheet.slice_name]
        for name, selection in self.selections.items():
            if group in self._outcomes[name]:
                selection.leave(sheet, group)
        if not group.sheets:
            self._end(key, group, sheet)

    def add(self, name: str, selection: Selection) -> None:
        """Evaluate a new selection, once per group."""
        self.selections[name] = selection
        self._outcomes[name] = {}
        memo: Memo = {}
        for group in self._candidates(selection.criteria):
            self._evaluate(name, selection, group, memo)

    def resume(self) -> dict[str, None]:
        """Evaluate what was still being evaluated. Returns the slices where other devices are selected now."""
        changed: dict[str, None] = {}
        for name, selection in self.selections.items():
            if selection.is_complete:
                continue
            selection.is_complete = True
            memo: Memo = {}
            for group, before in [*self._outcomes[name].items()]:
                if not before.is_complete:
                    selection.withdraw(group)
                    after = self._evaluate(name, selection, group, memo)
                    if after.mask != before.mask:
                        changed |= dict.fromkeys(group.sheets)
        return changed

    def remove(self, name: str) -> None:
        """Take out a selection."""
        del self.selections[name], self._outcomes[name]

    def _group(self, sheet: Sheet) -> tuple[Group, bool]:
        """The group of a slice, which joins it, and whether it is a new one."""
        key = self._projection.key(sheet)
        group = self._groups.get(key)
        if group is not None:
            group.sheets[sheet.slice_name] = sheet
            return group, False
        group = self._groups[key] = self._projection.group(sheet)
        for texts in self._texts.values():
            texts.add(group)
        return group, True

    def _evaluate(self, name: str, selection: Selection, group: Group, memo: Memo) -> Outcome:
        outcome = evaluate(selection.criteria, group, memo, self._backlog)
        if not outcome.is_complete:
            selection.is_complete = False
        if outcome is not NOTHING:
            self._outcomes[name][group] = outcome
            selection.add(group, outcome)
        else:
            self._outcomes[name].pop(group, None)
        return outcome

    def _end(self, key: Hashable, group: Group, last: Sheet) -> None:
        del self._groups[key]
        for outcomes in self._outcomes.values():
            outcomes.pop(group, None)
        for texts in self._texts.values():
            texts.remove(group, last)

    def _candidates(self, criteria: Criteria) -> Iterable[Group]:
        """Groups that can have an outcome: all, or those with a text that the expression requires."""
        if not criteria.required:
            return self._groups.values()
        required = criteria.required[0]
        texts = self._texts.get(required.name)
        if texts is None:
            texts = self._texts[required.name] = TextIndex(required.name)
            for group in self._groups.values():
                texts.add(group)
        return texts.candidates(required.values)
