"""Empties namespaces that are being deleted, and then lets them go.

Pods go first, so that what they need (claims, secrets) stays until they have stopped.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from msgspec.structs import replace

from dray.api.conditions import with_conditions
from dray.api.generated.core import Namespace, NamespaceCondition
from dray.api.kinds import NAMESPACES, PODS
from dray.api.meta import Object
from dray.api.registry import Kind, kinds
from dray.api.times import Time
from dray.client.calls import delete_exactly, list_if_served
from dray.controllers.context import Context
from dray.controllers.queue_controller import QueueController
from dray.process.clock import as_time

FINALIZER = "kubernetes"
LOOK_AGAIN = 1.0
AT_ONCE = 50
CONTENT = "NamespaceContentRemaining"
FINALIZERS = "NamespaceFinalizersRemaining"

Content = Mapping[Kind, Sequence[Object]]


def is_due(namespace: Namespace) -> bool:
    """Whether a namespace waits for us to be emptied."""
    return namespace.metadata.deletion_timestamp is not None and FINALIZER in namespace.spec.finalizers


def finalized(namespace: Namespace) -> Namespace:
    """The namespace as it is when we are done with it."""
    left = tuple(name for name in namespace.spec.finalizers if name != FINALIZER)
    return replace(namespace, spec=replace(namespace.spec, finalizers=left))


def conditions(old: Sequence[NamespaceCondition], remaining: Content, now: Time) -> tuple[NamespaceCondition, ...]:
    """Why the namespace is still there, for people. A condition that says the same as before keeps its time."""
    kinds_left = {kind.resource: len(found) for kind, found in remaining.items() if found}
    finalizers = Counter(name for found in remaining.values() for obj in found for name in obj.metadata.finalizers)
    said = {
        CONTENT: (
            "SomeResourcesRemain" if kinds_left else "ContentRemoved",
            _said("Some resources are remaining: ", kinds_left, "All content successfully removed", "{}. has {}"),
            bool(kinds_left),
        ),
        FINALIZERS: (
            "SomeFinalizersRemain" if finalizers else "ContentHasNoFinalizers",
            _said(
                "Some content in the namespace has finalizers remaining: ",
                finalizers,
                "All finalizers removed",
                "{} in {}",
            ),
            bool(finalizers),
        ),
    }
    told = [
        NamespaceCondition(type=type_, status=str(is_so), reason=reason, message=message, last_transition_time=now)
        for type_, (reason, message, is_so) in said.items()
    ]
    return with_conditions(tuple(old), told)


def _said(start: str, counts: Mapping[str, int], otherwise: str, form: str) -> str:
    if not counts:
        return otherwise
    return start + ", ".join(f"{form.format(name, count)} resource instances" for name, count in sorted(counts.items()))


class NamespaceController(QueueController[str]):
    """Looks at every namespace that is being deleted, again and again until nothing is left in it."""

    name: ClassVar[str] = "namespace-controller"

    def __init__(self, context: Context) -> None:
        self._namespaces = context.informers.of(NAMESPACES, Namespace)
        super().__init__(context, self._namespaces, workers=5)
        self._namespaces.on_change(self._on_change)

    def _on_change(self, _old: Namespace | None, new: Namespace | None) -> None:
        if new is not None and is_due(new):
            self.queue.add(new.metadata.name)

    async def reconcile(self, key: str) -> float | None:
        """Deletes what is there; finishes if nothing is left, else looks again soon."""
        namespace = self._namespaces.get("", key)
        if namespace is None or not is_due(namespace):
            return None
        remaining = await self._empty(key, [PODS])
        if not any(remaining.values()):
            remaining = await self._empty(key, [kind for kind in content_kinds() if kind is not PODS])
        if not any(remaining.values()):
            # What dray does not know is lost to everybody if it outlives its namespace.
            remaining = await self._empty(key, deletable(await self._context.foreign_kinds()))
        if any(remaining.values()):
            await self._tell(namespace, remaining)
            return LOOK_AGAIN
        await self._client.update(finalized(namespace), subresource="finalize")
        return None

    async def _empty(self, namespace: str, wanted: Iterable[Kind]) -> Content:
        """Deletes all objects of some kinds; returns those that are still there."""
        remaining = {}
        for kind in wanted:
            found = [obj for obj in await self._list(kind, namespace) if obj.metadata.deletion_timestamp is None]
            for start in range(0, len(found), AT_ONCE):
                await asyncio.gather(*(self._delete(kind, obj) for obj in found[start : start + AT_ONCE]))
            remaining[kind] = await self._list(kind, namespace)
        return remaining

    async def _list(self, kind: Kind, namespace: str) -> Sequence[Object]:
        return await list_if_served(self._client, kind, namespace) or ()

    async def _delete(self, kind: Kind, obj: Object) -> None:
        await delete_exactly(self._client, kind, obj, propagation="Background")

    async def _tell(self, namespace: Namespace, remaining: Content) -> None:
        new = conditions(namespace.status.conditions, remaining, as_time(self._clock.now()))
        if new != namespace.status.conditions:
            changed = replace(namespace, status=replace(namespace.status, conditions=new))
            await self._client.update(changed, subresource="status")


def content_kinds() -> list[Kind]:
    """The kinds that dray knows whose objects are in namespaces and can be deleted."""
    return deletable(kind for kind in kinds() if kind.storage is kind)


def deletable(found: Iterable[Kind]) -> list[Kind]:
    """Those whose objects are in namespaces and can be deleted."""
    return [kind for kind in found if kind.namespaced and {"list", "delete"} <= set(kind.verbs)]
