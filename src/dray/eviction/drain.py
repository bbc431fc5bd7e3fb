"""What a drain promises, as a value: how fast pods leave, what they wait for, and until when. Pure.

A drain keeps new work away with a NoSchedule taint and has pods leave one by one through the eviction API, which
refuses while a disruption budget forbids it. Whoever drains asks again later, and goes on with others meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

import msgspec
from msgspec.structs import replace

from dray.api.backoff import Backoff
from dray.api.generated.core import Node, Pod, Taint
from dray.api.pods import is_ready, is_static, is_terminating
from dray.api.references import ObjectRef, controller_of
from dray.api.resource import DeviceTaintRule
from dray.api.resource.taint import EFFECT_NO_EXECUTE
from dray.api.taints import AnyTaint, TaintName
from dray.api.times import later
from dray.api.toleration import seconds_left
from dray.eviction.pods import can_be_evicted
from dray.eviction.replicas import Replicas

DRAIN_ANNOTATION: Final = "dray.dev/drain"
"""On a node: the taints with which a drain empties it, with commas between; until they are taken away. On a rule: its
taint, if a drain has pods leave for it. A drain goes on as long as this is there."""
PAUSED_ANNOTATION: Final = "dray.dev/drain-paused"
"""On a rule or a node: its drain stands still while this is there."""
_FORESEEABLE: Final = 10 * 365 * 86400.0
REFUSED: Final = Backoff(first=1.0, longest=30.0)
"""How long not to ask again about a pod whose budget allowed none."""


def belongs_to_node(pod: Pod) -> bool:
    """Whether a drain of its node leaves a pod alone, as kubectl's does: a static one, or one of a DaemonSet.

    They serve whoever is on the node, drivers among them, and would be made again there or nowhere.
    """
    owner = controller_of(pod)
    return is_static(pod) or (owner is not None and owner.kind == "DaemonSet")


def is_drained(obj: Node | DeviceTaintRule) -> bool:
    """Whether somebody drains a node, or the devices of a rule, or has: a taint of theirs is still there."""
    if isinstance(obj, Node):
        return bool(drain_taints(obj))
    return _is_of_drain(obj.spec.taint, obj.metadata.annotations)


def must_leave(node: Node, pods: Iterable[Pod]) -> list[Pod]:
    """The pods on a node that a drain, or a taint with NoExecute, makes leave, now or when their toleration ends."""
    return [pod for pod in _not_tolerating(node, pods) if can_be_evicted(pod)]


def still_stopping(node: Node, pods: Iterable[Pod]) -> list[Pod]:
    """Those of them that are being deleted, and run until they have stopped: the node is not empty before."""
    return [pod for pod in _not_tolerating(node, pods) if is_terminating(pod)]


def _not_tolerating(node: Node, pods: Iterable[Pod]) -> Iterator[Pod]:
    evicting = [taint for taint in node.spec.taints if taint.effect == EFFECT_NO_EXECUTE]
    draining = [replace(taint, effect=EFFECT_NO_EXECUTE) for taint in drain_taints(node)]
    for pod in pods:
        taints = evicting if belongs_to_node(pod) else (*evicting, *draining)
        if any(seconds_left(pod.spec.tolerations, taint) < math.inf for taint in taints):
            yield pod


def leaves_by_drain(node: Node, pod: Pod) -> bool:
    """Whether a pod that must leave does so as the eviction API lets it: no taint with NoExecute has it deleted."""
    evicting = (taint for taint in node.spec.taints if taint.effect == EFFECT_NO_EXECUTE)
    return all(seconds_left(pod.spec.tolerations, taint) == math.inf for taint in evicting)


def last_leaves(node: Node, leaving: Iterable[Pod]) -> datetime | None:
    """Before when the last of the pods that must leave does not, as their tolerations have it; None if not known.

    A guard, a rate or a full queue may keep it longer; nothing makes it leave earlier but somebody who evicts it.
    """
    evicting = [taint for taint in node.spec.taints if taint.effect == EFFECT_NO_EXECUTE]
    if drain_taints(node) or any(taint.time_added is None for taint in evicting):
        return None
    lasts = [_leaves(pod, evicting) for pod in leaving]
    known = [one for one in lasts if one is not None]
    return max(known) if known and len(known) == len(lasts) else None


def _leaves(pod: Pod, evicting: Iterable[Taint]) -> datetime | None:
    found = []
    for taint in evicting:
        seconds = seconds_left(pod.spec.tolerations, taint)
        if taint.time_added is not None and seconds < _FORESEEABLE:
            found.append(later(taint.time_added.datetime(), seconds))
    return min(found, default=None)


def drain_taints(node: Node) -> list[Taint]:
    """The taints with which somebody drains a node, or has."""
    return [taint for taint in node.spec.taints if _is_of_drain(taint, node.metadata.annotations)]


def _is_of_drain(taint: AnyTaint, annotations: Mapping[str, str]) -> bool:
    return str(TaintName.of(taint)) in annotations.get(DRAIN_ANNOTATION, "").split(",")


def undraining(annotations: Mapping[str, str], removed: Collection[TaintName]) -> dict[str, str | None]:
    """The annotations of a node that are other ones without some taints, None for what goes away: what says with which
    taints it is drained, and with the last of these a pause, which would stop the next drain."""
    told = annotations.get(DRAIN_ANNOTATION, "").split(",")
    left = [one for one in told if one and one not in map(str, removed)]
    ended: dict[str, str | None] = {PAUSED_ANNOTATION: None} if not left and PAUSED_ANNOTATION in annotations else {}
    return {DRAIN_ANNOTATION: ",".join(left) or None, **ended}


class DrainTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What the one who drains wants."""

    rate: int | None = None
    """Pods per second, from the first one on; None for as fast as they can be told."""
    wait_for_replacements: bool = False
    """A ready pod leaves only when those of its controller that left before are replaced."""
    deadline: float | None = None
    """Seconds after the drain begins. From then on budgets and replacements are not waited for any more."""


