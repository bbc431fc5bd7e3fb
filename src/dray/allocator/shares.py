"""How many more shares shareable devices can give: a bound for the lookahead.

A device with room for n of the smallest shares that are still wanted counts as n devices. Who gets how much is left to
the search.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dray.allocator.problem import Option, Problem
from dray.allocator.state import State
from dray.tracker.columns import positions


class ShareSupply:
    """The shareable devices of a problem."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._plenty: Final = len(problem.requests)
        """A request takes one share of a device at most, so more are not told apart."""
        self._smallest: list[dict[int, Mapping[str, int]]] = self._find_smallest()
        self._fresh: dict[int, list[int]] = {}

    def _find_smallest(self) -> list[dict[int, Mapping[str, int]]]:
        """For each request, by position, the smallest amounts that it or a later request would take."""
        smallest: dict[int, Mapping[str, int]] = {}
        found = []
        for request in reversed(self._problem.requests):
            smallest = dict(smallest)
            for option in request.options:
                wanted = (option.usable | (option.everything or 0)) & self._problem.layout.shareable
                for position in positions(wanted):
                    amounts = self._problem.consumption(option.alternative.criteria, position)
                    known = smallest.get(position)
                    if known is not None:
                        amounts = {name: min(amount, known[name]) for name, amount in amounts.items()}
                    smallest[position] = amounts
            found.append(smallest)
        return found[::-1]

    def exhausted(self, option: Option, state: State) -> int:
        """Devices that have too little left for one more share of this option."""
        mask = 0
        for position in positions(self._problem.shared | sum(1 << p for p in state.shares)):
            if not option.usable >> position & 1:
                continue
            left = self._left(position, state)
            amounts = self._problem.consumption(option.alternative.criteria, position)
            if any(amount > left[name] for name, amount in amounts.items()):
                mask |= 1 << position
        return mask

    def layers(self, state: State) -> list[int]:
        """Sets of devices: the n-th has those that can give at least n shares."""
        number = state.request
        fresh = self._fresh.get(number)
        if fresh is None:
            counts = {p: self._count(p, number, State()) for p in self._smallest[number]}
            fresh = self._fresh[number] = _layered(counts, self._plenty)
        if not state.shares:
            return fresh
        layers = list(fresh)
        for position in state.shares:
            if position in self._smallest[number]:
                count = self._count(position, number, state)
                bit = 1 << position
                layers = [layer | bit if n < count else layer & ~bit for n, layer in enumerate(layers)]
        return layers

    def _count(self, position: int, request: int, state: State) -> int:
        left = self._left(position, state)
        amounts = self._smallest[request][position]
        return min((left[name] // amount for name, amount in amounts.items() if amount), default=self._plenty)

    def _left(self, position: int, state: State) -> dict[str, int]:
        capacity = self._problem.device(position).device.capacity
        held = self._problem.consumed(position)
        taken = state.shares.get(position, {})
        return {name: entry.value.nanos - held.get(name, 0) - taken.get(name, 0) for name, entry in capacity.items()}


def _layered(counts: Mapping[int, int], plenty: int) -> list[int]:
    highest = min(max(counts.values(), default=0), plenty)
    layers = [0] * highest
    for position, count in counts.items():
        for number in range(min(count, highest)):
            layers[number] |= 1 << position
    return layers
