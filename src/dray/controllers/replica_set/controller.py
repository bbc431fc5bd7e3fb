"""Keeps a number of pods: watches ReplicaSets, or ReplicationControllers, and pods, and carries out the plan."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from msgspec.structs import replace

from dray.api.generated.apps import ReplicaSet, ReplicaSetStatus
from dray.api.generated.core import Pod, ReplicationController
from dray.api.kinds import REPLICA_SETS, REPLICATION_CONTROLLERS
from dray.api.labels import LabelSelector
from dray.api.meta import Object
from dray.api.references import ObjectName
from dray.api.registry import Kind
from dray.controllers.context import Context
from dray.controllers.expectations import LONGEST
from dray.controllers.pod_templates import pod_from
from dray.controllers.replica_set.plan import next_available, plan, plan_status
from dray.controllers.replica_set.replication_controller import as_replica_set, with_status
from dray.controllers.workload_controller import WorkloadController, usable_selector
from dray.controllers.workload_pods import Failure
from dray.process.clock import as_time
from dray.reconcile.effort import beside_loop


class ReplicasController(WorkloadController):
    """Makes and deletes pods until their number is right."""

    @abstractmethod
    def view(self, workload: Any) -> ReplicaSet:
        """A workload as a ReplicaSet, which all decisions are about."""

    @abstractmethod
    def stored(self, workload: Any, status: ReplicaSetStatus) -> Object:
        """A workload with its status as it is written."""

    def selector_of(self, workload: Any) -> LabelSelector | None:
        """The selector of a workload."""
        return usable_selector(self.view(workload).spec.selector)

    async def reconcile(self, key: ObjectName) -> float | None:
        """Looks at one workload."""
        workload = self._workloads.get(*key)
        selector = self.selector_of(workload) if workload is not None else None
        if workload is None or selector is None:
            return None
        replica_set = self.view(workload)
        settled = self._pods.expectations.are_met(replica_set.metadata.uid)  # before we look which pods there are
        pods = await self.pods_of(replica_set, selector)
        failure: Failure | None = None
        waits: list[float] = [] if settled else [LONGEST]
        if settled:
            todo = await beside_loop(len(pods), plan, replica_set, pods)
            pause = self._pods.pause(replica_set, pods) if todo.create else 0.0
            if pause > 0:
                waits.append(pause)
            else:
                wanted = pod_from(replica_set, replica_set.spec.template)
                failure = await self._pods.create(replica_set, [wanted] * todo.create)
            await self._pods.delete(replica_set, todo.delete)
        await self._write_status(workload, pods, str(failure or ""))
        if failure is not None:
            raise failure
        now = as_time(self._clock.now())
        soon = await beside_loop(len(pods), next_available, replica_set, pods, now)
        if soon is not None:
            waits.append(now.seconds_until(soon))
        return min(waits, default=None)

    async def _write_status(self, workload: Any, pods: list[Pod], failure: str) -> None:
        now = as_time(self._clock.now())
        status = await beside_loop(len(pods), plan_status, self.view(workload), pods, failure, now)
        wanted = self.stored(workload, status)
        if wanted != workload:
            await self._client.update(wanted, subresource="status")


class ReplicaSetController(ReplicasController):
    """ReplicaSets as they are."""

    name: ClassVar[str] = "replicaset-controller"
    kind: ClassVar[Kind] = REPLICA_SETS

    def __init__(self, context: Context) -> None:
        super().__init__(context, context.informers.of(REPLICA_SETS, ReplicaSet))

    def view(self, workload: ReplicaSet) -> ReplicaSet:
        """Itself."""
        return workload

    def stored(self, workload: ReplicaSet, status: ReplicaSetStatus) -> ReplicaSet:
        """With that very status."""
        return replace(workload, status=status)


class ReplicationControllerController(ReplicasController):
    """ReplicationControllers: the same with an older selector."""

    name: ClassVar[str] = "replicationcontroller-controller"
    kind: ClassVar[Kind] = REPLICATION_CONTROLLERS

    def __init__(self, context: Context) -> None:
        super().__init__(context, context.informers.of(REPLICATION_CONTROLLERS, ReplicationController))

    def view(self, workload: ReplicationController) -> ReplicaSet:
        """What it would be as a ReplicaSet."""
        return as_replica_set(workload)

    def stored(self, workload: ReplicationController, status: ReplicaSetStatus) -> ReplicationController:
        """With those parts of the status that it has."""
        return with_status(workload, status)
