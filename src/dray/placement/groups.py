"""Decision groups: how the selected clusters are divided for those who roll out step by step."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, NamedTuple

from dray.api.cluster import GroupStrategy
from dray.api.labels import SelectorError
from dray.placement.cluster_selector import ClusterSelector
from dray.placement.fleet import Fleet
from dray.placement.problem import MisconfiguredError

_PATH: Final = "spec.decisionStrategy.groupStrategy"
_PERCENTAGE: Final = re.compile(r"([+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?)%")
_MAX_TEXT_LENGTH: Final = 64


class GroupSize(NamedTuple):
    """The most clusters that a group may have: a number, or a share of all selected; neither: all of them."""

    number: int | None = None
    percentage: float | None = None

    def of(self, total: int) -> int:
        """The size for so many selected clusters, at least 1. What makes no sense, like 0, means all."""
        size = total
        if self.number is not None:
            size = self.number
        elif self.percentage is not None:
            size = math.ceil(self.percentage / 100 * total)
        return size if 0 < size < total else max(total, 1)


class NamedGroup(NamedTuple):
    """A group that takes the clusters that match."""

    name: str
    selector: ClusterSelector


class GroupRules(NamedTuple):
    """How to divide: named groups first, in order, then the rest."""

    named: tuple[NamedGroup, ...] = ()
    size: GroupSize = GroupSize()

    @property
    def single(self) -> bool:
        """Whether there is one group, whatever is selected."""
        return not self.named and (self.size == GroupSize() or self.size == GroupSize(percentage=100.0))


@dataclass(frozen=True, slots=True)
class Group:
    """Some of the selected clusters. Several groups may have the same name; the index tells them apart."""

    index: int
    name: str
    clusters: tuple[str, ...]


def read_group_rules(strategy: GroupStrategy) -> GroupRules:
    """Read `spec.decisionStrategy.groupStrategy`; raises MisconfiguredError."""
    named: list[NamedGroup] = []
    for index, group in enumerate(strategy.decision_groups):
        selector = group.group_cluster_selector
        path = f"{_PATH}.decisionGroups[{index}].groupClusterSelector"
        try:
            read = ClusterSelector.of(selector.label_selector, selector.claim_selector, path)
        except SelectorError as error:
            raise MisconfiguredError(str(error)) from error
        named.append(NamedGroup(group.group_name, read))
    return GroupRules(tuple(named), _read_size(strategy.clusters_per_decision_group))


def divide(
    rules: GroupRules, selected: Iterable[str], fleet: Fleet, order: Callable[[str], int] | None = None
) -> tuple[Group, ...]:
    """The groups of `selected`, inside a group by `order` (by name, if None). There is always one, even if empty."""
    remaining: AbstractSet[str] = frozenset(selected)
    size = rules.size.of(len(remaining))
    parts: list[tuple[str, tuple[str, ...]]] = []
    for group in rules.named:
        matched = group.selector.select(fleet, remaining)
        remaining = remaining - matched
        parts += _cut(group.name, _arrange(matched, order), size)
    parts += _cut("", _arrange(remaining, order), size)
    return tuple(Group(index, name, clusters) for index, (name, clusters) in enumerate(parts or [("", ())]))


def flatten(groups: tuple[Group, ...]) -> tuple[str, ...]:
    """The clusters of all groups, in order."""
    if len(groups) == 1:
        return groups[0].clusters
    return tuple(name for group in groups for name in group.clusters)


def _arrange(names: AbstractSet[str], order: Callable[[str], int] | None) -> tuple[str, ...]:
    in_order = sorted(names)
    if order is not None:
        in_order.sort(key=order)
    return tuple(in_order)


def _cut(name: str, clusters: tuple[str, ...], size: int) -> list[tuple[str, tuple[str, ...]]]:
    return [(name, clusters[start : start + size]) for start in range(0, len(clusters), size)]


def _read_size(value: int | str | None) -> GroupSize:
    if value is None:
        return GroupSize()
    if isinstance(value, int):
        return GroupSize(number=value)
    match = _PERCENTAGE.fullmatch(value) if len(value) <= _MAX_TEXT_LENGTH else None
    share = float(match[1]) if match else math.inf
    if not math.isfinite(share):
        raise MisconfiguredError(
            f"{_PATH}.clustersPerDecisionGroup: {value[:80]!r} is neither a number nor a percentage"
        )
    return GroupSize(percentage=share)
