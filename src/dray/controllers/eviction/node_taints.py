"""Pods leave nodes with NoExecute taints that they do not tolerate (KEP-3902)."""

from __future__ import annotations

import asyncio

from dray.api.generated.core import Node, Pod
from dray.api.kinds import NODES
from dray.api.references import ObjectRef
from dray.controllers.context import Context
from dray.controllers.eviction.controller import EvictionController
from dray.controllers.eviction.identity import DisruptionTarget, Identity
from dray.controllers.eviction.node_status import NodeStatus
from dray.eviction import Taken
from dray.eviction.node_planner import NodePlanner
from dray.eviction.policy import EvictionCause

WORKERS = 10
CHUNK = 200
"""Pods that are planned for, and nodes that are told of, before others get a turn of the loop."""


class TaintEvictionController(EvictionController):
    """Feeds the planner with nodes and pods, and tells nodes what is held of them."""

    name = "taint-eviction-controller"
    identity = Identity(
        metrics="taint_eviction_controller",
        target=DisruptionTarget("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"),
        event="TaintManagerEviction",
        names_pod=True,
    )

    def __init__(self, context: Context) -> None:
        """Registers with the informers of nodes and pods."""
        nodes = context.informers.of(NODES, Node)
        self.planner = NodePlanner(context.settings.eviction.max_evictions, context.recent_evictions)
        super().__init__(context, self.planner.departures, nodes, workers=WORKERS)
        self._status = NodeStatus(context, self.planner, nodes, self._recorder)
        nodes.on_change(self._node_changed)

    @property
    def problem(self) -> str:
        """Why the controller cannot work now; empty if it can (3902-06)."""
        why = super().problem
        has_failed = any(informer.last_error for informer in self.informers if not informer.has_synced)
        return f"failed to start the taint manager: {why}" if has_failed else why

    @property
    def pending_evictions(self) -> int:
        """How many pods are to be evicted."""
        return len(self.planner.departures)

    async def run(self) -> None:
        """Waits for deadlines and evicts until cancelled."""
        await self._run_with(self._status.run(), self._hand_out_in_time())

    def _tick(self) -> float:
        return self._clock.monotonic()

    def _must_leave(self, ref: ObjectRef) -> bool:
        return self.planner.must_leave(ref, self._tick())

    def _why(self, taken: Taken[ObjectRef], due: float) -> EvictionCause:
        return EvictionCause(kind="node", due=due, key=taken.cause.key, value=taken.cause.value)

    def _unknown_cause(self) -> EvictionCause:
        return EvictionCause(kind="node", due=self._clock.now())

    async def _hand_out_in_time(self) -> None:
        await self._begin()
        while True:
            tick = self._tick()
            cancelled = self.planner.plan(tick, CHUNK)
            self._hand_out(() if self.is_stopped else self.planner.take(tick), cancelled)
            self._status.report(self.planner.take_changed_nodes(CHUNK))
            if not self.planner.is_current or self.planner.has_news:
                await asyncio.sleep(0)
            else:
                await self._wakeup.wait(None if self.is_stopped else self.planner.wait(self._tick()))

    def _look(self) -> None:
        if not self.planner.is_idle:
            self._wakeup.set()

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        node = new or old
        if node is None:
            return
        meta = node.metadata
        taints = new.spec.taints if new is not None else ()
        self.planner.put_node(meta.name, taints, self._tick(), meta.annotations)
        self._status.note(old, new)
        self._wakeup.set()

    def _pod_came(self, pod: Pod) -> bool:
        may_stay = self.planner.put_pod(pod, self._tick())
        if may_stay:
            self._hand_out((), [ObjectRef.of(pod)])
        return may_stay or not self.planner.departures.is_idle

    def _pod_went(self, pod: Pod) -> None:
        self.planner.drop_pod(ObjectRef.of(pod))
