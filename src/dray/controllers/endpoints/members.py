"""Services and the pods that they select: what both controllers of endpoints follow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, ParamSpec, TypeVar

from dray.api.generated.core import Pod, Service
from dray.api.kinds import PODS, SERVICES
from dray.api.references import ObjectName
from dray.client import Informer
from dray.controllers.context import Context
from dray.controllers.endpoints.targets import has_selector
from dray.controllers.namespace_index import BY_NAMESPACE, in_namespace
from dray.controllers.queue_controller import QueueController
from dray.reconcile.effort import beside_loop

P = ParamSpec("P")
R = TypeVar("R")


AT_ONCE = 1_000
"""Pods that are looked up before others get a turn of the loop."""


class MembersController(QueueController[ObjectName]):
    """Looks at a Service when it changes, and when a pod that it selects does."""

    def __init__(self, context: Context, *informers: Informer[Any]) -> None:
        self._services = context.informers.of(SERVICES, Service)
        self._pods = context.informers.of(PODS, Pod)
        super().__init__(context, self._services, self._pods, *informers)
        self._selectors: dict[str, dict[str, dict[str, str]]] = {}
        """By namespace and Service: pods in namespaces without Services cost nothing."""
        self._members: dict[ObjectName, dict[str, None]] = {}
        """Names of the pods of each Service."""
        self._unread: set[ObjectName] = set()
        """Services whose pods have yet to be looked for among those that were there before them."""
        self._pods.add_index(BY_NAMESPACE, in_namespace)
        self._services.on_change(self._on_service)
        self._pods.on_change(self._on_pod)

    def _on_service(self, old: Service | None, new: Service | None) -> None:
        found = new or old
        if found is None:
            return
        key = ObjectName.of(found)
        if new is None or not has_selector(new):
            self._selectors.get(key.namespace, {}).pop(key.name, None)
            self._members.pop(key, None)
            self._unread.discard(key)
        else:
            selectors = self._selectors.setdefault(key.namespace, {})
            if selectors.get(key.name) != new.spec.selector:
                selectors[key.name] = new.spec.selector
                self._members[key] = {}
                self._unread.add(key)
        self.queue.add(key)

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        selectors = None if pod is None else self._selectors.get(pod.metadata.namespace)
        if pod is None or not selectors:
            return
        for name, selector in selectors.items():
            key = ObjectName(pod.metadata.namespace, name)
            members = self._members[key]
            if new is not None and _selects(selector, new):
                members[new.metadata.name] = None
                self.queue.add(key)
            elif pod.metadata.name in members:
                del members[pod.metadata.name]
                self.queue.add(key)

    async def _pods_of(self, key: ObjectName) -> list[Pod]:
        """The pods of a Service, looked up a part at a time."""
        while key in self._unread:
            self._unread.discard(key)
            members, selector = self._members[key], self._selectors[key.namespace][key.name]
            there = [pod.metadata.name for pod in self._pods.by_index(BY_NAMESPACE, key.namespace)]
            async for pod in self._one_by_one(key.namespace, there):
                if _selects(selector, pod):
                    members[pod.metadata.name] = None
        return [pod async for pod in self._one_by_one(key.namespace, list(self._members.get(key, ())))]

    async def _one_by_one(self, namespace: str, names: list[str]) -> AsyncIterator[Pod]:
        """Pods as they are when it is their turn."""
        for number, name in enumerate(names, 1):
            pod = self._pods.get(namespace, name)
            if pod is not None:
                yield pod
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)


async def beside(service: Service, pods: list[Pod], work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """What a pure function makes of a Service and its pods; each port may be another one in each pod."""
    return await beside_loop(len(pods) * (1 + len(service.spec.ports)), work, *args, **kwargs)


def _selects(selector: dict[str, str], pod: Pod) -> bool:
    return selector.items() <= pod.metadata.labels.items()
