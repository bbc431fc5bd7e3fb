"""As much of a list as can be shown, shared between namespaces: who has much hides nobody who has little."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def share_out(
    found: Sequence[T], most: float, whose: Callable[[T], str], cost: Callable[[T], float] = lambda _one: 1
) -> list[T]:
    """Those that have room, in their order: of each namespace the first ones, and of all namespaces as much."""
    spent: dict[str, float] = {}
    ends: list[float] = []
    costs: list[float] = []
    for one in found:
        namespace, costs_of_one = whose(one), cost(one)
        spent[namespace] = spent.get(namespace, 0.0) + costs_of_one
        ends.append(spent[namespace])
        costs.append(costs_of_one)
    if sum(costs) <= most:
        return list(found)
    chosen = []
    for number in sorted(range(len(found)), key=ends.__getitem__):
        most -= costs[number]
        if most < 0:
            break
        chosen.append(number)
    return [found[number] for number in sorted(chosen)]


def namespace_of(name: str) -> str:
    """Of `namespace/name`; empty for what is in none."""
    return name.partition("/")[0] if "/" in name else ""
