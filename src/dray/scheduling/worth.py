"""What a placed pod is worth to terms: to all with one topology key at once, so that many cost little more than one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from dray.scheduling.pod_info import PodInfo
from dray.scheduling.pod_terms import Labels, Selection
from dray.scheduling.selection_index import SelectionIndex

Weights = tuple[tuple[int, Selection], ...]
"""Selections, and what a pod is worth that one is about."""

_MOST_KNOWN: Final = 2_000


def sum_of(weights: Weights, namespaces: Mapping[str, Labels]) -> Callable[[PodInfo], int]:
    """What a pod is worth, of all selections that are about it together."""
    index: SelectionIndex[tuple[int, Selection]] = SelectionIndex()
    for weighted in weights:
        index.add(weighted[1], weighted)
    known: dict[tuple[str, frozenset[tuple[str, str]]], int] = {}

    def worth(pod: PodInfo) -> int:
        meta = pod.pod.metadata
        key = (meta.namespace, frozenset(meta.labels.items()))  # most pods have the labels of others
        found = known.get(key)
        if found is None:
            about = index.find(meta.labels)
            found = sum(weight for weight, one in about if one.matches(meta.namespace, meta.labels, namespaces))
            if len(known) < _MOST_KNOWN:
                known[key] = found
        return found

    return worth


def all_of(selections: tuple[Selection, ...], namespaces: Mapping[str, Labels]) -> Callable[[PodInfo], int]:
    """1 for a pod that all selections are about."""

    def worth(pod: PodInfo) -> int:
        meta = pod.pod.metadata
        return all(one.matches(meta.namespace, meta.labels, namespaces) for one in selections)

    return worth
