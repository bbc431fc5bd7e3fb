"""The guard of evictions because of node taints. Pods are counted by taint over all nodes, and confirmed node by node.

A node has no generation. What confirms is an annotation with the taint's name: its key, with `@` and the time at which
it was added if the taint says so. A taint that is added again needs another confirmation then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from dray.api.generated.core import Taint
from dray.eviction.guard import Guard, Hold
from dray.eviction.pods import PodRef
from dray.eviction.settings import CONFIRM_ANNOTATION, Limit


class NodeGuard:
    """Counts and holds; `NodeEvictions` says what pods must leave for."""

    def __init__(self, limit: Limit) -> None:
        self._guard: Guard[Taint, PodRef] = Guard(limit)
        self._taints: dict[str, dict[Taint, str]] = {}
        self._confirmed: dict[str, frozenset[Taint]] = {}
        self._nodes: Counter[Taint] = Counter()
        self._residents: dict[str, set[PodRef]] = {}
        self._changed: set[str] = set()

    def put_node(self, name: str, taints: Iterable[Taint], annotations: Mapping[str, str]) -> bool:
        """These are a node's NoExecute taints now. True if other ones are confirmed than before."""
        after = {identity(taint): confirmation(taint) for taint in taints}
        before = self._taints.pop(name, {})
        if after:
            self._taints[name] = after
        self._nodes.update(after.keys() - before.keys())
        for taint in before.keys() - after.keys():
            self._nodes[taint] -= 1
            if self._nodes[taint] <= 0:
                del self._nodes[taint]
                self._guard.reset(taint)
        if before.keys() != after.keys():
            self._changed.add(name)
        named = {part.strip() for part in annotations.get(CONFIRM_ANNOTATION, "").split(",")}
        confirmed = frozenset(taint for taint, text in after.items() if text in named)
        if confirmed == self._confirmed.get(name, frozenset()):
            return False
        self._confirmed[name] = confirmed
        self._changed.add(name)
        return True

    def want(self, node: str, pod: PodRef, taints: Collection[Taint]) -> None:
        """A pod on a node must leave for these taints, or (none) may stay."""
        if taints:
            self._residents.setdefault(node, set()).add(pod)
        elif node in self._residents:
            self._residents[node].discard(pod)
            if not self._residents[node]:
                del self._residents[node]
        confirmed = self._confirmed.get(node, frozenset())
        self._guard.want(pod, [taint for taint in taints if taint not in confirmed])

    def allows(self, node: str, taint: Taint) -> bool:
        """Whether pods of a node may be evicted for a taint."""
        return taint in self._confirmed.get(node, frozenset()) or self._guard.allows(taint)

    def mark_going(self, pod: PodRef, *, is_so: bool) -> None:
        """A pod is being evicted, or (not so) stays for the time being."""
        self._guard.mark_going(pod, is_so=is_so)

    def judge(self, of: int) -> Iterable[PodRef]:
        """Decides about what has changed. Returns the pods that are concerned."""
        if self._guard.is_sure:
            return ()
        changed = self._guard.judge(of, lambda _: False)
        if changed:
            self._changed.update(node for node, taints in self._taints.items() if not changed.isdisjoint(taints))
        return list({pod: None for taint in changed for pod in self._guard.pods(taint)})

    def holds(self, node: str) -> dict[Taint, Hold]:
        """What is held of a node's taints, as far as it concerns pods that are there."""
        pods = self._residents.get(node, set())
        return {
            taint: self._guard.held[taint]
            for taint in self._taints.get(node, {})
            if taint in self._guard.held and not pods.isdisjoint(self._guard.pods(taint))
        }

    def take_changed(self) -> set[str]:
        """The nodes about which there may be something else to say than at the last call."""
        changed, self._changed = self._changed, set()
        return changed


def identity(taint: Taint) -> Taint:
    """What makes it the same taint: not when somebody says it was added."""
    return Taint(key=taint.key, value=taint.value, effect=taint.effect)


def confirmation(taint: Taint) -> str:
    """How an annotation confirms a taint."""
    return taint.key if taint.time_added is None else f"{taint.key}@{taint.time_added}"


def confirmations_without(annotations: Mapping[str, str], keys: Collection[str]) -> str | None:
    """The annotation without taints of these keys: whoever adds one of them again is to be asked again."""
    parts = [part.strip() for part in annotations.get(CONFIRM_ANNOTATION, "").split(",")]
    return ",".join(part for part in parts if part and part.partition("@")[0] not in keys) or None
