"""The pods that must leave their nodes because of NoExecute taints, and when.

    put_node, put_pod ─▶ deadline of each pod on the node ─▶ take(tick): those whose time has come
                              └─ none any more: cancelled

A toleration counts from when both the taint and the pod on its node were seen, whatever the taint says (X-06). Times
are seconds of a clock that never jumps.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dray.api.generated.core import Pod, Taint, Toleration
from dray.eviction.node_tolerations import seconds_left
from dray.eviction.pods import PodRef, can_be_evicted

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

    def __init__(self) -> None:
        self._taints: dict[str, dict[Taint, float]] = {}
        self._pods: dict[str, dict[str, _Resident]] = {}
        self._nodes: dict[str, str] = {}
        self._deadlines: dict[PodRef, float] = {}
        self._heap: list[tuple[float, PodRef]] = []

    def __len__(self) -> int:
        return len(self._deadlines)

    def put_node(self, name: str, taints: Iterable[Taint], tick: float) -> list[PodRef]:
        """These are a node's taints now; none if it is gone. Returns the pods that may stay after all."""
        before = self._taints.get(name, {})
        after = {_identity(taint): tick for taint in taints if taint.effect == NO_EXECUTE}
        if before.keys() == after.keys():
            return []
        self._taints[name] = {taint: before.get(taint, tick) for taint in after}
        if not after:
            del self._taints[name]
        return [pod.ref for pod in self._pods.get(name, {}).values() if self._plan(name, pod)]

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
        return resident != known and self._plan(node, resident)

    def drop_pod(self, ref: PodRef) -> None:
        """A pod is gone, or on its way out."""
        self._deadlines.pop(ref, None)
        node = self._nodes.pop(ref.uid, None)
        if node is not None:
            del self._pods[node][ref.uid]
            if not self._pods[node]:
                del self._pods[node]

    def must_leave(self, ref: PodRef) -> bool:
        """Whether a pod that was taken still has to go."""
        return ref in self._deadlines

    def take(self, tick: float) -> Iterator[Due]:
        """The pods whose time has come, each once. They count as pending until they are gone."""
        while self._heap and self._heap[0][0] <= tick:
            deadline, ref = heapq.heappop(self._heap)
            if self._deadlines.get(ref) == deadline:
                yield Due(ref, deadline)

    def wait(self, tick: float) -> float | None:
        """After how many seconds the next pod must leave; None if none has to."""
        while self._heap and self._deadlines.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return max(self._heap[0][0] - tick, 0.0) if self._heap else None

    def _plan(self, node: str, pod: _Resident) -> bool:
        """Sets the deadline of a pod. True if it had one and has none any more."""
        before = self._deadlines.get(pod.ref)
        after = min(
            (
                max(seen, pod.seen) + seconds_left(pod.tolerations, taint)
                for taint, seen in self._taints.get(node, {}).items()
            ),
            default=FOREVER,
        )
        if after == FOREVER:
            return self._deadlines.pop(pod.ref, None) is not None
        if after != before:
            self._deadlines[pod.ref] = after
            heapq.heappush(self._heap, (after, pod.ref))
        return False


def _identity(taint: Taint) -> Taint:
    """What makes it the same taint: not when somebody says it was added."""
    return Taint(key=taint.key, value=taint.value, effect=taint.effect)
