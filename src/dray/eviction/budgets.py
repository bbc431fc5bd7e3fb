"""Disruption budgets that make pods wait: what the eviction API asks before it lets a pod go. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from dray.api.generated.core import Pod
from dray.api.generated.policy import PodDisruptionBudget
from dray.api.labels import LabelSelector, SelectorError
from dray.api.pods import PENDING, is_active, is_ready
from dray.api.references import full_name


class Keepers:
    """The budgets of a cluster, and whom they keep from being evicted."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._by_namespace: dict[str, list[tuple[LabelSelector, PodDisruptionBudget]]] = {}
        for budget in budgets:
            try:
                selector = LabelSelector.of(budget.spec.selector)
            except SelectorError:
                continue  # selects nothing, as for who keeps the budget
            self._by_namespace.setdefault(budget.metadata.namespace, []).append((selector, budget))

    def of(self, pod: Pod) -> list[PodDisruptionBudget]:
        """The budgets that are asked about a pod; none if it goes for nothing.

        Where there are several, the eviction API lets the pod go at no time, whatever they allow.
        """
        found = self.covering(pod)
        return [] if len(found) == 1 and is_spared(pod, found[0]) else found

    def covering(self, pod: Pod) -> list[PodDisruptionBudget]:
        """The budgets that are about a pod; of one that has not begun, has ended or is leaving nobody asks."""
        if not is_active(pod) or pod.status.phase == PENDING:
            return []
        meta = pod.metadata
        return [one for selector, one in self._by_namespace.get(meta.namespace, ()) if selector.matches(meta.labels)]


def is_spared(pod: Pod, budget: PodDisruptionBudget) -> bool:
    """Whether a pod goes for nothing because it is not ready: it never counted, and those that do are enough."""
    if is_ready(pod):
        return False
    if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    return (budget.status.current_healthy or 0) >= (budget.status.desired_healthy or 0) > 0


def holds_back(keepers: list[PodDisruptionBudget]) -> bool:
    """Whether a pod of these budgets cannot be evicted now."""
    return len(keepers) > 1 or any(budget.status.disruptions_allowed <= 0 for budget in keepers)


def waiting_for(pods: Iterable[Pod], keepers: Keepers) -> dict[str, int]:
    """How many of these pods wait for a budget that allows no disruption now, or for one of several to go."""
    found: dict[str, int] = {}
    for pod in pods:
        mine = keepers.of(pod)
        if holds_back(mine):
            name = " and ".join(sorted(map(full_name, mine)))
            found[name] = found.get(name, 0) + 1
    return found
