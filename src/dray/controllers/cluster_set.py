"""Says of every cluster set whether any cluster belongs to it, and of every binding whether its set exists."""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from dray.api.cluster import ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding
from dray.api.cluster.cluster_set import CONDITION_BOUND, CONDITION_EMPTY
from dray.api.conditions import with_condition
from dray.api.kinds import CLUSTER_SET_BINDINGS, CLUSTER_SETS, CLUSTERS
from dray.api.meta import Condition, Object
from dray.api.references import ObjectName
from dray.controllers.context import Context
from dray.controllers.queue_controller import QueueController
from dray.placement import Event, Fleet, FleetObject
from dray.placement.fleet import MemberChange
from dray.process.clock import as_time

BY_SET = "set"


class ClusterSetController(QueueController[ObjectName]):
    """Keys are bindings or, with an empty namespace, sets. Keeps the conditions ClusterSetEmpty and Bound."""

    name: ClassVar[str] = "managed-cluster-set-controller"

    def __init__(self, context: Context) -> None:
        of = context.informers.of
        self._clusters = of(CLUSTERS, ManagedCluster)
        self._sets = of(CLUSTER_SETS, ManagedClusterSet)
        self._bindings = of(CLUSTER_SET_BINDINGS, ManagedClusterSetBinding)
        super().__init__(context, self._clusters, self._sets, self._bindings)
        self._fleet = Fleet()
        self._bindings.add_index(BY_SET, lambda binding: (binding.spec.cluster_set,))
        self._clusters.on_change(self._cluster_changed)
        self._sets.on_change(self._set_changed)
        self._bindings.on_change(self._binding_changed)

    async def reconcile(self, key: ObjectName) -> float | None:
        """Writes one condition, if it is not what it should be."""
        if key.namespace:
            binding = self._bindings.get(*key)
            if binding is not None:
                await self._write(binding, _bound(self._sets.get("", binding.spec.cluster_set) is not None))
            return None
        found = self._sets.get("", key.name)
        if found is not None:
            await self._write(found, _populated(len(self._fleet.set_named(key.name).members)))
        return None

    async def _write(self, obj: ManagedClusterSet | ManagedClusterSetBinding, condition: Condition) -> None:
        now, generation = as_time(self._clock.now()), obj.metadata.generation
        current = replace(condition, observed_generation=generation, last_transition_time=now)
        conditions = with_condition(obj.status.conditions, current)
        if conditions != obj.status.conditions:
            changed: Object = replace(obj, status=replace(obj.status, conditions=conditions))
            await self._client.update(changed, subresource="status")

    def _cluster_changed(self, old: ManagedCluster | None, new: ManagedCluster | None) -> None:
        change = self._note(old, new)
        if isinstance(change, MemberChange):
            for name in change.old_sets ^ change.new_sets:
                self.queue.add(ObjectName("", name))

    def _set_changed(self, old: ManagedClusterSet | None, new: ManagedClusterSet | None) -> None:
        self._note(old, new)
        obj = new or old
        if obj is None:
            return
        if new is not None:
            self.queue.add(ObjectName("", obj.metadata.name))
        if old is None or new is None:
            for binding in self._bindings.by_index(BY_SET, obj.metadata.name):
                self.queue.add(ObjectName(binding.metadata.namespace, binding.metadata.name))

    def _binding_changed(self, _old: ManagedClusterSetBinding | None, new: ManagedClusterSetBinding | None) -> None:
        if new is not None:
            self.queue.add(ObjectName(new.metadata.namespace, new.metadata.name))

    def _note(self, old: FleetObject | None, new: FleetObject | None) -> object:
        obj = new or old
        return self._fleet.apply(Event(obj, deleted=new is None)) if obj is not None else None


def _populated(clusters: int) -> Condition:
    if not clusters:
        message = "No ManagedCluster selected"
        return Condition(type=CONDITION_EMPTY, status="True", reason="NoClusterMatched", message=message)
    message = f"{clusters} ManagedClusters selected"
    return Condition(type=CONDITION_EMPTY, status="False", reason="ClustersSelected", message=message)


def _bound(exists: bool) -> Condition:
    if exists:
        return Condition(type=CONDITION_BOUND, status="True", reason="ClusterSetBound", message="The set exists")
    message = "There is no ManagedClusterSet of that name"
    return Condition(type=CONDITION_BOUND, status="False", reason="ClusterSetNotFound", message=message)
