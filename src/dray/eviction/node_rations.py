"""How fast pods may leave nodes because of taints, where annotations say so. Without one there is no limit (3902).

Nodes of one group share a limiter. If they disagree, the slowest rate holds for all of them: while somebody changes
node after node, pods do not leave faster than anybody has asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from dray.api.generated.core import Taint
from dray.api.node_annotations import Ration, read_rations
from dray.api.resource.taint import DEFAULT_EVICTIONS_PER_SECOND
from dray.api.taints import TaintName
from dray.eviction.causes import TaintKey

DEFAULT: Final = Ration(DEFAULT_EVICTIONS_PER_SECOND)
"""Who wrote an annotation that cannot be read did not mean that everybody leaves at once."""


class NodeRations:
    """The rations of the taints that nodes have."""

    def __init__(self) -> None:
        self._nodes: dict[str, dict[TaintName, Ration]] = {}
        self._groups: dict[str, dict[tuple[str, TaintName], int]] = {}
        self._rates: dict[str, int] = {}

    def put_node(self, name: str, taints: Iterable[Taint], annotations: Mapping[str, str]) -> set[str]:
        """These are a node's NoExecute taints and annotations now. Returns the nodes that have another pace now."""
        read = read_rations(annotations)
        after: dict[TaintName, Ration] = {}
        for taint in map(TaintName.of, taints):
            ration = read.entries.get(taint) or (DEFAULT if read.problems else None)
            if ration is not None:
                after[taint] = ration
        before = self._nodes.pop(name, {})
        if after:
            self._nodes[name] = after
        return set() if before == after else {name, *self._regroup(name, before, after)}

    def of(self, node: str, taint: Taint) -> tuple[TaintKey, int | None]:
        """What evictions for a taint of a node share a limiter by, and its rate."""
        ration = self._nodes.get(node, {}).get(TaintName.of(taint))
        if ration is not None and ration.group:
            return f"@{ration.group}", self._rates[ration.group]
        return f"{node}/{taint.key}={taint.value}", None if ration is None else ration.rate

    def _regroup(self, node: str, before: Mapping[TaintName, Ration], after: Mapping[TaintName, Ration]) -> set[str]:
        """Returns the nodes in groups whose rate is another one now."""
        for taint, ration in before.items():
            self._groups.get(ration.group, {}).pop((node, taint), None)
        for taint, ration in after.items():
            if ration.group:
                self._groups.setdefault(ration.group, {})[node, taint] = ration.rate
        changed: set[str] = set()
        for group in {ration.group for ration in (*before.values(), *after.values())} & self._groups.keys():
            members = self._groups[group]
            old = self._rates.pop(group, None)
            if not members:
                del self._groups[group]
                continue
            self._rates[group] = min(members.values())
            if old != self._rates[group]:
                changed.update(name for name, _ in members)
        return changed
