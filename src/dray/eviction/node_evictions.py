"""The pods that must leave their nodes because of NoExecute taints, and when.

    put_node, put_pod ─▶ deadline of each pod on the node ─▶ take(tick): those whose time has come
                              ├─ none any more: cancelled
                              └─ the guard holds its taint, a policy puts it off or keeps it: later, or not at all

A toleration counts from when both the taint and the pod on its node were seen, whatever the taint says (X-06). Times
are seconds of a clock that never jumps.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from dray.api.generated.core import Pod, Taint, Toleration
from dray.eviction.guard import Hold
from dray.eviction.node_guard import NodeGuard, identity
from dray.eviction.node_tolerations import seconds_left
from dray.eviction.pods import PodRef, can_be_evicted
from dray.eviction.settings import Limit

NO_EXECUTE = "NoExecute"
FOREVER = float("inf")


class _Resident(NamedTuple):
    """A pod on a node."""

    ref: PodRef
    tolerations: tuple[Toleration, ...]
    seen: float


class Due(NamedTuple):
    """A pod whose time has come, and since when."""

    pod: PodRef
    since: float


class NodeEvictions:
    """What the taint eviction controller knows. Only nodes with NoExecute taints cost more than a dictionary entry."""

    def __init__(self, max_evictions: Limit | None = None) -> None:
        """A taint that would evict more than `max_evictions` is held until it is confirmed, node by node."""
        self._guard = None if max_evictions is None else NodeGuard(max_evictions)
        self._taints: dict[str, dict[Taint, float]] = {}
        self._pods: dict[str, dict[str, _Resident]] = {}
        self._nodes: dict[str, str] = {}
        self._wanted: dict[PodRef, dict[Taint, float]] = {}
        self._put_off: dict[PodRef, float] = {}
        self._exempt: dict[PodRef, frozenset[Taint]] = {}
        self._deadlines: dict[PodRef, float] = {}
        self._heap: list[tuple[float, PodRef]] = []

    def __len__(self) -> int:
        return len(self._deadlines)

    def put_node(
        self, name: str, taints: Iterable[Taint], tick: float, annotations: Mapping[str, str] | None = None
    ) -> list[PodRef]:
        """These are a node's taints now; none if it is gone. Returns the pods that may stay after all."""
        taints = [taint for taint in taints if taint.effect == NO_EXECUTE]
        before = self._taints.get(name, {})
        after = {identity(taint): tick for taint in taints}
        is_confirmed = self._guard is not None and self._guard.put_node(name, taints, annotations or {})
        if before.keys() == after.keys() and not is_confirmed:
            return []
        self._taints[name] = {taint: before.get(taint, tick) for taint in after}
        if not after:
            del self._taints[name]
        cancelled = [pod.ref for pod in self._pods.get(name, {}).values() if self._plan(name, pod)]
        self._judge()
        return cancelled

    def put_pod(self, pod: Pod, tick: float) -> bool:
        """A pod is there or has changed. True if it was to be evicted and may stay after all."""
        ref = PodRef.of(pod)
        if not can_be_evicted(pod):
            self.drop_pod(ref)
            return False
        node = pod.spec.node_name
        residents = self._pods.setdefault(node, {})
        known = residents.get(ref.uid)
        resident = _Resident(ref, pod.spec.tolerations, tick if known is None else known.seen)
        residents[ref.uid] = resident
        self._nodes[ref.uid] = node
        may_stay = resident != known and self._plan(node, resident)
        self._judge()
        return may_stay

    def drop_pod(self, ref: PodRef) -> None:
        """A pod is gone, or on its way out."""
        for known in (self._deadlines, self._wanted, self._put_off, self._exempt):
            known.pop(ref, None)
        node = self._nodes.pop(ref.uid, None)
        if node is not None:
            del self._pods[node][ref.uid]
            if not self._pods[node]:
                del self._pods[node]
            if self._guard is not None:
                self._guard.want(node, ref, ())
                self._judge()

    def must_leave(self, ref: PodRef) -> bool:
        """Whether a pod that was taken still has to go."""
        return ref in self._deadlines

    def causes(self, ref: PodRef) -> Mapping[Taint, float]:
        """The taints that a pod must leave for, the first one first, and from when on."""
        return dict(sorted(self._wanted.get(ref, {}).items(), key=lambda item: item[1]))

    def postpone(self, ref: PodRef, until: float) -> None:
        """A pod that was taken does not leave before some time; then it is taken again."""
        if ref in self._deadlines:
            self._mark_going(ref, is_so=False)
            self._put_off[ref] = until
            self._set(ref, max(min(self._wanted[ref].values()), until))

    def exempt(self, ref: PodRef) -> None:
        """A pod that was taken does not leave for its taints at all."""
        if ref in self._wanted:
            self._mark_going(ref, is_so=False)
            self._exempt[ref] = frozenset(self._wanted[ref])
            self._replan(ref)

    def recall(self, ref: PodRef) -> None:
        """A pod that was put off or exempted is to be taken again: it has changed."""
        self._put_off.pop(ref, None)
        self._exempt.pop(ref, None)
        self._replan(ref)
        self._judge()

    def is_put_off(self, ref: PodRef) -> bool:
        """Whether a pod was put off or exempted, and `recall` would do something."""
        return ref in self._put_off or ref in self._exempt

    def holds(self, node: str) -> Mapping[Taint, Hold]:
        """The taints of a node that are held until somebody confirms them."""
        return {} if self._guard is None else self._guard.holds(node)

    def take_changed_nodes(self) -> set[str]:
        """The nodes where other taints are held than at the last call."""
        return set() if self._guard is None else self._guard.take_changed()

    def take(self, tick: float) -> Iterator[Due]:
        """The pods whose time has come, each once. They count as pending until they are gone."""
        while self._heap and self._heap[0][0] <= tick:
            deadline, ref = heapq.heappop(self._heap)
            if self._deadlines.get(ref) == deadline:
                self._mark_going(ref, is_so=True)
                yield Due(ref, deadline)

    def wait(self, tick: float) -> float | None:
        """After how many seconds the next pod must leave; None if none has to."""
        while self._heap and self._deadlines.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return max(self._heap[0][0] - tick, 0.0) if self._heap else None

    def _plan(self, node: str, pod: _Resident) -> bool:
        """Sets the deadline of a pod. True if it had one, or would have, and has none any more."""
        ref = pod.ref
        before = self._wanted.pop(ref, {})
        wanted = {
            taint: moment
            for taint, seen in self._taints.get(node, {}).items()
            if (moment := max(seen, pod.seen) + seconds_left(pod.tolerations, taint)) != FOREVER
        }
        if wanted:
            self._wanted[ref] = wanted
        if wanted.keys() - before.keys():
            self._put_off.pop(ref, None)  # what was put off was not put off for this
        if self._exempt.get(ref) == wanted.keys():
            wanted = {}
        else:
            self._exempt.pop(ref, None)
        if self._guard is not None:
            self._guard.want(node, ref, wanted)
        moments = [moment for taint, moment in wanted.items() if self._guard is None or self._guard.allows(node, taint)]
        if moments:
            self._set(ref, max(min(moments), self._put_off.get(ref, min(moments))))
        else:
            self._deadlines.pop(ref, None)
        return bool(before) and ref not in self._wanted

    def _set(self, ref: PodRef, deadline: float) -> None:
        if self._deadlines.get(ref) != deadline:
            self._deadlines[ref] = deadline
            heapq.heappush(self._heap, (deadline, ref))

    def _replan(self, ref: PodRef) -> None:
        node = self._nodes.get(ref.uid)
        if node is not None:
            self._plan(node, self._pods[node][ref.uid])

    def _mark_going(self, ref: PodRef, *, is_so: bool) -> None:
        if self._guard is not None:
            self._guard.mark_going(ref, is_so=is_so)

    def _judge(self) -> None:
        if self._guard is not None:
            for ref in self._guard.judge(len(self._nodes)):
                self._replan(ref)
