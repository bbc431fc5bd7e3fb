"""Services and the pods that they select: what both controllers of endpoints follow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, ParamSpec, TypeVar

from dray.api.generated.core import Pod, Service
from dray.api.kinds import PODS, SERVICES
from dray.api.labels import LabelSelector, Requirement
from dray.api.references import ObjectName
from dray.client import Informer
from dray.controllers.context import Context
from dray.controllers.namespace_index import BY_NAMESPACE, in_namespace
from dray.controllers.queue_controller import QueueController
from dray.controllers.selectors import Selectors
from dray.process.tasks import with_turns
from dray.reconcile.effort import beside_loop

P = ParamSpec("P")
R = TypeVar("R")


AT_ONCE = 1_000
"""Pods that are looked up before others get a turn of the loop."""

Labelled = tuple[str, str, str]
"""A namespace, and a label with its value."""


class _Pods:
    """The pods with a label that Services ask for: those that have yet to be looked up were there before it was."""

    def __init__(self) -> None:
        self.services: set[str] = set()
        self.names: dict[str, None] = {}
        self.is_read = False
        self.reading = asyncio.Lock()


class MembersController(QueueController[ObjectName]):
    """Looks at a Service when it changes, and when a pod that it selects does."""

    def __init__(self, context: Context, *informers: Informer[Any]) -> None:
        self._services = context.informers.of(SERVICES, Service)
        self._pods = context.informers.of(PODS, Pod)
        super().__init__(context, self._services, self._pods, *informers)
        self._selectors = Selectors(_selector_of, self.queue.add, self._clock)
        self._labels: dict[ObjectName, Labelled] = {}
        """The label by which the pods of a Service are found."""
        self._with_label: dict[Labelled, _Pods] = {}
        self._pods.add_index(BY_NAMESPACE, in_namespace)
        self._services.on_change(self._selectors.follow)
        self._services.on_change(self._on_service)
        self._pods.on_change(self._on_pod)

    async def run(self) -> None:
        """Works until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._selectors.run())
            group.create_task(super().run())

    def _on_service(self, old: Service | None, new: Service | None) -> None:
        found = new or old
        if found is None:
            return
        key = ObjectName.of(found)
        if old is None or new is None or old.spec.selector != new.spec.selector:
            self._leave(key)
            if new is not None and new.spec.selector:
                self._find_by(key, new.spec.selector)
        self.queue.add(key)

    def _find_by(self, key: ObjectName, selector: dict[str, str]) -> None:
        """Of the labels of a selector the one that fewest Services ask for tells its pods best."""
        labels = [(key.namespace, name, value) for name, value in selector.items()]
        self._labels[key] = chosen = min(labels, key=self._commonness)
        self._with_label.setdefault(chosen, _Pods()).services.add(key.name)

    def _commonness(self, label: Labelled) -> int:
        known = self._with_label.get(label)
        return 0 if known is None else len(known.services)

    def _leave(self, key: ObjectName) -> None:
        label = self._labels.pop(key, None)
        if label is not None:
            self._with_label[label].services.discard(key.name)
            if not self._with_label[label].services:
                del self._with_label[label]

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        if pod is None or not self._with_label:
            return
        namespace, name = pod.metadata.namespace, pod.metadata.name
        before, after = (one.metadata.labels if one is not None else {} for one in (old, new))
        if before != after:
            for label in before.items() - after.items():
                if (known := self._with_label.get((namespace, *label))) is not None:
                    known.names.pop(name, None)
            for label in after.items() - before.items():
                if (known := self._with_label.get((namespace, *label))) is not None:
                    known.names[name] = None
        self._selectors.tell(namespace, before, after)

    async def _pods_of(self, key: ObjectName) -> list[Pod]:
        """The pods of a Service, looked up a part at a time."""
        service, label = self._services.get(*key), self._labels.get(key)
        if service is None or label is None:
            return []
        known = self._with_label[label]
        async with known.reading:
            if not known.is_read:
                there = [pod.metadata.name for pod in self._pods.by_index(BY_NAMESPACE, key.namespace)]
                async for pod in self._one_by_one(key.namespace, there):
                    if _has(label, pod):
                        known.names[pod.metadata.name] = None
                known.is_read = True
        pods = self._one_by_one(key.namespace, list(known.names))
        return [pod async for pod in pods if service.spec.selector.items() <= pod.metadata.labels.items()]

    async def _one_by_one(self, namespace: str, names: list[str]) -> AsyncIterator[Pod]:
        """Pods as they are when it is their turn."""
        async for name in with_turns(names, AT_ONCE):
            pod = self._pods.get(namespace, name)
            if pod is not None:
                yield pod


async def beside(service: Service, pods: list[Pod], work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """What a pure function makes of a Service and its pods; each port may be another one in each pod."""
    return await beside_loop(len(pods) * (1 + len(service.spec.ports)), work, *args, **kwargs)


def _has(label: Labelled, pod: Pod) -> bool:
    _, name, value = label
    return pod.metadata.labels.get(name) == value


def _selector_of(service: Service) -> LabelSelector:
    """Made of what is stored: how a label has to look is the server's business."""
    wanted = tuple(Requirement(name, "In", (value,)) for name, value in service.spec.selector.items())
    return LabelSelector(wanted, matches_nothing=not wanted)
