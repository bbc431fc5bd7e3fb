"""Finds, for a pod, the selections that may mean it, without a look at all of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from dray.scheduling.pod_terms import Labels, Selection

T = TypeVar("T", bound=Hashable)


class SelectionIndex(Generic[T]):
    """Items by a label that all pods of their selection have; the few selections without one are always tried."""

    def __init__(self) -> None:
        self._by_label: dict[tuple[str, str], dict[T, None]] = {}
        self._others: dict[T, None] = {}

    def add(self, selection: Selection, item: T) -> None:
        """An item is about the pods of a selection."""
        for bucket in self._buckets(selection):
            bucket[item] = None

    def remove(self, selection: Selection, item: T) -> None:
        """An item is gone."""
        for bucket in self._buckets(selection):
            bucket.pop(item, None)
        for label in _labels(selection):
            if not self._by_label.get(label, True):
                del self._by_label[label]

    def find(self, labels: Labels) -> Iterator[T]:
        """Items that may be about a pod with these labels, each once."""
        if self._by_label:
            for label in labels.items():
                yield from self._by_label.get(label, ())
        yield from self._others

    def _buckets(self, selection: Selection) -> list[dict[T, None]]:
        labels = _labels(selection)
        return [self._by_label.setdefault(label, {}) for label in labels] if labels else [self._others]


def _labels(selection: Selection) -> list[tuple[str, str]]:
    """Labels of which a pod of the selection has exactly one: the values of one key."""
    for requirement in selection.labels.requirements:
        if requirement.operator == "In":
            return [(requirement.key, value) for value in dict.fromkeys(requirement.values)]
    return []
