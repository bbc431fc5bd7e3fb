"""The pods that must leave their nodes because of NoExecute taints, and when.

    put_node, put_pod ─▶ what each pod on the node must leave for ─▶ Evictions ─▶ take(tick): those whose time has come
                              ├─ nothing any more: cancelled
                              └─ the guard holds its taint, a policy puts it off or keeps it: later, or not at all

A toleration counts from when both the taint and the pod on its node were seen, whatever the taint says (X-06). Pods
whose time has come all leave at once, unless the node says how many may a second (`node_rations`). Times are seconds of
a clock that never jumps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from dray.api.generated.core import Pod, Taint, Toleration
from dray.api.node_annotations import NO_EXECUTE
from dray.eviction.causes import Cause, Causes, earliest
from dray.eviction.evictions import Evictions, Taken
from dray.eviction.guard import Hold
from dray.eviction.node_guard import NodeGuard, identity
from dray.eviction.node_rations import NodeRations
from dray.eviction.node_tolerations import seconds_left
from dray.eviction.pods import PodRef, can_be_evicted
from dray.eviction.settings import Limit

FOREVER = float("inf")


class _Resident(NamedTuple):
    """A pod on a node."""

    ref: PodRef
    tolerations: tuple[Toleration, ...]
    seen: float


class NodeEvictions:
    """What the taint eviction controller knows. Only nodes with NoExecute taints cost more than a dictionary entry."""

    def __init__(self, max_evictions: Limit | None = None) -> None:
        """A taint that would evict more than `max_evictions` is held until it is confirmed, node by node."""
        self._guard = None if max_evictions is None else NodeGuard(max_evictions)
        self._taints: dict[str, dict[Taint, float]] = {}
        self._pods: dict[str, dict[str, _Resident]] = {}
        self._nodes: dict[str, str] = {}
        self._rations = NodeRations()
        self._wanted: dict[PodRef, dict[Taint, float]] = {}
        self._exempt: dict[PodRef, frozenset[Taint]] = {}
        self._evictions: Evictions[PodRef] = Evictions()
        self._tick = float("-inf")

    def __len__(self) -> int:
        return len(self._evictions)

    @property
    def pods(self) -> Collection[PodRef]:
        """All pods that must leave, now or later."""
        return self._evictions.pods

    def put_node(
        self, name: str, taints: Iterable[Taint], tick: float, annotations: Mapping[str, str] | None = None
    ) -> list[PodRef]:
        """These are a node's taints now; none if it is gone. Returns the pods that may stay after all."""
        self._tick = max(self._tick, tick)
        taints = [taint for taint in taints if taint.effect == NO_EXECUTE]
        before = self._taints.get(name, {})
        after = {identity(taint): tick for taint in taints}
        is_confirmed = self._guard is not None and self._guard.put_node(name, taints, annotations or {})
        paced = self._rations.put_node(name, taints, annotations or {})
        if before.keys() == after.keys() and not is_confirmed and not paced:
            return []
        self._taints[name] = {taint: before.get(taint, tick) for taint in after}
        if not after:
            del self._taints[name]
        concerned = [(node, pod) for node in sorted({name, *paced}) for pod in self._pods.get(node, {}).values()]
        cancelled = [pod.ref for node, pod in concerned if self._plan(node, pod)]
        self._judge()
        return cancelled

    def put_pod(self, pod: Pod, tick: float) -> bool:
        """A pod is there or has changed. True if it was to be evicted and may stay after all."""
        self._tick = max(self._tick, tick)
        if not can_be_evicted(pod):
            self.drop_pod(PodRef.of(pod))
            return False
        ref = PodRef.of(pod)
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
        node = self._nodes.pop(ref.uid, None)
        if node is None:
            return  # it never was here
        self._evictions.finish(ref)
        self._wanted.pop(ref, None)
        self._exempt.pop(ref, None)
        del self._pods[node][ref.uid]
        if not self._pods[node]:
            del self._pods[node]
        if self._guard is not None:
            self._guard.want(node, ref, ())
            self._judge()

    @property
    def is_idle(self) -> bool:
        """Whether nobody has to leave, and nothing can be held: then a pod that comes or goes changes nothing."""
        return self._guard is None and not self._wanted

    def must_leave(self, ref: PodRef) -> bool:
        """Whether a pod that was taken still has to go."""
        return bool(self._evictions.causes(ref))

    def causes(self, ref: PodRef) -> Mapping[Taint, float]:
        """The taints that a pod must leave for, the first one first, and from when on."""
        return dict(sorted(self._wanted.get(ref, {}).items(), key=lambda item: item[1]))

    def postpone(self, taken: Taken[PodRef], until: float) -> None:
        """A pod that was taken does not leave before some time; then it is taken again."""
        self._mark_going(taken.pod, is_so=False)
        self._evictions.postpone(taken, until)

    def exempt(self, ref: PodRef) -> None:
        """A pod that was taken does not leave for its taints at all."""
        if ref in self._wanted:
            self._mark_going(ref, is_so=False)
            self._exempt[ref] = frozenset(self._wanted[ref])
            self._replan(ref)

    def recall(self, ref: PodRef) -> None:
        """A pod that was put off or exempted is to be taken again: it has changed."""
        self._evictions.recall(ref)
        if self._exempt.pop(ref, None) is not None:
            self._replan(ref)
            self._judge()

    def is_put_off(self, ref: PodRef) -> bool:
        """Whether a pod was put off or exempted, and `recall` would do something."""
        return ref in self._evictions.postponed or ref in self._exempt

    def holds(self, node: str) -> Mapping[Taint, Hold]:
        """The taints of a node that are held until somebody confirms them."""
        return {} if self._guard is None else self._guard.holds(node)

    def take_changed_nodes(self) -> set[str]:
        """The nodes where other taints are held than at the last call."""
        return set() if self._guard is None else self._guard.take_changed()

    def take(self, tick: float) -> list[Taken[PodRef]]:
        """The pods to evict now, each once. They count as pending until they are gone."""
        taken = self._evictions.take(tick, tick)
        for each in taken:
            self._mark_going(each.pod, is_so=True)
        return taken

    def wait(self, tick: float) -> float | None:
        """After how many seconds `take` may have something; None if nobody has to leave."""
        return self._evictions.wait(tick, tick)

    def _plan(self, node: str, pod: _Resident) -> bool:
        """Says what a pod must leave for. True if it had to for something, or would have, and has not any more."""
        ref = pod.ref
        if node not in self._taints and ref not in self._wanted:
            return False
        before = self._wanted.pop(ref, {})
        wanted = {
            taint: moment
            for taint, seen in self._taints.get(node, {}).items()
            if (moment := max(seen, pod.seen) + seconds_left(pod.tolerations, taint)) != FOREVER
        }
        if wanted:
            self._wanted[ref] = wanted
        if self._exempt.get(ref) == wanted.keys():
            wanted = {}
        else:
            self._exempt.pop(ref, None)
        if self._guard is not None:
            self._guard.want(node, ref, wanted)
            wanted = {taint: due for taint, due in wanted.items() if self._guard.allows(node, taint)}
        self._evictions.set(ref, self._causes_of(node, wanted), self._tick)
        return bool(before) and ref not in self._wanted

    def _causes_of(self, node: str, wanted: Mapping[Taint, float]) -> Causes:
        causes = []
        for taint, due in wanted.items():
            line, rate = self._rations.of(node, taint)
            causes.append(Cause(line, due, rate, key=taint.key, value=taint.value))
        return earliest(causes)

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
