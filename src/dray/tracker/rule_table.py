"""DeviceTaintRules, and the identities of their taints."""

from __future__ import annotations

from dray import cel
from dray.api.resource import DeviceTaintRule, DeviceTaintSelector
from dray.api.resource.rule_annotations import taint_of, taints_partitions
from dray.tracker.columns import Sheet
from dray.tracker.selecting.owners import SelectorOwners
from dray.tracker.taints import TaintHits, TaintIds
from dray.tracker.view import TrackedTaint


class RuleTable(SelectorOwners[DeviceTaintRule]):
    """All rules. Without a selector a rule matches nothing, with an empty one everything (5055-67, 5055-68)."""

    kind = "DeviceTaintRule"

    def __init__(self, ids: TaintIds, backlog: cel.Backlog | None = None) -> None:
        super().__init__(backlog)
        self._ids = ids
        self._taints: dict[str, TrackedTaint] = {}

    def selecting(self, owner: DeviceTaintRule) -> DeviceTaintSelector | None:
        """The rule's selector."""
        return owner.spec.device_selector

    def put(self, owner: DeviceTaintRule) -> None:
        """Note a rule. Its taint keeps its identity, whatever was edited, as long as it is the same rule."""
        name = owner.metadata.name
        old = self._owners.get(name)
        is_same_rule = old is not None and old.metadata.uid == owner.metadata.uid
        number = self._taints[name].id if is_same_rule else self._ids.next()
        taint = TrackedTaint(number, taint_of(owner), name, taints_partitions(owner))
        if old is not None and old.spec == owner.spec and self._taints[name] == taint:
            return
        self._taints[name] = taint
        super().put(owner)

    def remove(self, name: str) -> None:
        """Note that a rule is gone, and its taint with it."""
        self._taints.pop(name, None)
        super().remove(name)

    def spreads(self, name: str) -> bool:
        """Whether the taint of a rule reaches partitions of the devices that it selects."""
        return name in self._taints and self._taints[name].spreads

    def taint_hits(self, sheet: Sheet) -> TaintHits:
        """The taints that rules put on devices of a slice, in the order of rule names."""
        return [(self._taints[name], mask) for name, mask in self.index.hits(sheet)]
