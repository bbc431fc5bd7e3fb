"""The pods of workloads: finding them, creating, deleting, adopting and releasing them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from dray.api import codec
from dray.api.generated.core import Pod
from dray.api.kinds import PODS
from dray.api.labels import LabelSelector
from dray.api.meta import DeleteOptions, Object, OwnerReference, Preconditions
from dray.api.pods import is_finished
from dray.api.references import controller_of
from dray.api.status import ApiError
from dray.controllers.context import Context
from dray.controllers.expectations import Expectations
from dray.controllers.pod_templates import LETTERS, reference_to
from dray.process.tasks import cancel_all
from dray.reconcile import EventRecorder

BY_CONTROLLER = "controller-uid"
BY_LACK_OF_CONTROLLER = "namespace-of-orphans"

T = TypeVar("T")
Failure = ApiError | OSError | TimeoutError
OwnerChanged = Callable[[str, OwnerReference], None]
"""Called with the namespace and the owner of a pod that changed."""


class Texts(NamedTuple):
    """What events about pods say; `pod`, `owner` and `error` are filled in."""

    created: str = "Created pod: {pod}"
    not_created: str = "Error creating: {error}"
    deleted: str = "Deleted pod: {pod}"
    not_deleted: str = "Error deleting: {error}"


PLAIN_TEXTS = Texts()

STARTED_AT_ONCE = 16
"""So many writes begin in one turn of the loop."""
MAX_AT_ONCE = 500
"""So many pods are deleted at once."""
MANY_WAITING = 1_000
"""A workload with no more pods that wait for a node gets more without delay."""


def sort_out(
    owner: Object, selector: LabelSelector, owned: Iterable[Pod], orphans: Iterable[Pod]
) -> tuple[list[Pod], list[Pod], list[Pod]]:
    """Which pods an owner keeps, adopts and releases. An owner that is being deleted adopts nothing."""
    owned = list(owned)
    kept = [pod for pod in owned if selector.matches(pod.metadata.labels)]
    released = [pod for pod in owned if not selector.matches(pod.metadata.labels)]
    if owner.metadata.deletion_timestamp is not None:
        return kept, [], released
    adopted = [
        pod
        for pod in orphans
        if pod.metadata.deletion_timestamp is None and not is_finished(pod) and selector.matches(pod.metadata.labels)
    ]
    return kept, adopted, released


class WorkloadPods:
    """All pods by who manages them, and the writes that owners ask for, each remembered until it is seen."""

    def __init__(
        self, context: Context, recorder: EventRecorder, owner_changed: OwnerChanged, texts: Texts = PLAIN_TEXTS
    ) -> None:
        self.informer = context.informers.of(PODS, Pod)
        self.expectations = Expectations(context.clock.monotonic)
        self._client = context.client
        self._random = context.randomness
        self._recorder = recorder
        self._owner_changed = owner_changed
        self._texts = texts
        self._monotonic = context.clock.monotonic
        self._made: dict[str, float] = {}
        self.informer.add_index(BY_CONTROLLER, controller_uid)
        self.informer.add_index(BY_LACK_OF_CONTROLLER, namespace_of_orphan)
        self.informer.on_change(self._on_pod)

    def owned(self, owner: Object) -> list[Pod]:
        """The pods that an owner manages."""
        return self.informer.by_index(BY_CONTROLLER, owner.metadata.uid)

    def orphans(self, namespace: str) -> list[Pod]:
        """The pods of a namespace that nobody manages."""
        return self.informer.by_index(BY_LACK_OF_CONTROLLER, namespace)

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        for pod in (old, new):
            if pod is None or not pod.metadata.owner_references:
                continue
            owner = controller_of(pod)
            if owner is None:
                continue
            if pod is new:
                self.expectations.saw_created(owner.uid, pod.metadata.name)
            if new is None or new.metadata.deletion_timestamp is not None:
                self.expectations.saw_deleted(owner.uid, pod.metadata.uid)
            self._owner_changed(pod.metadata.namespace, owner)

    def forget(self, owner: str) -> None:
        """An owner is gone: nothing about it is remembered."""
        self.expectations.forget(owner)
        self._made.pop(owner, None)

    def pause(self, owner: Object, pods: Iterable[Pod]) -> float:
        """For how many seconds an owner is to get no more pods, because so many of those it has wait for a node.

        Pods that can run get their place meanwhile; of a workload that asks for pods without end there are fewer and
        fewer new ones.
        """
        waiting = sum(1 for pod in pods if not pod.spec.node_name)
        made = self._made.get(owner.metadata.uid)
        return 0.0 if made is None else made + pause_before_more(waiting) - self._monotonic()

    async def create(self, owner: Object, pods: Sequence[Pod]) -> Failure | None:
        """Creates pods, few at first, and stops when that fails; returns the failure, None if all went well.

        A quota that is used up then costs one refusal, not hundreds.
        """
        start, size = 0, 1
        while start < len(pods):
            batch = pods[start : start + size]
            self._made[owner.metadata.uid] = self._monotonic()
            for failure in await side_by_side(self._create(owner, pod) for pod in batch):
                if failure is not None:
                    return failure
            start, size = start + size, size * 2
        return None

    async def _create(self, owner: Object, pod: Pod) -> Failure | None:
        uid = owner.metadata.uid
        name = pod.metadata.name or pod.metadata.generate_name + "".join(self._random.choices(LETTERS, k=5))
        self.expectations.expect_created(uid, name)
        try:
            await self._client.create(replace(pod, metadata=replace(pod.metadata, name=name)))
        except (ApiError, OSError, TimeoutError) as error:
            self.expectations.saw_created(uid, name)
            await self._recorder.warning(owner, "FailedCreate", self._say(self._texts.not_created, owner, name, error))
            return error
        await self._recorder.normal(owner, "SuccessfulCreate", self._say(self._texts.created, owner, name))
        return None

    async def delete(self, owner: Object, pods: Iterable[Pod]) -> None:
        """Deletes some pods at most: what becomes of them wakes the owner. Raises the first failure in the end."""
        work = (self._delete(owner, pod) for pod in itertools.islice(pods, MAX_AT_ONCE))
        for failure in await side_by_side(work):
            if failure is not None:
                raise failure

    async def _delete(self, owner: Object, pod: Pod) -> Failure | None:
        uid, meta = owner.metadata.uid, pod.metadata
        self.expectations.expect_deleted(uid, meta.uid)
        options = DeleteOptions(preconditions=Preconditions(uid=meta.uid))
        try:
            await self._client.delete(PODS, meta.namespace, meta.name, options)
        except (ApiError, OSError, TimeoutError) as error:
            self.expectations.saw_deleted(uid, meta.uid)
            if isinstance(error, ApiError) and error.code in (404, 409):
                return None
            text = self._say(self._texts.not_deleted, owner, meta.name, error)
            await self._recorder.warning(owner, "FailedDelete", text)
            return error
        await self._recorder.normal(owner, "SuccessfulDelete", self._say(self._texts.deleted, owner, meta.name))
        return None

    @staticmethod
    def _say(text: str, owner: Object, pod: str, error: Exception | None = None) -> str:
        return text.format(pod=pod, owner=owner.metadata.name, error=error)

    async def adopt(self, owner: Object, pods: Iterable[Pod], finalizer: str = "") -> None:
        """Makes an owner the manager of pods that have none; a finalizer keeps them until it has counted them."""
        for pod in pods:
            references = [*pod.metadata.owner_references, reference_to(owner)]
            known = pod.metadata.finalizers
            await self._set_owners(pod, references, (*known, finalizer) if finalizer and finalizer not in known else ())

    async def release(self, owner: Object, pods: Iterable[Pod]) -> None:
        """Lets go of pods that an owner's selector does not match any more."""
        for pod in pods:
            await self._set_owners(pod, [one for one in pod.metadata.owner_references if one.uid != owner.metadata.uid])

    async def _set_owners(self, pod: Pod, references: Sequence[OwnerReference], finalizers: Sequence[str] = ()) -> None:
        meta = pod.metadata
        change: dict[str, Any] = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        change["ownerReferences"] = [codec.to_builtins(one) for one in references] or None
        if finalizers:
            change["finalizers"] = list(finalizers)
        try:
            await self._client.patch(PODS, meta.namespace, meta.name, {"metadata": change})
        except ApiError as error:
            if error.code not in (404, 409):
                raise


def pause_before_more(waiting: int) -> float:
    """Seconds between two rounds of new pods of a workload of whose pods so many wait for a node."""
    return 0.0 if waiting <= MANY_WAITING else 0.1 * (waiting / MANY_WAITING) ** 2


async def side_by_side(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Does everything at once, but begins with a few in each turn of the loop."""
    loop, tasks = asyncio.get_running_loop(), []
    try:
        for number, one in enumerate(work, 1):
            tasks.append(loop.create_task(one))
            if number % STARTED_AT_ONCE == 0:
                await asyncio.sleep(0)
        return await asyncio.gather(*tasks)
    finally:
        await cancel_all(task for task in tasks if not task.done())


def controller_uid(obj: Object) -> tuple[str, ...]:
    """The uid of the owner that manages an object, for an index."""
    owner = controller_of(obj) if obj.metadata.owner_references else None
    return (owner.uid,) if owner is not None else ()


def namespace_of_orphan(obj: Object) -> tuple[str, ...]:
    """The namespace of an object that nobody manages, for an index."""
    if obj.metadata.owner_references and controller_of(obj) is not None:
        return ()
    return (obj.metadata.namespace,)
