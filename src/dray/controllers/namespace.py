"""Empties namespaces that are being deleted, and then lets them go.

Pods go first, so that what they need (claims, secrets) stays until they have stopped.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, NamedTuple

from msgspec.structs import replace

from dray.api.conditions import with_conditions
from dray.api.generated.core import Namespace, NamespaceCondition
from dray.api.kinds import NAMESPACES, PODS
from dray.api.meta import Object
from dray.api.registry import Kind, kinds
from dray.api.status import ApiError
from dray.api.times import Time
from dray.client.calls import delete_exactly, list_if_served
from dray.controllers.context import Context
from dray.controllers.queue_controller import QueueController
from dray.process.clock import as_time
from dray.validation.namespace import FINALIZER

LOOK_AGAIN = 1.0
AT_ONCE = 50
DISCOVERY = "NamespaceDeletionDiscoveryFailure"
PARSING = "NamespaceDeletionGroupVersionParsingFailure"
DELETION = "NamespaceDeletionContentFailure"
CONTENT = "NamespaceContentRemaining"
FINALIZERS = "NamespaceFinalizersRemaining"
ALL_IS_WELL = {
    DISCOVERY: ("ResourcesDiscovered", "All resources successfully discovered"),
    PARSING: ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    DELETION: ("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
    CONTENT: ("ContentRemoved", "All content successfully removed"),
    FINALIZERS: ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}
"""What each condition says when nothing is wrong."""

Content = Mapping[Kind, Sequence[Object]]


def is_due(namespace: Namespace) -> bool:
    """Whether a namespace waits for us to be emptied."""
    return namespace.metadata.deletion_timestamp is not None and FINALIZER in namespace.spec.finalizers


def finalized(namespace: Namespace) -> Namespace:
    """The namespace as it is when we are done with it."""
    left = tuple(name for name in namespace.spec.finalizers if name != FINALIZER)
    return replace(namespace, spec=replace(namespace.spec, finalizers=left))


class Findings(NamedTuple):
    """What came of emptying a namespace: what is left, and what could not be found out or deleted."""

    remaining: Content
    unknown: str = ""
    failures: tuple[str, ...] = ()


def conditions(old: Sequence[NamespaceCondition], findings: Findings, now: Time) -> tuple[NamespaceCondition, ...]:
    """Why the namespace is still there, for people. A condition that says the same as before keeps its time."""
    kinds_left = {f"{kind.plural}.{kind.group}": len(found) for kind, found in findings.remaining.items() if found}
    finalizers = Counter(
        name for found in findings.remaining.values() for obj in found for name in obj.metadata.finalizers
    )
    failures = sorted(findings.failures)
    failed = f"Failed to delete all resource types, {len(failures)} remaining: {', '.join(failures)}"
    left = f"Some resources are remaining: {_counted(kinds_left, '{} has {} resource instances')}"
    held = _counted(finalizers, "{} in {} resource instances")
    said = (
        (DISCOVERY, findings.unknown, "DiscoveryFailed", findings.unknown),
        (PARSING, "", "GroupVersionParsingFailed", ""),
        (DELETION, failures, "ContentDeletionFailed", failed),
        (CONTENT, kinds_left, "SomeResourcesRemain", left),
        (
            FINALIZERS,
            finalizers,
            "SomeFinalizersRemain",
            f"Some content in the namespace has finalizers remaining: {held}",
        ),
    )
    told = [_condition(type_, bool(is_so), reason, message, now) for type_, is_so, reason, message in said]
    return with_conditions(tuple(old), told)


def _condition(type_: str, is_so: bool, reason: str, message: str, now: Time) -> NamespaceCondition:
    if not is_so:
        reason, message = ALL_IS_WELL[type_]
    return NamespaceCondition(type=type_, status=str(is_so), reason=reason, message=message, last_transition_time=now)


def _counted(counts: Mapping[str, int], form: str) -> str:
    return ", ".join(form.format(name, count) for name, count in sorted(counts.items()))


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
        findings = await self._empty_all(key)
        if any(findings.remaining.values()) or findings.unknown or findings.failures:
            await self._tell(namespace, findings)
            return LOOK_AGAIN
        await self._client.update(finalized(namespace), subresource="finalize")
        return None

    async def _empty_all(self, key: str) -> Findings:
        """Pods first, then what dray knows, then what others have defined."""
        findings = await self._empty(key, [PODS])
        if any(findings.remaining.values()) or findings.failures:
            return findings
        findings = await self._empty(key, [kind for kind in content_kinds() if kind is not PODS])
        if any(findings.remaining.values()) or findings.failures:
            return findings
        try:
            # What dray does not know is lost to everybody if it outlives its namespace.
            foreign = deletable(await self._context.foreign_kinds())
        except (ApiError, OSError) as error:
            return Findings({}, unknown=str(error))
        return await self._empty(key, foreign)

    async def _empty(self, namespace: str, wanted: Iterable[Kind]) -> Findings:
        """Deletes all objects of some kinds; says which are still there, and what failed."""
        remaining: dict[Kind, Sequence[Object]] = {}
        failures: list[str] = []
        for kind in wanted:
            try:
                remaining[kind] = await self._empty_of(namespace, kind)
            except ApiError as error:
                failures.append(str(error))
        return Findings(remaining, failures=tuple(failures))

    async def _empty_of(self, namespace: str, kind: Kind) -> Sequence[Object]:
        found = [obj for obj in await self._list(kind, namespace) if obj.metadata.deletion_timestamp is None]
        for start in range(0, len(found), AT_ONCE):
            await asyncio.gather(*(self._delete(kind, obj) for obj in found[start : start + AT_ONCE]))
        return await self._list(kind, namespace)

    async def _list(self, kind: Kind, namespace: str) -> Sequence[Object]:
        return await list_if_served(self._client, kind, namespace) or ()

    async def _delete(self, kind: Kind, obj: Object) -> None:
        await delete_exactly(self._client, kind, obj, propagation="Background")

    async def _tell(self, namespace: Namespace, findings: Findings) -> None:
        new = conditions(namespace.status.conditions, findings, as_time(self._clock.now()))
        if new != namespace.status.conditions:
            changed = replace(namespace, status=replace(namespace.status, conditions=new))
            await self._client.update(changed, subresource="status")


def content_kinds() -> list[Kind]:
    """The kinds that dray knows whose objects are in namespaces and can be deleted."""
    return deletable(kind for kind in kinds() if kind.storage is kind)


def deletable(found: Iterable[Kind]) -> list[Kind]:
    """Those whose objects are in namespaces and can be deleted."""
    return [kind for kind in found if kind.namespaced and {"list", "delete"} <= set(kind.verbs)]


def is_terminating(error: ApiError) -> bool:
    """Whether something cannot be made because its namespace is being deleted, of which the news is on the way."""
    details = error.status.details
    return details is not None and any(cause.reason == "NamespaceTerminating" for cause in details.causes)
