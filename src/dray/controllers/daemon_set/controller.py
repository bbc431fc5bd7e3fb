"""The DaemonSet controller: watches DaemonSets, nodes, pods and revisions, and carries out the plan."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from msgspec.structs import replace

from dray.api.generated.apps import ControllerRevision, DaemonSet, DaemonSetStatus
from dray.api.generated.core import Node
from dray.api.kinds import CONTROLLER_REVISIONS, DAEMON_SETS, NODES
from dray.api.labels import LabelSelector
from dray.api.meta import OwnerReference
from dray.api.pods import FAILED
from dray.api.references import ObjectName, full_name
from dray.api.registry import Kind
from dray.controllers.context import Context
from dray.controllers.daemon_set.node_pod import pod_for
from dray.controllers.daemon_set.plan import DaemonSetPlan, DaemonSetState, observe, plan
from dray.controllers.daemon_set.rollout import plan_rollout
from dray.controllers.daemon_set.status import next_available, plan_status
from dray.controllers.expectations import LONGEST
from dray.controllers.failed_pods import FailedPods
from dray.controllers.revision_history import HASH, RevisionHistory, hash_of
from dray.controllers.workload_controller import WorkloadController, usable_selector
from dray.process.clock import as_time
from dray.scheduling.daemon_nodes import target_of

NODES_PER_SECOND = 10_000
"""A look at a DaemonSet costs the more the more nodes there are, so changes of its pods are gathered for longer."""


class DaemonSetController(WorkloadController):
    """Makes and deletes pods until every node has the one that it should have."""

    name: ClassVar[str] = "daemonset-controller"
    kind: ClassVar[Kind] = DAEMON_SETS

    def __init__(self, context: Context) -> None:
        self._nodes = context.informers.of(NODES, Node)
        revisions = context.informers.of(CONTROLLER_REVISIONS, ControllerRevision)
        super().__init__(context, context.informers.of(DAEMON_SETS, DaemonSet), self._nodes, revisions)
        self._history = RevisionHistory(context, self._on_owned)
        self._failed = FailedPods(context.clock.monotonic)
        self._nodes.on_change(self._on_node)

    def selector_of(self, workload: DaemonSet) -> LabelSelector | None:
        """The selector of a DaemonSet."""
        return usable_selector(workload.spec.selector)

    def forget(self, workload: DaemonSet) -> None:
        """Drops expectations and failures."""
        super().forget(workload)
        self._failed.forget(workload)

    def _on_owned(self, namespace: str, owner: OwnerReference) -> None:
        if owner.kind == self.kind.kind:
            self.queue.add_after(ObjectName(namespace, owner.name), len(self._nodes) // 100 * 100 / NODES_PER_SECOND)

    def _on_node(self, old: Node | None, new: Node | None) -> None:
        if old is not None and new is not None and _matters(old) == _matters(new):
            return
        for daemon_set in self._workloads:
            self.queue.add(ObjectName.of(daemon_set))

    async def reconcile(self, key: ObjectName) -> float | None:
        """Looks at one DaemonSet."""
        daemon_set: DaemonSet | None = self._workloads.get(*key)
        selector = self.selector_of(daemon_set) if daemon_set is not None else None
        if daemon_set is None or selector is None or daemon_set.metadata.deletion_timestamp is not None:
            return None
        settled = self._pods.expectations.are_met(daemon_set.metadata.uid)  # before we look which pods there are
        pods = await self.pods_of(daemon_set, selector)
        status = daemon_set.status
        history = await self._history.of(daemon_set, selector, daemon_set.spec.template, status.collision_count)
        now = as_time(self._clock.now())
        state = observe(daemon_set, hash_of(history.current), self._nodes, pods, now)
        await asyncio.sleep(0)  # with thousands of nodes each step takes its time
        waits: list[float] = []
        failure: Exception | None = None
        if settled:
            try:
                await self._work(state, waits)
            except Exception as error:
                failure = error
        else:
            waits.append(LONGEST)
        await asyncio.sleep(0)
        await self._write_status(state, plan_status(state, history.collisions))
        if failure is not None:
            raise failure
        live = {pod.metadata.labels.get(HASH, "") for pod in pods}
        await self._history.prune(history.old, daemon_set.spec.revision_history_limit, live)
        soon = next_available(state)
        if soon is not None:
            waits.append(now.seconds_until(soon))
        return min(waits, default=None)

    async def _work(self, state: DaemonSetState, waits: list[float]) -> None:
        """Carries out the next step; `waits` hears after how long to look again."""
        patient = self._patient(state, waits)
        todo = plan(state, patient)
        if not todo.create and not todo.delete and not todo.ended:
            todo = plan_rollout(state)
        await self._carry_out(state, todo)

    async def _carry_out(self, state: DaemonSetState, todo: DaemonSetPlan) -> None:
        daemon_set = state.daemon_set
        for pod in todo.ended:
            place = f"{full_name(pod)} on node {target_of(pod)}"
            if pod.status.phase == FAILED:
                self._failed.count(daemon_set, target_of(pod))
                text = f"Found failed daemon pod {place}, will try to kill it"
                await self._recorder.warning(daemon_set, "FailedDaemonPod", text)
            else:
                text = f"Found succeeded daemon pod {place}, will try to delete it"
                await self._recorder.normal(daemon_set, "SucceededDaemonPod", text)
        wanted = [pod_for(daemon_set, node, state.digest) for node in todo.create]
        failure = await self._pods.create(daemon_set, wanted)
        await self._pods.delete(daemon_set, (*todo.ended, *todo.delete))
        if failure is not None:
            raise failure

    async def _write_status(self, state: DaemonSetState, status: DaemonSetStatus) -> None:
        if status != state.daemon_set.status:
            await self._client.update(replace(state.daemon_set, status=status), subresource="status")

    def _patient(self, state: DaemonSetState, waits: list[float]) -> set[str]:
        """The nodes whose next failed pod has to stay for a while."""
        failed = [node for node, pods in state.pods.items() if any(pod.status.phase == FAILED for pod in pods)]
        left = {node: self._failed.wait(state.daemon_set, node) for node in failed}
        waits += [seconds for seconds in left.values() if seconds]
        return {node for node, seconds in left.items() if seconds}


def _matters(node: Node) -> tuple[object, object]:
    return node.metadata.labels, node.spec.taints
