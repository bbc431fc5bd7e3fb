"""The shell: feeds the plan with nodes and pods, waits for deadlines, and lets workers delete pods."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from dray.api.generated.core import Node, Pod
from dray.api.status import ApiError
from dray.controllers.context import Context
from dray.controllers.kinds import NODES, PODS
from dray.controllers.queue_controller import QueueController
from dray.controllers.taint_eviction.deletion_metrics import DeletionMetrics
from dray.controllers.taint_eviction.removal import remove_pod
from dray.controllers.taint_eviction.wakeup import Wakeup
from dray.eviction import PodRef
from dray.eviction.node_evictions import NodeEvictions
from dray.reconcile.clock import as_time

WORKERS = 10
TRIES = 5
PAUSE = 0.01
REASON = "DeletionByTaintManager"
MESSAGE = "Taint manager: deleting due to NoExecute taint"
EVENT = "TaintManagerEviction"


class Cancelled(NamedTuple):
    """A pod that was to be evicted and may stay."""

    pod: PodRef


class TaintEvictionController(QueueController[PodRef | Cancelled]):
    """Keys of the queue are pods to delete, and pods whose deletion was cancelled, to tell of."""

    name = "taint-eviction-controller"

    def __init__(self, context: Context) -> None:
        """Registers with the informers of nodes and pods."""
        self._nodes = context.informers.of(NODES, Node)
        self._pods = context.informers.of(PODS, Pod)
        super().__init__(context, self._nodes, self._pods, workers=WORKERS)
        self.evictions = NodeEvictions()
        self._wakeup = Wakeup(context.clock)
        self._recorder = context.recorder(self.name)
        self._metrics = DeletionMetrics("taint_eviction_controller", context.metrics)
        self._since: dict[PodRef, float] = {}
        self._nodes.on_change(self._node_changed)
        self._pods.on_change(self._pod_changed)

    @property
    def problem(self) -> str:
        """Why the controller cannot work now; empty if it can (3902-06)."""
        why = super().problem
        has_failed = any(informer.last_error for informer in self.informers if not informer.has_synced)
        return f"failed to start the taint manager: {why}" if has_failed else why

    async def run(self) -> None:
        """Waits for deadlines and evicts until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(super().run())
            group.create_task(self._hand_out())

    async def reconcile(self, key: PodRef | Cancelled) -> float | None:
        """Deletes one pod, or tells that it may stay."""
        if isinstance(key, Cancelled):
            pod = self._current(key.pod)
            if pod is not None and not self.evictions.must_leave(key.pod):
                await self._recorder.normal(pod, EVENT, f"Cancelling deletion of Pod {key.pod}")
            return None
        pod = self._current(key)
        since = self._since.get(key)
        if pod is not None and since is not None and self.evictions.must_leave(key):
            await self._recorder.normal(pod, EVENT, f"Marking for deletion Pod {key}")
            if await self._remove(pod):
                self._metrics.deleted(self._clock.monotonic() - since)
        self._since.pop(key, None)
        return None

    async def _remove(self, pod: Pod) -> bool:
        """Tries a few times within a moment (SVS-69); after that the queue tries again, later and later (3902-30)."""
        for attempt in range(1, TRIES + 1):
            try:
                return await remove_pod(self._client, pod, REASON, MESSAGE, as_time(self._clock.now()))
            except (ApiError, OSError):
                if attempt == TRIES:
                    raise
                await self._clock.sleep(PAUSE)
        return False

    def _current(self, ref: PodRef) -> Pod | None:
        pod = self._pods.get(ref.namespace, ref.name)
        return pod if pod is not None and pod.metadata.uid == ref.uid else None

    async def _hand_out(self) -> None:
        for informer in self.informers:
            await informer.synced()
        while True:
            for due in self.evictions.take(self._clock.monotonic()):
                self._since[due.pod] = due.since
                self.queue.add(due.pod)
            await self._wakeup.wait(self.evictions.wait(self._clock.monotonic()))

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        node = new or old
        if node is not None:
            taints = new.spec.taints if new is not None else ()
            for pod in self.evictions.put_node(node.metadata.name, taints, self._clock.monotonic()):
                self.queue.add(Cancelled(pod))
            self._wakeup.set()

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self.evictions.drop_pod(PodRef.of(old))
        if new is not None and self.evictions.put_pod(new, self._clock.monotonic()):
            self.queue.add(Cancelled(PodRef.of(new)))
        self._wakeup.set()
