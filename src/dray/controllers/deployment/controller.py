"""The Deployment controller: watches deployments and their ReplicaSets, and carries out the plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from msgspec.structs import replace

from dray.api import codec
from dray.api.generated.apps import Deployment, ReplicaSet
from dray.api.generated.core import Pod
from dray.api.kinds import DEPLOYMENTS, PODS, REPLICA_SETS
from dray.api.pods import is_finished
from dray.api.references import ObjectName, controller_of
from dray.api.status import ApiError
from dray.client.calls import delete_exactly
from dray.controllers.context import Context
from dray.controllers.deployment import replica_sets
from dray.controllers.deployment.plan import DeploymentPlan, bounds, plan
from dray.controllers.deployment.replica_sets import size
from dray.controllers.deployment.status import deadline, plan_status
from dray.controllers.pod_templates import reference_to
from dray.controllers.queue_controller import QueueController
from dray.controllers.workload_controller import usable_selector
from dray.controllers.workload_pods import BY_CONTROLLER, BY_LACK_OF_CONTROLLER, controller_uid, namespace_of_orphan
from dray.process.clock import as_time


class DeploymentController(QueueController[ObjectName]):
    """Brings the ReplicaSets of deployments to the sizes that the rollout needs."""

    name: ClassVar[str] = "deployment-controller"

    def __init__(self, context: Context) -> None:
        self._deployments = context.informers.of(DEPLOYMENTS, Deployment)
        self._sets = context.informers.of(REPLICA_SETS, ReplicaSet)
        self._pods = context.informers.of(PODS, Pod)
        super().__init__(context, self._deployments, self._sets, self._pods)
        self._recorder = context.recorder(self.name)
        self._sets.add_index(BY_CONTROLLER, controller_uid)
        self._sets.add_index(BY_LACK_OF_CONTROLLER, namespace_of_orphan)
        self._pods.add_index(BY_CONTROLLER, controller_uid)
        self._deployments.on_change(self._on_deployment)
        self._sets.on_change(self._on_set)
        self._pods.on_change(self._on_pod)

    def _on_deployment(self, _old: Deployment | None, new: Deployment | None) -> None:
        if new is not None:
            self.queue.add(ObjectName.of(new))

    def _on_set(self, old: ReplicaSet | None, new: ReplicaSet | None) -> None:
        for one in (old, new):
            owner = controller_of(one) if one is not None else None
            if one is not None and owner is not None and owner.kind == "Deployment":
                self.queue.add(ObjectName(one.metadata.namespace, owner.name))

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        """Recreate waits for the last old pod."""
        if new is not None or old is None:
            return
        owner = controller_of(old)
        if owner is not None and owner.kind == "ReplicaSet":
            replica_set = self._sets.get(old.metadata.namespace, owner.name)
            self._on_set(None, replica_set)

    async def reconcile(self, key: ObjectName) -> float | None:
        """Looks at one deployment."""
        deployment = self._deployments.get(*key)
        if deployment is None or usable_selector(deployment.spec.selector) is None:
            return None
        sets = [*self._sets.by_index(BY_CONTROLLER, deployment.metadata.uid), *await self._adopt(deployment)]
        if deployment.metadata.deletion_timestamp is None:
            todo = plan(deployment, sets, old_pods_left=self._old_pods_left(deployment, sets))
            deployment = await self._carry_out(deployment, sets, todo)
        now = as_time(self._clock.now())
        status = plan_status(deployment, sets, now)
        if status != deployment.status:
            await self._client.update(replace(deployment, status=status), subresource="status")
        limit = deadline(deployment, status)
        return None if limit is None else now.seconds_until(limit) + 1.0

    async def _adopt(self, deployment: Deployment) -> list[ReplicaSet]:
        """ReplicaSets that nobody manages and that fit become the deployment's."""
        selector = usable_selector(deployment.spec.selector)
        if selector is None or deployment.metadata.deletion_timestamp is not None:
            return []
        adopted = []
        for one in self._sets.by_index(BY_LACK_OF_CONTROLLER, deployment.metadata.namespace):
            if one.metadata.deletion_timestamp is None and selector.matches(one.metadata.labels):
                references = (*one.metadata.owner_references, reference_to(deployment))
                change = {"ownerReferences": [codec.to_builtins(reference) for reference in references]}
                meta = {"uid": one.metadata.uid, "resourceVersion": one.metadata.resource_version, **change}
                done = await self._client.patch(
                    REPLICA_SETS, one.metadata.namespace, one.metadata.name, {"metadata": meta}
                )
                if isinstance(done, ReplicaSet):
                    adopted.append(done)
        return adopted

    def _old_pods_left(self, deployment: Deployment, sets: Sequence[ReplicaSet]) -> bool:
        if deployment.spec.strategy.type != "Recreate":
            return False  # nobody waits for them
        new = replica_sets.find_new(deployment, sets)
        return any(
            not is_finished(pod)
            for one in sets
            if one is not new
            for pod in self._pods.by_index(BY_CONTROLLER, one.metadata.uid)
        )

    async def _carry_out(self, deployment: Deployment, sets: Sequence[ReplicaSet], todo: DeploymentPlan) -> Deployment:
        """Creates, scales and deletes ReplicaSets; returns the deployment as it is stored then."""
        if todo.create is not None:
            await self._create(deployment, todo.create)
        new = replica_sets.find_new(deployment, sets)
        marks = replica_sets.marks_of(deployment, todo.revision, bounds(deployment).surge)
        size_marks = replica_sets.size_marks_of(deployment, bounds(deployment).surge)
        for one in sets:
            await self._update(deployment, one, todo, marks if one is new else size_marks if size(one) else {})
        if todo.revision and deployment.metadata.annotations.get(replica_sets.REVISION) != str(todo.revision):
            meta = deployment.metadata
            numbered = {**meta.annotations, replica_sets.REVISION: str(todo.revision)}
            numbered_deployment = replace(deployment, metadata=replace(meta, annotations=numbered))
            # With the status, so that it does not count as a change that somebody wants: the generation stays.
            deployment = await self._client.update(numbered_deployment, subresource="status")
        for one in todo.delete:
            await delete_exactly(self._client, REPLICA_SETS, one)
        return deployment

    async def _create(self, deployment: Deployment, wanted: ReplicaSet) -> None:
        """Creates the ReplicaSet of a new template. If its name is taken by another, the next try has another name."""
        try:
            made = await self._client.create(wanted)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                await self._recorder.warning(deployment, "ReplicaSetCreateError", f"Failed to create new: {error}")
                raise
            found = await self._client.get(REPLICA_SETS, wanted.metadata.namespace, wanted.metadata.name)
            owner = controller_of(found)
            if owner is None or owner.uid != deployment.metadata.uid:
                status = deployment.status
                collided = replace(status, collision_count=(status.collision_count or 0) + 1)
                await self._client.update(replace(deployment, status=collided), subresource="status")
            return
        message = f"Scaled up replica set {made.metadata.name} from 0 to {size(made)}"
        await self._recorder.normal(deployment, "ScalingReplicaSet", message)

    async def _update(
        self, deployment: Deployment, one: ReplicaSet, todo: DeploymentPlan, marks: dict[str, str]
    ) -> None:
        before, after = size(one), todo.scale.get(one.metadata.uid, size(one))
        annotations = {**one.metadata.annotations, **marks}
        if after == before and annotations == one.metadata.annotations:
            return
        changed = replace(
            one,
            metadata=replace(one.metadata, annotations=annotations),
            spec=replace(one.spec, replicas=after),
        )
        await self._client.update(changed)
        if after != before:
            way = "up" if after > before else "down"
            message = f"Scaled {way} replica set {one.metadata.name} from {before} to {after}"
            await self._recorder.normal(deployment, "ScalingReplicaSet", message)
