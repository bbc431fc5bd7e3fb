"""The shell that workloads with a selector share: who is looked at when pods change, and which pods are theirs."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import Any, ClassVar

from dray.api.generated.core import Pod
from dray.api.kinds import PODS
from dray.api.labels import LabelSelector, LabelSelectorLike, SelectorError
from dray.api.meta import Object, OwnerReference
from dray.api.references import ObjectName, controller_of
from dray.api.registry import Kind
from dray.client import Informer
from dray.controllers.context import Context
from dray.controllers.queue_controller import QueueController
from dray.controllers.selectors import Selectors
from dray.controllers.workload_pods import PLAIN_TEXTS, Texts, WorkloadPods, sort_out
from dray.reconcile.effort import beside_loop


def usable_selector(selector: LabelSelectorLike | None) -> LabelSelector | None:
    """A selector to find objects by; None if there is none, or one that nothing can be done with."""
    try:
        found = LabelSelector.of(selector)
    except SelectorError:
        return None
    return None if found.matches_nothing or not found.requirements else found


class WorkloadController(QueueController[ObjectName]):
    """Looks at a workload when it changes, when its pods do, and when a pod without an owner may be for it."""

    kind: ClassVar[Kind]
    texts: ClassVar[Texts] = PLAIN_TEXTS

    def __init__(self, context: Context, workloads: Informer[Any], *others: Informer[Any]) -> None:
        super().__init__(context, workloads, context.informers.of(PODS, Pod), *others)
        self._workloads = workloads
        self._recorder = context.recorder(self.name)
        self._pods = WorkloadPods(context, self._recorder, self._on_owned, self.texts)
        self._selectors = Selectors(self.selector_of, self.queue.add, self._clock)
        workloads.on_change(self._selectors.follow)
        workloads.on_change(self._on_workload)
        self._pods.informer.on_change(self._on_pod)

    @abstractmethod
    def selector_of(self, workload: Any) -> LabelSelector | None:
        """Which pods a workload is about; None if that cannot be told."""

    def adoptable(self, _workload: Any, pods: list[Pod]) -> list[Pod]:
        """Which of the pods that the selector matches, and nobody manages, may become the workload's."""
        return pods

    def forget(self, workload: Any) -> None:
        """A workload is gone; drops what is remembered about it."""
        self._pods.forget(workload.metadata.uid)

    def _on_workload(self, old: Object | None, new: Object | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self.forget(old)
        if new is not None:
            self.queue.add(ObjectName.of(new))

    def _on_owned(self, namespace: str, owner: OwnerReference) -> None:
        if owner.kind == self.kind.kind:
            self.queue.add(ObjectName(namespace, owner.name))

    def _on_pod(self, _old: Pod | None, new: Pod | None) -> None:
        """A pod that nobody manages may fit somebody's selector."""
        if new is not None and not self._workloads.is_empty and controller_of(new) is None:
            self._selectors.tell(new.metadata.namespace, new.metadata.labels)

    async def run(self) -> None:
        """Works until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._selectors.run())
            group.create_task(super().run())

    async def pods_of(self, workload: Object, selector: LabelSelector) -> list[Pod]:
        """The pods of a workload, after it has adopted those that fit and released those that do not any more."""
        owned, orphans = self._pods.owned(workload), self._pods.orphans(workload.metadata.namespace)
        count = len(owned) + len(orphans)
        kept, adopted, released = await beside_loop(count, sort_out, workload, selector, owned, orphans)
        adopted = self.adoptable(workload, adopted)
        await self._pods.adopt(workload, adopted)
        await self._pods.release(workload, released)
        return [*kept, *adopted]
