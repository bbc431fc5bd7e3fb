"""The shell: feeds the plan with nodes and pods, waits for deadlines, and lets workers delete pods."""

from __future__ import annotations

import asyncio
from typing import NamedTuple, TypeAlias

from dray.api.generated.core import Node, Pod
from dray.api.node_annotations import read_rations
from dray.api.resource.rule_annotations import EVICTIONS_PER_SECOND
from dray.api.status import ApiError
from dray.controllers.context import Context
from dray.controllers.eviction_policies import Desk, Later, Left, Outcome, Stays, open_desk
from dray.controllers.eviction_policies.keys import Cancelled, FollowUp, has_other_marks
from dray.controllers.eviction_policies.removal import Mark, remove_pod
from dray.controllers.kinds import NODES, PODS
from dray.controllers.queue_controller import QueueController
from dray.controllers.taint_eviction.deletion_metrics import DeletionMetrics
from dray.controllers.taint_eviction.held_nodes import HeldNode, HeldNodes
from dray.controllers.taint_eviction.wakeup import Wakeup
from dray.eviction import PodRef, Taken
from dray.eviction.node_evictions import NodeEvictions
from dray.eviction.pods import is_on_its_way
from dray.eviction.policy import EvictionCause
from dray.reconcile.clock import as_time

