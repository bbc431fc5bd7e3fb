"""Which disruption budgets pods that have to leave are under, and how many disruptions these allow now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from dray.api.generated.core import Pod
from dray.api.generated.policy import PodDisruptionBudget
from dray.api.kinds import PODS
from dray.api.labels import LabelSelector, SelectorError
from dray.api.references import ObjectRef
from dray.snapshot.snapshot import Snapshot
from dray.what_if.evictions import Budget, Eviction


def with_budgets(snapshot: Snapshot, leaving: Mapping[ObjectRef, Eviction]) -> dict[ObjectRef, Eviction]:
    """The evictions, each with the tightest budget of its pod."""
    budgets = _by_namespace(snapshot.objects(PodDisruptionBudget))
    if not budgets:
        return dict(leaving)
    found = {ref: _tightest(snapshot.get(PODS.resource, ref.namespace, ref.name), budgets) for ref in leaving}
    needed = Counter(_place(budget) for budget in found.values() if budget is not None)
    return {
        ref: eviction if (budget := found[ref]) is None else replace(eviction, budget=_tell(budget, needed))
        for ref, eviction in leaving.items()
    }


def _by_namespace(
    budgets: Iterable[PodDisruptionBudget],
) -> dict[str, list[tuple[LabelSelector, PodDisruptionBudget]]]:
    grouped: dict[str, list[tuple[LabelSelector, PodDisruptionBudget]]] = {}
    for budget in budgets:
        try:
            selector = LabelSelector.of(budget.spec.selector)
        except SelectorError:
            continue  # selects nothing, as for who keeps the budget
        grouped.setdefault(budget.metadata.namespace, []).append((selector, budget))
    return grouped


def _tightest(
    pod: object, budgets: Mapping[str, list[tuple[LabelSelector, PodDisruptionBudget]]]
) -> PodDisruptionBudget | None:
    if not isinstance(pod, Pod):
        return None
    mine = [
        budget for selector, budget in budgets.get(pod.metadata.namespace, ()) if selector.matches(pod.metadata.labels)
    ]
    return min(mine, key=lambda budget: (budget.status.disruptions_allowed, budget.metadata.name), default=None)


def _place(budget: PodDisruptionBudget) -> tuple[str, str]:
    return budget.metadata.namespace, budget.metadata.name


def _tell(budget: PodDisruptionBudget, needed: Mapping[tuple[str, str], int]) -> Budget:
    return Budget(name=budget.metadata.name, allowed=budget.status.disruptions_allowed, needed=needed[_place(budget)])
