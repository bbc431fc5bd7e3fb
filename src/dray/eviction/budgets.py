"""Disruption budgets that make pods wait. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from dray.api.generated.core import Pod
from dray.api.generated.policy import PodDisruptionBudget
from dray.api.labels import LabelSelector, SelectorError
from dray.api.references import full_name


def covers(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether a budget is about a pod; one with a selector that cannot be is about none."""
    if budget.metadata.namespace != pod.metadata.namespace:
        return False
    try:
        return LabelSelector.of(budget.spec.selector).matches(pod.metadata.labels)
    except SelectorError:
        return False


def waiting_for(pods: Iterable[Pod], budgets: Iterable[PodDisruptionBudget]) -> dict[str, int]:
    """By budget that allows no disruption now, how many of these pods wait for it; each counts for one of them."""
    strict = [budget for budget in budgets if budget.status.disruptions_allowed <= 0]
    found: dict[str, int] = {}
    for pod in pods:
        name = next((full_name(budget) for budget in strict if covers(budget, pod)), "")
        if name:
            found[name] = found.get(name, 0) + 1
    return found
