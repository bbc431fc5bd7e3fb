"""The ReplicaSet controller: watches ReplicaSets and pods, and carries out the plan."""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from dray.api.generated.apps import ReplicaSet
from dray.api.generated.core import Pod
from dray.api.labels import LabelSelector, SelectorError
from dray.api.meta import OwnerReference
from dray.client.informer import Place
from dray.controllers.context import Context
from dray.controllers.expectations import LONGEST
from dray.controllers.kinds import PODS, REPLICA_SETS
from dray.controllers.pod_states import controller_of
from dray.controllers.queue_controller import QueueController
from dray.controllers.replica_set.plan import next_available, plan, plan_status
from dray.controllers.workload_pods import Failure, WorkloadPods, pod_from, sort_out
from dray.reconcile.clock import as_time

BY_NAMESPACE = "namespace"


class ReplicaSetController(QueueController[Place]):
    """Makes and deletes pods until their number is right."""

    name: ClassVar[str] = "replicaset-controller"

    def __init__(self, context: Context) -> None:
        self._sets = context.informers.of(REPLICA_SETS, ReplicaSet)
        super().__init__(context, self._sets, context.informers.of(PODS, Pod))
        self._pods = WorkloadPods(context, context.recorder(self.name), self._on_owned)
        self._sets.add_index(BY_NAMESPACE, _namespace)
        self._sets.on_change(self._on_set)
        self._pods.informer.on_change(self._on_pod)

    def _on_set(self, old: ReplicaSet | None, new: ReplicaSet | None) -> None:
        if new is not None:
            self.queue.add(Place.of(new))
        elif old is not None:
            self._pods.expectations.forget(old.metadata.uid)

    def _on_owned(self, namespace: str, owner: OwnerReference) -> None:
        if owner.kind == "ReplicaSet":
            self.queue.add(Place(namespace, owner.name))

    def _on_pod(self, _old: Pod | None, new: Pod | None) -> None:
        """A pod that nobody manages may fit somebody's selector."""
        if new is None or not len(self._sets) or controller_of(new) is not None:
            return
        for candidate in self._sets.by_index(BY_NAMESPACE, new.metadata.namespace):
            selector = _selector(candidate)
            if selector is not None and selector.matches(new.metadata.labels):
                self.queue.add(Place.of(candidate))

    async def reconcile(self, key: Place) -> float | None:
        """Looks at one ReplicaSet."""
        replica_set = self._sets.get(*key)
        selector = _selector(replica_set) if replica_set is not None else None
        if replica_set is None or selector is None:
            return None
        owned, orphans = self._pods.owned(replica_set), self._pods.orphans(key.namespace)
        kept, adopted, released = sort_out(replica_set, selector, owned, orphans)
        await self._pods.adopt(replica_set, adopted)
        await self._pods.release(replica_set, released)
        pods = [*kept, *adopted]
        failure: Failure | None = None
        settled = self._pods.expectations.are_met(replica_set.metadata.uid)
        if settled:
            todo = plan(replica_set, pods)
            wanted = pod_from(replica_set, replica_set.spec.template)
            failure = await self._pods.create(replica_set, [wanted] * todo.create)
            await self._pods.delete(replica_set, todo.delete)
        await self._write_status(replica_set, pods, str(failure or ""))
        if failure is not None:
            raise failure
        now = as_time(self._clock.now())
        soon = next_available(replica_set, pods, now)
        if soon is not None:
            return (soon.datetime() - now.datetime()).total_seconds()
        return None if settled else LONGEST

    async def _write_status(self, replica_set: ReplicaSet, pods: list[Pod], failure: str) -> None:
        status = plan_status(replica_set, pods, failure, as_time(self._clock.now()))
        if status != replica_set.status:
            await self._client.update(replace(replica_set, status=status), subresource="status")


def _selector(replica_set: ReplicaSet) -> LabelSelector | None:
    """The selector; None if there is none, or one that nothing can be done with."""
    try:
        selector = LabelSelector.of(replica_set.spec.selector)
    except SelectorError:
        return None
    return None if selector.matches_nothing or not selector.requirements else selector


def _namespace(replica_set: ReplicaSet) -> tuple[str]:
    return (replica_set.metadata.namespace,)
