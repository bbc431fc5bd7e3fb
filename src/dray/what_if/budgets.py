"""Which disruption budgets pods that have to leave are under, and how many disruptions these allow now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from msgspec.structs import replace

from dray.api.generated.core import Pod
from dray.api.generated.policy import PodDisruptionBudget
from dray.api.kinds import PODS
from dray.api.references import ObjectRef, full_name
from dray.eviction.budgets import Keepers
from dray.snapshot.snapshot import Snapshot
from dray.what_if.budget_changes import count_new
from dray.what_if.evictions import Budget, Eviction


def with_budgets(snapshot: Snapshot, leaving: Mapping[ObjectRef, Eviction]) -> dict[ObjectRef, Eviction]:
    """The evictions, each with the budgets that are asked about its pod, the tightest first."""
    keepers = Keepers(count_new(snapshot))
    found = {ref: _keepers(keepers, snapshot.get(PODS.resource, ref.namespace, ref.name)) for ref in leaving}
    needed = Counter(full_name(budget) for budgets in found.values() for budget in budgets)
    told = {ref: sorted((_tell(one, needed) for one in budgets), key=_tightness) for ref, budgets in found.items()}
    return {
        ref: replace(eviction, budget=told[ref][0], more_budgets=tuple(told[ref][1:])) if told[ref] else eviction
        for ref, eviction in leaving.items()
    }


def _keepers(keepers: Keepers, pod: object) -> list[PodDisruptionBudget]:
    return keepers.of(pod) if isinstance(pod, Pod) else []


def _tell(budget: PodDisruptionBudget, needed: Mapping[str, int]) -> Budget:
    name = budget.metadata.name
    return Budget(name=name, allowed=budget.status.disruptions_allowed, needed=needed[full_name(budget)])


def _tightness(budget: Budget) -> tuple[int, int, str]:
    """How many it lacks comes first: with many pods to go, a budget that allows more may be the tighter one."""
    return budget.granted - budget.needed, budget.allowed, budget.name
