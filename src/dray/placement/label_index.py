"""Which clusters have which labels, the other way round: a selector becomes a few set operations.

The same index serves claims, which are labels that a cluster states about itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import TypeVar

from dray.api.labels import LabelSelector, Requirement

K = TypeVar("K")

_NONE: frozenset[str] = frozenset()


class LabelIndex:
    """Names by label key and value, kept up to date one cluster at a time."""

    def __init__(self) -> None:
        self._labels: dict[str, Mapping[str, str]] = {}
        self._by_key: dict[str, set[str]] = {}
        self._by_value: dict[tuple[str, str], set[str]] = {}

    def put(self, name: str, labels: Mapping[str, str]) -> None:
        """Add a cluster, or replace its labels."""
        if self._labels.get(name) == labels:
            return
        self.remove(name)
        self._labels[name] = labels
        for key, value in labels.items():
            self._by_key.setdefault(key, set()).add(name)
            self._by_value.setdefault((key, value), set()).add(name)

    def remove(self, name: str) -> None:
        """Forget a cluster; no matter if it is not there."""
        for item in self._labels.pop(name, {}).items():
            _drop(self._by_key, item[0], name)
            _drop(self._by_value, item, name)

    def select(self, selector: LabelSelector, among: AbstractSet[str]) -> AbstractSet[str]:
        """Those of `among` that match."""
        if selector.matches_nothing:
            return _NONE
        for requirement in selector.requirements:
            among = self._narrow(requirement, among)
            if not among:
                break
        return among

    def _narrow(self, requirement: Requirement, among: AbstractSet[str]) -> AbstractSet[str]:
        match requirement.operator:
            case "In":
                return among & self._with_values(requirement)
            case "NotIn":
                return among - self._with_values(requirement)
            case "Exists":
                return among & self._by_key.get(requirement.key, _NONE)
            case "DoesNotExist":
                return among - self._by_key.get(requirement.key, _NONE)
        return {name for name in among if requirement.matches(self._labels.get(name, {}))}

    def _with_values(self, requirement: Requirement) -> AbstractSet[str]:
        found = [self._by_value.get((requirement.key, value), _NONE) for value in requirement.values]
        return found[0] if len(found) == 1 else _NONE.union(*found)


def _drop(index: dict[K, set[str]], key: K, name: str) -> None:
    names = index[key]
    names.discard(name)
    if not names:
        del index[key]