class Drain:
    """Who leaves next. Told of pods with `put` and `drop`, of outcomes with `left` and `refused`."""

    def __init__(self, terms: DrainTerms) -> None:
        self.terms = terms
        self.refusals: dict[ObjectRef, str] = {}
        """What the eviction API said, of pods that it does not let go yet."""
        self.replacing: set[ObjectRef] = set()
        """Pods that wait for the replacement of another."""
        self._replicas = Replicas()
        self._told: set[ObjectRef] = set()
        self.forced: set[ObjectRef] = set()
        """Pods that left at the deadline, whatever their budgets said."""
        self._again: dict[ObjectRef, tuple[int, float]] = {}
        self._began: float | None = None
        self._free_at = float("-inf")

    def put(self, pod: Pod) -> None:
        """A pod is there, or has changed."""
        self._replicas.put(pod)

    def drop(self, pod: Pod) -> None:
        """A pod is gone."""
        self._replicas.drop(pod)
        ref = ObjectRef.of(pod)
        self.refusals.pop(ref, None)
        self._again.pop(ref, None)
        self._told.discard(ref)

    def is_over(self, now: float) -> bool:
        """Whether the deadline is over, and pods leave whatever their budgets say.

        It counts from the first question who leaves: until then somebody may have thought about whether to begin.
        """
        return self.terms.deadline is not None and self._began is not None and now >= self._began + self.terms.deadline

    def next(self, due: Iterable[tuple[Pod, float]], now: float) -> Pod | None:
        """The pod to tell now, of those that must leave from some time on; None if none may yet."""
        self.replacing.clear()
        self._began = now if self._began is None else self._began
        if now < self._free_at:
            return None
        found: Pod | None = None
        for pod, since in sorted(due, key=lambda one: (one[1], ObjectRef.of(one[0]))):
            ref = ObjectRef.of(pod)
            if since > now or ref in self._told:
                continue
            if not self.is_over(now):
                if self._again.get(ref, (0, now))[1] > now:
                    continue
                if self.terms.wait_for_replacements and self._lacks_others(pod):
                    self.replacing.add(ref)
                    continue
            found = found or pod
        return found

    def left(self, pod: Pod, now: float) -> None:
        """A pod was told to leave."""
        ref = ObjectRef.of(pod)
        self._told.add(ref)
        if self.is_over(now):
            self.forced.add(ref)
        self._replicas.evicting(pod, is_so=True)
        self.refusals.pop(ref, None)
        if self.terms.rate:
            self._free_at = max(self._free_at, now) + 1.0 / self.terms.rate

    def refused(self, pod: Pod, why: str, now: float) -> None:
        """The server does not let a pod go now."""
        ref = ObjectRef.of(pod)
        tries = self._again.get(ref, (0, 0.0))[0] + 1
        self._again[ref] = (tries, now + REFUSED.after(tries))
        self.refusals[ref] = why

    def _lacks_others(self, pod: Pod) -> bool:
        siblings = self._replicas.siblings(pod)
        return siblings is not None and is_ready(pod) and siblings.wanted > siblings.ready - siblings.evicting


def is_paused(annotations: Mapping[str, str]) -> bool:
    """Whether somebody said that a drain is to stand still."""
    return annotations.get(PAUSED_ANNOTATION, "false") != "false"
