"""What is different about disruption budgets: which pods no drain gets past, and which it does now. Pure.

Budgets are counted as their controller does it (`eviction.budget_status`), before and after, with the pods that are
there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from functools import partial

from msgspec.structs import replace

from dray.allocator.reasons import Report
from dray.api.generated.core import Pod
from dray.api.generated.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from dray.api.meta import Object
from dray.api.pods import is_active
from dray.api.references import ObjectName, full_name
from dray.api.registry import Kind
from dray.api.times import Time
from dray.eviction.budget_status import SCALED, plan, scale_of, selector_of
from dray.eviction.budgets import Keepers, holds_back
from dray.snapshot.snapshot import Snapshot

Pair = tuple[Object | None, Object | None]


class BudgetChange(Report, frozen=True, kw_only=True):
    """A budget that is different, or allows something else than before."""

    budget: str
    pods: int
    """How many pods it is about; if it goes, how many of its pods stay."""
    before: int | None = None
    """How many of them may be evicted now; absent if there is no such budget."""
    after: int | None = None
    held: tuple[str, ...] = ()
    """Pods of it that eviction refuses to let go now, for this budget or because they have several."""
    nodes: tuple[str, ...] = ()
    """Where these are: drains of them wait."""
    let_go: tuple[str, ...] = ()
    """Pods that eviction refused to let go before, and does not now."""
    several: tuple[str, ...] = ()
    """Pods that are under further budgets, too: the eviction API lets them go at no time."""


def compare_budgets(
    differing: Collection[Pair], before: Snapshot, after: Snapshot, now: datetime
) -> Iterator[BudgetChange]:
    """Budgets that differ, and those that allow something else because pods or workloads do."""
    objects = [obj for pair in differing for obj in pair if obj is not None]
    concerned = {obj.metadata.namespace for obj in objects if isinstance(obj, _COUNTED)}
    written = {ObjectName.of(obj) for obj in objects if isinstance(obj, PodDisruptionBudget)}
    if not concerned:
        return
    old, new = (_Counted(snapshot, concerned, Time.of(now)) for snapshot in (before, after))
    for name in sorted({*old.budgets, *new.budgets}):
        change = _change(name, old, new)
        if name in written or change.before != change.after:
            yield change


def count_new(snapshot: Snapshot) -> Iterator[PodDisruptionBudget]:
    """The budgets of a snapshot; those that no controller has looked at yet, as in manifests, are counted here."""
    uncounted = {one.metadata.namespace for one in snapshot.objects(PodDisruptionBudget) if _is_new(one)}
    counted = _Counted(snapshot, uncounted, Time("")).budgets if uncounted else {}
    for one in snapshot.objects(PodDisruptionBudget):
        yield counted[ObjectName.of(one)] if _is_new(one) else one


def recount(differing: Iterable[Pair], after: Snapshot, now: datetime) -> Iterator[PodDisruptionBudget]:
    """Budgets that somebody writes, as they are once they are counted; a server keeps the old count until then."""
    written = [there for _, there in differing if isinstance(there, PodDisruptionBudget)]
    counted = _Counted(after, {one.metadata.namespace for one in written}, Time.of(now)).budgets if written else {}
    yield from (counted[ObjectName.of(one)] for one in written)


_COUNTED: tuple[type[Object], ...] = (PodDisruptionBudget, Pod, *SCALED.values())
"""What a count depends on."""


class _Counted:
    """The budgets of some namespaces, with their pods counted."""

    def __init__(self, snapshot: Snapshot, namespaces: Collection[str], now: Time) -> None:
        self._pods: dict[str, list[Pod]] = {}
        for pod in snapshot.objects(Pod):
            if pod.metadata.namespace in namespaces:
                self._pods.setdefault(pod.metadata.namespace, []).append(pod)
        scale = partial(scale_of, partial(_find, snapshot))
        self.budgets = {
            ObjectName.of(one): replace(one, status=plan(one, self._selected(one), scale, now).status)
            for one in snapshot.objects(PodDisruptionBudget)
            if one.metadata.namespace in namespaces
        }
        self._keepers = Keepers(self.budgets.values())

    def _selected(self, budget: PodDisruptionBudget) -> list[Pod]:
        selector = selector_of(budget)
        return [pod for pod in self._pods.get(budget.metadata.namespace, ()) if selector.matches(pod.metadata.labels)]

    def covered(self, name: ObjectName) -> dict[str, Pod]:
        """The pods that a budget is about and that somebody may want to evict."""
        budget = self.budgets.get(name)
        return {full_name(pod): pod for pod in self._selected(budget) if is_active(pod)} if budget is not None else {}

    def there(self, namespace: str) -> set[str]:
        """The pods of a namespace."""
        return {full_name(pod) for pod in self._pods.get(namespace, ())}

    def held(self, pods: Iterable[str], namespace: str) -> dict[str, str]:
        """By pod of these that eviction refuses to let go, its node."""
        known = {full_name(pod): pod for pod in self._pods.get(namespace, ())}
        found = {name: known[name] for name in pods if name in known}
        return {name: pod.spec.node_name for name, pod in found.items() if holds_back(self._keepers.of(pod))}

    def several(self, name: ObjectName) -> Iterator[str]:
        """The pods of a budget that have others, too."""
        return (pod for pod, known in self.covered(name).items() if len(self._keepers.of(known)) > 1)


def _change(name: ObjectName, old: _Counted, new: _Counted) -> BudgetChange:
    was, now = old.budgets.get(name), new.budgets.get(name)
    pods = dict.fromkeys((*old.covered(name), *new.covered(name)))
    before, after = (one.held(pods, name.namespace) for one in (old, new))
    mine, there = new.covered(name), new.there(name.namespace)
    held = {pod: node for pod, node in after.items() if pod in mine}
    return BudgetChange(
        budget=str(name),
        pods=len(mine if now is not None else there & old.covered(name).keys()),
        before=was.status.disruptions_allowed if was is not None else None,
        after=now.status.disruptions_allowed if now is not None else None,
        held=tuple(held),
        nodes=tuple(dict.fromkeys(node for node in held.values() if node)),
        let_go=tuple(pod for pod in before if pod in there and pod not in after),
        several=tuple(new.several(name)),
    )


def _is_new(budget: PodDisruptionBudget) -> bool:
    return budget.status == PodDisruptionBudgetStatus() and not budget.metadata.resource_version


def _find(snapshot: Snapshot, kind: Kind, namespace: str, name: str) -> Object | None:
    return snapshot.get(kind.resource, namespace, name)
