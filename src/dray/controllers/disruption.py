"""Keeps the status of PodDisruptionBudgets: how many pods may be evicted now. Evictions read it, and count it down."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from functools import partial
from typing import ClassVar

from msgspec.structs import replace

from dray.api.generated.core import Pod
from dray.api.generated.policy import PodDisruptionBudget
from dray.api.kinds import BUDGETS, PODS
from dray.api.labels import LabelSelector
from dray.api.meta import Object, OwnerReference
from dray.api.pods import is_ready
from dray.api.references import ObjectName, controller_of
from dray.api.registry import Kind
from dray.controllers.context import Context
from dray.controllers.namespace_index import BY_NAMESPACE, in_namespace
from dray.controllers.queue_controller import QueueController
from dray.controllers.selectors import Selectors
from dray.eviction.budget_status import SCALED, plan, scale_of, selector_of
from dray.process.clock import as_time
from dray.reconcile.effort import beside_loop

EACH = 10
"""To see how a pod is takes as long as other plans take for so many objects."""

MOST_WORKLOADS = 100
"""A budget that asks more of them how many pods they want is looked at when any of its namespace changes."""

_Place = tuple[str, str, str]
"""Namespace, kind and name of a workload; kind and name are empty for all of a namespace."""


class _Asked:
    """Which workloads each budget asks how many pods they want."""

    def __init__(self) -> None:
        self._places: dict[ObjectName, tuple[_Place, ...]] = {}
        self._budgets: dict[_Place, dict[ObjectName, None]] = {}

    def put(self, budget: ObjectName, places: Collection[_Place]) -> None:
        """These are the workloads that a budget asks now."""
        self.drop(budget)
        self._places[budget] = found = tuple(places) if len(places) <= MOST_WORKLOADS else ((budget.namespace, "", ""),)
        for place in found:
            self._budgets.setdefault(place, {})[budget] = None

    def drop(self, budget: ObjectName) -> None:
        """A budget asks nobody."""
        for place in self._places.pop(budget, ()):
            del self._budgets[place][budget]
            if not self._budgets[place]:
                del self._budgets[place]

    def by(self, namespace: str, kind: str, name: str) -> Iterator[ObjectName]:
        """The budgets that ask a workload."""
        yield from self._budgets.get((namespace, kind, name), ())
        yield from self._budgets.get((namespace, "", ""), ())


class DisruptionController(QueueController[ObjectName]):
    """Looks at a budget when it changes, and when anything changes in the health of pods that it selects."""

    name: ClassVar[str] = "disruption-controller"

    def __init__(self, context: Context) -> None:
        self._budgets = context.informers.of(BUDGETS, PodDisruptionBudget)
        self._pods = context.informers.of(PODS, Pod)
        self._workloads = {kind: context.informers.of(kind, type_) for kind, type_ in SCALED.items()}
        super().__init__(context, self._budgets, self._pods, *self._workloads.values())
        self._pods.add_index(BY_NAMESPACE, in_namespace)
        self._asked = _Asked()
        self._selectors = Selectors(selector_of, self.queue.add, self._clock)
        self._budgets.on_change(self._selectors.follow)
        self._budgets.on_change(self._on_budget)
        self._pods.on_change(self._on_pod)
        for kind, informer in self._workloads.items():
            informer.on_change(partial(self._on_workload, kind))

    def _on_budget(self, old: PodDisruptionBudget | None, new: PodDisruptionBudget | None) -> None:
        if new is not None:
            self.queue.add(ObjectName.of(new))
        elif old is not None:
            self._asked.drop(ObjectName.of(old))

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        if self._budgets.is_empty or (old is not None and new is not None and _health(old) == _health(new)):
            return
        pods = [pod for pod in (old, new) if pod is not None]
        self._selectors.tell(pods[0].metadata.namespace, *(pod.metadata.labels for pod in pods))

    async def run(self) -> None:
        """Works until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._selectors.run())
            group.create_task(super().run())

    def _on_workload(self, kind: Kind, old: Object | None, new: Object | None) -> None:
        if old is None or new is None or old.metadata.generation == new.metadata.generation:
            return  # pods that come and go tell the rest
        for budget in self._asked.by(new.metadata.namespace, kind.kind, new.metadata.name):
            self.queue.add(budget)

    async def reconcile(self, key: ObjectName) -> float | None:
        """Looks at one budget."""
        budget = self._budgets.get(*key)
        if budget is None:
            return None
        there = self._pods.by_index(BY_NAMESPACE, key.namespace)
        count = EACH * len(there)
        pods, owners = await beside_loop(count, _selected, selector_of(budget), there)
        scales = self._ask(key, owners)
        now = as_time(self._clock.now())
        todo = await beside_loop(count, plan, budget, pods, lambda _, owner: scales.get(owner.uid), now)
        if todo.status != budget.status:
            await self._client.update(replace(budget, status=todo.status), subresource="status")
        return None if todo.again is None else now.seconds_until(todo.again)

    def _ask(self, budget: ObjectName, owners: list[OwnerReference]) -> dict[str, int | None]:
        """How many pods those who control a budget's pods want. When one changes its mind, the budget is looked at."""
        asked: dict[_Place, None] = {}

        def find(kind: Kind, namespace: str, name: str) -> Object | None:
            asked[namespace, kind.kind, name] = None
            return self._workloads[kind].get(namespace, name)

        scales = {owner.uid: scale_of(find, budget.namespace, owner) for owner in owners}
        if self._budgets.get(*budget) is not None:
            self._asked.put(budget, asked)
        return scales


def _selected(selector: LabelSelector, pods: list[Pod]) -> tuple[list[Pod], list[OwnerReference]]:
    """The pods that a selector selects, and who controls them, each once."""
    found = [pod for pod in pods if selector.matches(pod.metadata.labels)]
    owners = {owner.uid: owner for pod in found if (owner := controller_of(pod)) is not None}
    return found, list(owners.values())


def _health(pod: Pod) -> tuple[object, ...]:
    meta = pod.metadata
    return is_ready(pod), meta.deletion_timestamp is None, meta.labels, meta.owner_references
