"""Disruption budgets: how many of the pods that go would be too many."""

from __future__ import annotations

from collections.abc import Iterable

from dray.api.generated.policy import PodDisruptionBudget
from dray.api.labels import LabelSelector, SelectorError
from dray.api.references import ObjectName
from dray.scheduling.pod_info import PodInfo


class Budgets:
    """The disruption budgets of a cluster."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[ObjectName, tuple[LabelSelector, PodDisruptionBudget]]] = {}

    def change(self, old: PodDisruptionBudget | None, new: PodDisruptionBudget | None) -> None:
        """A budget came, changed or went. One without a selector, or with one that cannot be read, is about nobody."""
        known = new if new is not None else old
        if known is None:
            return
        there = self._by_namespace.setdefault(known.metadata.namespace, {})
        there.pop(ObjectName.of(known), None)
        if new is not None:
            try:
                selector = LabelSelector.of(new.spec.selector)
            except SelectorError:
                selector = LabelSelector(matches_nothing=True)
            if selector.requirements and not selector.matches_nothing:
                there[ObjectName.of(new)] = (selector, new)
        if not there:
            del self._by_namespace[known.metadata.namespace]

    def violating(self, pods: Iterable[PodInfo]) -> set[str]:
        """The uids of those that a budget does not let go, if all of these go, one after the other."""
        left: dict[ObjectName, int] = {}
        found: set[str] = set()
        if not self._by_namespace:
            return found
        for pod in pods:
            meta = pod.pod.metadata
            for name, (selector, budget) in self._by_namespace.get(meta.namespace, {}).items():
                if not selector.matches(meta.labels) or meta.name in budget.status.disrupted_pods:
                    continue
                left[name] = left.get(name, budget.status.disruptions_allowed) - 1
                if left[name] < 0:
                    found.add(meta.uid)
        return found
