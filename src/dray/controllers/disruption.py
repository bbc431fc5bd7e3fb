"""Keeps the status of PodDisruptionBudgets: how many pods may be evicted now. Evictions read it, and count it down."""

from __future__ import annotations

import asyncio
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


class DisruptionController(QueueController[ObjectName]):
    """Looks at a budget when it changes, and when anything changes in the health of pods that it selects."""

    name: ClassVar[str] = "disruption-controller"

    def __init__(self, context: Context) -> None:
        self._budgets = context.informers.of(BUDGETS, PodDisruptionBudget)
        self._pods = context.informers.of(PODS, Pod)
        self._workloads = {kind: context.informers.of(kind, type_) for kind, type_ in SCALED.items()}
        super().__init__(context, self._budgets, self._pods, *self._workloads.values())
        self._budgets.add_index(BY_NAMESPACE, in_namespace)
        self._pods.add_index(BY_NAMESPACE, in_namespace)
        self._selectors = Selectors(selector_of, self.queue.add, self._clock)
        self._budgets.on_change(self._selectors.follow)
        self._budgets.on_change(self._on_budget)
        self._pods.on_change(self._on_pod)
        for informer in self._workloads.values():
            informer.on_change(self._on_workload)

    def _on_budget(self, _old: PodDisruptionBudget | None, new: PodDisruptionBudget | None) -> None:
        if new is not None:
            self.queue.add(ObjectName.of(new))

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

    def _on_workload(self, old: Object | None, new: Object | None) -> None:
        if old is None or new is None or old.metadata.generation == new.metadata.generation:
            return  # pods that come and go tell the rest
        for budget in self._budgets.by_index(BY_NAMESPACE, new.metadata.namespace):
            self.queue.add(ObjectName.of(budget))

    async def reconcile(self, key: ObjectName) -> float | None:
        """Looks at one budget."""
        budget = self._budgets.get(*key)
        if budget is None:
            return None
        there = self._pods.by_index(BY_NAMESPACE, key.namespace)
        count = EACH * len(there)
        pods, owners = await beside_loop(count, _selected, selector_of(budget), there)
        scales = {owner.uid: scale_of(self._find, key.namespace, owner) for owner in owners}
        now = as_time(self._clock.now())
        todo = await beside_loop(count, plan, budget, pods, lambda _, owner: scales.get(owner.uid), now)
        if todo.status != budget.status:
            await self._client.update(replace(budget, status=todo.status), subresource="status")
        return None if todo.again is None else (todo.again.datetime() - now.datetime()).total_seconds()

    def _find(self, kind: Kind, namespace: str, name: str) -> Object | None:
        return self._workloads[kind].get(namespace, name)


def _selected(selector: LabelSelector, pods: list[Pod]) -> tuple[list[Pod], list[OwnerReference]]:
    """The pods that a selector selects, and who controls them, each once."""
    found = [pod for pod in pods if selector.matches(pod.metadata.labels)]
    owners = {owner.uid: owner for pod in found if (owner := controller_of(pod)) is not None}
    return found, list(owners.values())


def _health(pod: Pod) -> tuple[bool, bool, object]:
    return is_ready(pod), pod.metadata.deletion_timestamp is None, pod.metadata.labels
