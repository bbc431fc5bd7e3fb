"""The pods that must leave their nodes because of NoExecute taints, and when.

    nodes ─▶ put_node ─▶ their pods ─▶ plan() ─┐
    pods ─▶ put_pod ───────────────────────────┴─▶ what each must leave for ─▶ Departures ─▶ take(): those whose time
                                                                                            has come

A toleration counts from when both the taint and the pod on its node were seen, whatever the taint says (X-06). Pods
whose time has come all leave at once, unless the node says how many may a second (`node_rations`). Times are seconds of
a clock that never jumps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from dray.api.generated.core import Pod, Taint, Toleration
from dray.api.pod_claims import uses_devices
from dray.api.references import ObjectRef
from dray.api.resource.taint import EFFECT_NO_EXECUTE
from dray.api.toleration import seconds_left
from dray.eviction.causes import Cause, Causes, Source, TaintKey
from dray.eviction.confirmations import is_taint_confirmed
from dray.eviction.departures import Departures, Unasked
from dray.eviction.evictions import Taken
from dray.eviction.guard import Base, Guard, Hold
from dray.eviction.node_counts import NodeCounts
from dray.eviction.node_rations import NodeRations
from dray.eviction.pending import Pending
from dray.eviction.pods import can_be_evicted
from dray.eviction.recent import Recent
from dray.eviction.settings import Limit

FOREVER = float("inf")


class _Resident(NamedTuple):
    """A pod on a node."""

    ref: ObjectRef
    tolerations: tuple[Toleration, ...]
    seen: float


class NodePlanner:
    """What the taint eviction controller knows. Only nodes with NoExecute taints cost more than a dictionary entry."""

    def __init__(self, max_evictions: Limit | None = None, recent: Recent[ObjectRef] | None = None) -> None:
        """If more than `max_evictions` would leave, the rest is held; `recent` may be shared with other planners."""
        self._device_users: set[ObjectRef] = set()
        guard: Guard[ObjectRef] | None = None
        if max_evictions is not None:
            guard = Guard(max_evictions, recent, uses_devices=self._device_users.__contains__)
        self.departures = Departures(guard)
        self._taints: dict[str, dict[Taint, float]] = {}
        self._pods: dict[str, dict[str, _Resident]] = {}
        self._nodes: dict[str, str] = {}
        self._counts = NodeCounts()
        self._rations = NodeRations()
        self._dirty_nodes: Pending[str] = Pending()
        self._dirty_pods: deque[str] = deque()
        """Uids. Those of a node that has many pods are planned for some at a time."""
        self._cancelled: list[ObjectRef] = []
        self._changed: Pending[str] = Pending()

    def put_node(
        self, name: str, taints: Iterable[Taint], tick: float, annotations: Mapping[str, str] | None = None
    ) -> None:
        """These are a node's taints now; none if it is gone. What its pods must leave for changes with `plan`."""
        taints = [taint for taint in taints if taint.effect == EFFECT_NO_EXECUTE]
        annotations = annotations or {}
        before = self._taints.get(name, {})
        after = {_identity(taint): tick for taint in taints}
        self._confirm(name, before, taints, annotations, tick)
        paced = self._rations.put_node(name, taints, annotations)
        concerned = set(paced)
        if before.keys() != after.keys():
            concerned.add(name)
            self._taints[name] = {taint: before.get(taint, tick) for taint in after}
            if not after:
                del self._taints[name]
        self._dirty_nodes.extend(sorted(concerned & self._pods.keys()))

    def put_pod(self, pod: Pod, tick: float) -> bool:
        """A pod is there or has changed. True if it was to be evicted and may stay after all."""
        ref = ObjectRef.of(pod)
        if not can_be_evicted(pod):
            self.drop_pod(ref)
            return False
        node = pod.spec.node_name
        residents = self._pods.setdefault(node, {})
        known = residents.get(ref.uid)
        resident = _Resident(ref, pod.spec.tolerations, tick if known is None else known.seen)
        residents[ref.uid] = resident
        if uses_devices(pod):
            self._device_users.add(ref)
        self._nodes[ref.uid] = node
        if known is None and self.departures.guard is not None:
            self.departures.guard.note_arrival()
        self._counts.put(ref.uid, node)
        if resident == known or (node not in self._taints and self.departures.is_idle):
            return False
        return self._plan(node, resident, tick)

    def drop_pod(self, ref: ObjectRef) -> None:
        """A pod is gone, or on its way out."""
        node = self._nodes.pop(ref.uid, None)
        if node is None:
            return  # it never was here
        del self._pods[node][ref.uid]
        if not self._pods[node]:
            del self._pods[node]
        self._counts.drop(ref.uid)
        self.departures.drop(ref)
        self._device_users.discard(ref)

    @property
    def is_idle(self) -> bool:
        """Whether nobody has to leave, and there is nothing to tell: then a pod that comes or goes changes nothing."""
        return self.is_current and self.departures.is_idle and not self.has_news

    def plan(self, tick: float, limit: int = 500) -> list[ObjectRef]:
        """Plans for so many pods on nodes whose taints have changed; `is_current` says whether those were all.

        Returns the pods that were to be evicted and may stay after all.
        """
        spent = 0
        while spent < limit and self._is_dirty:
            spent += 1
            if not self._dirty_pods:
                (node,) = self._dirty_nodes.take(1)
                self._dirty_pods.extend(self._pods.get(node, ()))
                continue
            self._plan_again(self._dirty_pods.popleft(), tick)
        if not self._is_dirty:
            self._judge(tick)
            self.departures.settle(limit)
        cancelled, self._cancelled = self._cancelled, []
        return cancelled

    def finish(self, tick: float) -> None:
        """Plans until nothing is left to do, for who keeps nobody waiting."""
        self.plan(tick)
        while not self.is_current:
            self.plan(tick)

    @property
    def is_current(self) -> bool:
        """Whether `plan` has nothing left to do."""
        return not self._is_dirty and self.departures.is_settled and not self._cancelled

    def holds(self, node: str) -> Mapping[str, Hold]:
        """What is held until somebody confirms it, by the key of the node's taint."""
        holds = {taint.key: self.departures.hold_of(Source(_name(taint), node)) for taint in self._taints.get(node, {})}
        return {key: hold for key, hold in holds.items() if hold is not None}

    def unasked(self, node: str) -> Unasked | None:
        """The pods of a node that stay because their policy could not be asked."""
        return self.departures.unasked(Source(_name(taint), node) for taint in self._taints.get(node, ()))

    @property
    def has_news(self) -> bool:
        """Whether `take_changed_nodes` has something."""
        return bool(self._changed or self.departures.changed_places)

    def take_changed_nodes(self, limit: int | None = None) -> list[str]:
        """Some of the nodes where something else may be held, or have failed, than when they were taken before."""
        self._changed.extend(sorted(self.departures.changed_places))
        self.departures.changed_places.clear()
        return self._changed.take(limit)

    def must_leave(self, pod: ObjectRef, tick: float) -> bool:
        """Whether a pod that was taken still has to go, also where `plan` has not come to it yet."""
        if self._is_dirty:
            self._plan_again(pod.uid, tick)
        return self.departures.must_leave(pod)

    def take(self, tick: float) -> list[Taken[ObjectRef]]:
        """The pods to evict now, each once. They count as pending until `departures` are told what became of them."""
        taken = self.departures.take(tick, tick)
        if self._is_dirty:
            # A taint that is gone must not evict while `plan` is on its way through the pods of its nodes.
            taken = [each for each in taken if self._is_due(each, tick)]
        self.departures.start(taken)
        return taken

    def wait(self, tick: float) -> float | None:
        """After how many seconds `take` may have something; None if nobody has to leave."""
        return self.departures.wait(tick, tick)

    @property
    def _is_dirty(self) -> bool:
        return bool(self._dirty_pods or self._dirty_nodes)

    def _plan_again(self, uid: str, tick: float) -> None:
        """The taints of a pod's node have changed; the pod may be gone since."""
        node = self._nodes.get(uid)
        if node is not None:
            pod = self._pods[node][uid]
            if self._plan(node, pod, tick):
                self._cancelled.append(pod.ref)

    def _is_due(self, taken: Taken[ObjectRef], tick: float) -> bool:
        """Looks again whether a pod that was taken must leave now; if not, it waits for its time again."""
        self._plan_again(taken.pod.uid, tick)
        return self.departures.is_due(taken, tick)

    def _plan(self, node: str, pod: _Resident, tick: float) -> bool:
        """Says what a pod must leave for. True if it had to for something, or would have, and has not any more."""
        return self.departures.want(pod.ref, self._causes_of(node, pod), tick)

    def _causes_of(self, node: str, pod: _Resident) -> Causes:
        causes: dict[TaintKey, Cause] = {}
        for taint, seen in self._taints.get(node, {}).items():
            due = max(seen, pod.seen) + seconds_left(pod.tolerations, taint)
            if due != FOREVER:
                line, rate = self._rations.of(node, taint)
                name = _name(taint)
                causes[name] = Cause(line, due, rate, key=taint.key, value=taint.value, source=Source(name, node))
        return causes

    def _confirm(
        self,
        node: str,
        before: Iterable[Taint],
        taints: Iterable[Taint],
        annotations: Mapping[str, str],
        tick: float,
    ) -> None:
        guard = self.departures.guard
        if guard is None:
            return
        confirmed = {_name(taint): is_taint_confirmed(taint, annotations) for taint in taints}
        for name in sorted({*map(_name, before), *confirmed}):
            guard.confirm(Source(name, node), is_so=confirmed.get(name, False), tick=tick)

    def _judge(self, tick: float) -> None:
        """Lets the guard decide. Asked before `take`, too: it may have heard of others."""
        guard = self.departures.guard
        if guard is None or (guard.is_idle and guard.is_sure):
            return
        base = Base(len(self._nodes), self._counts.fullest, is_of_nodes=True)
        self._changed.extend(sorted(source.place for source in self.departures.judge(tick, base)))


def _identity(taint: Taint) -> Taint:
    """What makes it the same taint: not when somebody says it was added."""
    return Taint(key=taint.key, value=taint.value, effect=taint.effect)


def _name(taint: Taint) -> str:
    return f"{taint.key}={taint.value}"