WORKERS = 10
TRIES = 5
PAUSE = 0.01
MARK = Mark("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
EVENT = "TaintManagerEviction"
BAD_RATE = "InvalidEvictionRate"
PREFIX = "taint_eviction_controller"


class BadRate(NamedTuple):
    """A node whose annotation about rates cannot be read, all of it."""

    node: str


Key: TypeAlias = PodRef | Cancelled | FollowUp | HeldNode | BadRate


class TaintEvictionController(QueueController[Key]):
    """Keys of the queue are pods to delete, pods that may stay after all, pods that are slow to go, and nodes to tell
    something about: that evictions are held, or that their rate cannot be read.
    """

    name = "taint-eviction-controller"

    def __init__(self, context: Context) -> None:
        """Registers with the informers of nodes and pods."""
        self._nodes = context.informers.of(NODES, Node)
        self._pods = context.informers.of(PODS, Pod)
        super().__init__(context, self._nodes, self._pods, workers=WORKERS)
        self.evictions = NodeEvictions(context.settings.eviction.max_evictions)
        self._wakeup = Wakeup(context.clock)
        self._recorder = context.recorder(self.name)
        self._desk = open_desk(context, PREFIX, self._recorder, MARK)
        self._held = HeldNodes(context, self._recorder)
        self._metrics = DeletionMetrics(PREFIX, context.metrics)
        self._taken: dict[PodRef, Taken[PodRef]] = {}
        self._nodes.on_change(self._node_changed)
        self._pods.on_change(self._pod_changed)

    @property
    def problem(self) -> str:
        """Why the controller cannot work now; empty if it can (3902-06)."""
        why = super().problem
        has_failed = any(informer.last_error for informer in self.informers if not informer.has_synced)
        return f"failed to start the taint manager: {why}" if has_failed else why

    @property
    def pending_evictions(self) -> int:
        """How many pods are to be evicted."""
        return len(self.evictions)

    async def run(self) -> None:
        """Waits for deadlines and evicts until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(super().run())
                group.create_task(self._hand_out())
        finally:
            if self._desk is not None:
                await self._desk.close()

    async def reconcile(self, key: Key) -> float | None:
        """Deletes one pod, tells that it may stay, asks about one that does not go, or tells about a node."""
        if isinstance(key, HeldNode):
            await self._tell_held(key.name)
        elif isinstance(key, BadRate):
            await self._tell_bad_rate(key.node)
        elif isinstance(key, FollowUp):
            return await self._follow_up(key.pod)
        elif isinstance(key, Cancelled):
            await self._tell_cancelled(key.pod)
        else:
            pod, taken = self._current(key), self._taken.get(key)
            if pod is not None and taken is not None and self.evictions.must_leave(key):
                await self._evict(pod, taken)
            self._taken.pop(key, None)
        return None

    async def _evict(self, pod: Pod, taken: Taken[PodRef]) -> None:
        due = taken.cause.due
        outcome = await (self._delete(pod) if self._desk is None else self._settle(self._desk, pod, due))
        if isinstance(outcome, Later):
            self.evictions.postpone(taken, self._clock.monotonic() + outcome.until - self._clock.now())
        elif isinstance(outcome, Stays):
            if outcome.is_kept:
                self.evictions.exempt(taken.pod)
        elif outcome.is_deleted:
            self._metrics.deleted(self._clock.monotonic() - due)
        self._wakeup.set()

    async def _delete(self, pod: Pod) -> Outcome:
        await self._recorder.normal(pod, EVENT, f"Marking for deletion Pod {PodRef.of(pod)}")
        return Left(await self._remove(pod))

    async def _remove(self, pod: Pod) -> bool:
        """Tries a few times within a moment (SVS-69); after that the queue tries again, later and later (3902-30)."""
        for attempt in range(1, TRIES + 1):
            try:
                return await remove_pod(self._client, pod, MARK, as_time(self._clock.now()))
            except (ApiError, OSError):
                if attempt == TRIES:
                    raise
                await self._clock.sleep(PAUSE)
        return False

    async def _settle(self, desk: Desk, pod: Pod, tick: float) -> Outcome:
        ref = PodRef.of(pod)
        taint = next(iter(self.evictions.causes(ref)))
        due = self._clock.now() - (self._clock.monotonic() - tick)
        why = EvictionCause(kind="node", due=due, key=taint.key, value=taint.value)
        outcome = await desk.settle(pod, why, lambda: self.evictions.must_leave(ref))
        if isinstance(outcome, Left) and outcome.is_deleted:
            await self._recorder.normal(pod, EVENT, f"Marking for deletion Pod {ref}")
        return outcome

    async def _tell_cancelled(self, ref: PodRef) -> None:
        pod = self._current(ref)
        if pod is not None and not self.evictions.must_leave(ref):
            await self._recorder.normal(pod, EVENT, f"Cancelling deletion of Pod {ref}")
            if self._desk is not None:
                await self._desk.cancelled(pod)

    async def _follow_up(self, ref: PodRef) -> float | None:
        pod = self._current(ref)
        if pod is None or self._desk is None:
            return None
        return await self._desk.follow_up(pod, EvictionCause(kind="node", due=self._clock.now()))

    async def _tell_held(self, name: str) -> None:
        node = self._nodes.get("", name)
        if node is not None:
            await self._held.tell(node, self.evictions.holds(name))

    async def _tell_bad_rate(self, name: str) -> None:
        node = self._nodes.get("", name)
        problems = read_rations(node.metadata.annotations).problems if node is not None else ()
        if node is not None and problems:
            what = f"Annotation {EVICTIONS_PER_SECOND}: {'; '.join(problems)}"
            then = "Taints that it does not name evict 10 pods a second until it is corrected or removed"
            await self._recorder.warning(node, BAD_RATE, f"{what}. {then}")

    def _current(self, ref: PodRef) -> Pod | None:
        pod = self._pods.get(ref.namespace, ref.name)
        return pod if pod is not None and pod.metadata.uid == ref.uid else None

    async def _hand_out(self) -> None:
        for informer in self.informers:
            await informer.synced()
        while True:
            for name in self.evictions.take_changed_nodes():
                self.queue.add(HeldNode(name))
            for taken in self.evictions.take(self._clock.monotonic()):
                self._taken[taken.pod] = taken
                self.queue.add(taken.pod)
            await self._wakeup.wait(self.evictions.wait(self._clock.monotonic()))

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        node = new or old
        if node is not None:
            meta, tick = node.metadata, self._clock.monotonic()
            taints = new.spec.taints if new is not None else ()
            for pod in self.evictions.put_node(meta.name, taints, tick, meta.annotations):
                self.queue.add(Cancelled(pod))
            said = (
                one.metadata.annotations.get(EVICTIONS_PER_SECOND) if one is not None else None for one in (old, new)
            )
            if len(set(said)) > 1:
                self.queue.add(BadRate(meta.name))
            self._wakeup.set()

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if is_on_its_way(old, new) and self._desk is None:
            return
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self.evictions.drop_pod(PodRef.of(old))
            if self._desk is not None:
                self._desk.forget(old)
            old = None
        if new is not None:
            if self.evictions.put_pod(new, self._clock.monotonic()):
                self.queue.add(Cancelled(PodRef.of(new)))
            if self._desk is not None:
                self._note_for_policy(self._desk, old, new)
        if not self.evictions.is_idle:
            self._wakeup.set()

    def _note_for_policy(self, desk: Desk, old: Pod | None, new: Pod) -> None:
        desk.replicas.put(new)
        ref = PodRef.of(new)
        if new.metadata.deletion_timestamp is not None:
            if (old is None or old.metadata.deletion_timestamp is None) and desk.follows_up(new):
                self.queue.add(FollowUp(ref))
        elif old is not None and has_other_marks(old, new) and self.evictions.is_put_off(ref):
            self.evictions.recall(ref)
