"""Devices that the search need not tell apart, and states that it has seen to fail.

Two devices are alike if every option treats them the same, all constraints see the same values, and they draw alike
from the counters of one pool. If a device led nowhere, a device that is alike leads nowhere either; and two states that
differ only in which of several like devices are taken have the same future. Shareable devices are alike while the same
shares were taken of them.
"""

from __future__ import annotations

from collections.abc import Hashable

from dray.allocator.problem import Problem
from dray.allocator.state import State
from dray.api.resource.claim import ALLOCATION_RESULTS


class Symmetry:
    """The kinds of devices of one problem. Made only when a search has to go back."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._attributes = [
            problem.attribute(number, constraint)
            for number, claim in enumerate(problem.claims)
            for constraint in range(len(claim.constraints))
        ]
        self._ordered = self._find_ordered()
        numbers: dict[Hashable, int] = {}
        self._kind_of = [numbers.setdefault(self._kind(p), len(numbers)) for p in range(problem.layout.size)]
        masks = [0] * len(numbers)
        for position, kind in enumerate(self._kind_of):
            masks[kind] |= 1 << position
        self._groups = [mask for mask in masks if mask.bit_count() > 1]
        self._singles = sum(mask for mask in masks if mask.bit_count() == 1)
        self._relevant = self._relevant_from()
        self._has_admin = any(o.alternative.admin for r in problem.requests for o in r.options)
        self._concerned = [self._constraints_from(number) for number in range(len(problem.requests))]
        self._may_be_too_large = [
            sum(max(o.count for o in r.options) for r in problem.requests_of(claim)) > ALLOCATION_RESULTS
            for claim in range(len(problem.claims))
        ]

    def _constraints_from(self, first: int) -> tuple[int, ...]:
        """The constraints of a request's claim that hold for this request or a later one."""
        claim = self._problem.requests[first].claim
        later = (r for r in self._problem.requests[first:] if r.claim == claim)
        return tuple(sorted({n for r in later for o in r.options for n in o.alternative.constraints}))

    def _find_ordered(self) -> int:
        """Devices of `All` requests with constraints: whether one that is taken or one that a constraint forbids comes
        first decides between a failure and an error."""
        found = 0
        for request in self._problem.requests:
            for option in request.options:
                if option.everything is not None and option.alternative.constraints:
                    found |= option.everything
        return found

    def _kind(self, position: int) -> Hashable:
        problem, layout = self._problem, self._problem.layout
        bit = 1 << position
        if bit & self._ordered:
            return position
        options = tuple(
            (bool(o.usable & bit), bool(o.faulty & bit), bool((o.everything or 0) & bit), bool(o.out_of_reach & bit))
            for request in problem.requests
            for o in request.options
        )
        values = tuple(index.values[position] for index in self._attributes)
        draw: Hashable = None
        if bit & layout.metered:
            number = layout.segment_of[position]
            segment, _ = layout.segments[number]
            table = segment.pool.counters
            draw = (number, table and table.draws[segment.pool_position(position - layout.offsets[number])])
        consumed = tuple(sorted(problem.consumed(position).items()))
        return options, values, draw, consumed, self._share_kind(position) if bit & layout.shareable else None

    def _share_kind(self, position: int) -> Hashable:
        """What a share would cost each option, and how much there is."""
        problem = self._problem
        bit = 1 << position
        costs = tuple(
            tuple(sorted(problem.consumption(o.alternative.criteria, position).items()))
            for request in problem.requests
            for o in request.options
            if o.usable & bit or (o.everything or 0) & bit
        )
        capacity = problem.device(position).device.capacity
        sizes = tuple(sorted((name, entry.value.nanos) for name, entry in capacity.items()))
        return costs, sizes, bool(problem.shared & bit)

    def kind(self, position: int, state: State) -> Hashable:
        """Equal for devices that are alike in a state."""
        used = state.shares.get(position)
        return self._kind_of[position] if used is None else (self._kind_of[position], *sorted(used.items()))

    def _relevant_from(self) -> list[int]:
        """For each request, the devices that it or a later one may look at."""
        relevant = 0
        result = []
        for request in reversed(self._problem.requests):
            for option in request.options:
                relevant |= option.usable | option.faulty | (option.everything or 0)
            result.append(relevant)
        return result[::-1]

    def signature(self, state: State, candidates: int) -> Hashable:
        """Equal for states with the same future; `candidates` are the devices left to the current request."""
        claim = self._problem.requests[state.request].claim
        relevant = self._relevant[state.request]
        taken = (state.taken | state.taken_before) & relevant
        shares = sorted((self.kind(p, state), candidates >> p & 1) for p in state.shares)
        for position in state.shares:
            candidates &= ~(1 << position)
        counts = tuple((taken & group).bit_count() << 32 | (candidates & group).bit_count() for group in self._groups)
        return (
            state.request,
            state.option,
            state.slot,
            state.size if self._may_be_too_large[claim] else 0,
            counts,
            taken & self._singles,
            candidates & self._singles,
            (state.taken & relevant) if self._has_admin else 0,
            tuple(state.values[number] for number in self._concerned[state.request]),
            tuple((segment, b.left, tuple(sorted(b.groups.items()))) for segment, b in sorted(state.budgets.items())),
            tuple(shares),
        )
