"""Sees dead ends early: relaxations of what is still to be allocated that are cheap to decide.

Each test may only say no where there is no solution, so that the search stays complete and finds the same first
solution as without it:

- enough devices for every request, all together (a matching, not only counts);
- for matchAttribute, a value with enough devices for all requests of the constraint;
- for distinctAttribute, enough different values;
- for shared counters, the cheapest devices fit into what is left, counter by counter and over all counters at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from dray.allocator.counters import Amounts, CounterTable
from dray.allocator.flow import can_meet_all
from dray.allocator.problem import Option, Problem
from dray.allocator.shares import ShareSupply
from dray.allocator.state import State, Values

_SCALE: Final = 10**6


class Demand:
    """Devices that are still needed for one request."""

    __slots__ = ("claim", "constraints", "is_exclusive", "mask", "need")

    def __init__(self, claim: int, mask: int, need: int, constraints: Iterable[int], exclusive: bool) -> None:
        self.claim = claim
        self.mask = mask
        self.need = need
        self.constraints = tuple(constraints)
        self.is_exclusive = exclusive
        """False for adminAccess, which may take devices that others take too."""

    def is_short(self) -> bool:
        return self.mask.bit_count() < self.need


class Costs:
    """What the devices of a segment draw from one counter, or from a weighted sum of them: cheapest first."""

    __slots__ = ("metered", "steps", "weights")

    def __init__(self, weights: Mapping[int, int], table: CounterTable, positions: Iterable[tuple[int, int]]) -> None:
        self.weights = weights
        by_cost: dict[int, int] = {}
        for position, pool_position in positions:
            draw = table.draws[pool_position]
            amounts = draw.amounts if draw is not None else ()
            cost = sum(amount * weights.get(number, 0) for number, amount in amounts)
            if cost:
                by_cost[cost] = by_cost.get(cost, 0) | 1 << position
        self.steps = sorted(by_cost.items())
        self.metered = sum(by_cost.values())

    def left(self, amounts: Amounts) -> int:
        return sum(amounts[number] * weight for number, weight in self.weights.items())

    def too_dear(self, left: int) -> int:
        """Devices that cost more than is left."""
        return sum(mask for cost, mask in self.steps if cost > left)

    def least(self, demand: Demand) -> int:
        """The cost of the cheapest way to meet a demand."""
        need = demand.need - (demand.mask & ~self.metered).bit_count()
        total = 0
        for cost, mask in self.steps:
            if need <= 0:
                break
            number = min(need, (mask & demand.mask).bit_count())
            total += number * cost
            need -= number
        return total


class Lookahead:
    """Tests for one problem."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._costs: dict[int, list[Costs]] | None = None
        self._supply = ShareSupply(problem) if problem.layout.shareable else None
        self._layers: list[int] = []

    def narrow(self, state: State, mask: int, horizon: int) -> int:
        """Of the devices in `mask`, those that the current request may get; none if the state is a dead end.

        Requests from `horizon` on are not looked at.
        """
        if self._supply is not None:
            option = self._problem.requests[state.request].options[state.option]
            mask &= ~self._supply.exhausted(option, state)
            self._layers = self._supply.layers(state)
        demands = [self._current(state, mask)]
        for number in range(state.request + 1, horizon):
            demand = self._future(state, number)
            if demand is None or demand.is_short():
                return 0
            demands.append(demand)
        if not self._fit_counters(state, demands) or any(demand.is_short() for demand in demands):
            return 0
        if not self._fit_matches(state, demands) or not self._fit_distincts(state, demands):
            return 0
        exclusive = [self._need(demand) for demand in demands if demand.is_exclusive]
        return demands[0].mask if not exclusive or can_meet_all(exclusive) else 0

    def _current(self, state: State, mask: int) -> Demand:
        bound = self._problem.requests[state.request]
        option = bound.options[state.option]
        alternative = option.alternative
        need = option.count - state.slot
        return Demand(bound.claim, mask, need, alternative.constraints, not alternative.admin)

    def _future(self, state: State, number: int) -> Demand | None:
        """What a later request needs at least; None if it cannot be satisfied any more."""
        bound = self._problem.requests[number]
        same_claim = bound.claim == self._problem.requests[state.request].claim
        values = state.values if same_claim else None
        mask = 0
        options = []
        for option in bound.options:
            devices = self._open_to(option, bound.claim, blocked_devices(option, state, same_claim), values)
            if devices.bit_count() >= max(option.count, option.everything is not None):
                options.append(option)
                mask |= devices
        if not options:
            return None
        need = min(option.count for option in options)
        # Whichever alternative it will be, the constraints that all of them are under hold.
        common = set(options[0].alternative.constraints)
        common.intersection_update(*(option.alternative.constraints for option in options))
        exclusive = not any(option.alternative.admin for option in options)
        return Demand(bound.claim, mask, need, sorted(common), exclusive)

    def _open_to(self, option: Option, claim: int, blocked: int, values: tuple[Values, ...] | None) -> int:
        """The devices that an option could still get; for `All` either all of them or none."""
        if option.everything is not None:
            return 0 if option.out_of_reach or option.everything & blocked else option.everything
        return option.usable & ~blocked & allowed_devices(self._problem, claim, option.alternative.constraints, values)

    def _need(self, demand: Demand) -> tuple[int, int]:
        """A demand on what serves one request only: devices, and shares of shareable ones as if they were devices."""
        shareable = demand.mask & self._problem.layout.shareable
        if not shareable:
            return demand.mask, demand.need
        supply = demand.mask ^ shareable
        width = self._problem.layout.size
        for number, layer in enumerate(self._layers):
            supply |= (shareable & layer) << width * (number + 1)
        return supply, demand.need

    def _constrained(self, demands: list[Demand], distinct: bool) -> Iterator[tuple[int, int, list[Demand]]]:
        """The constraints of one kind with the demands that they hold for."""
        found: dict[tuple[int, int], list[Demand]] = {}
        for demand in demands:
            for number in demand.constraints:
                if self._problem.claims[demand.claim].constraints[number].distinct == distinct:
                    found.setdefault((demand.claim, number), []).append(demand)
        for (claim, number), concerned in found.items():
            yield claim, number, concerned

    def _fit_matches(self, state: State, demands: list[Demand]) -> bool:
        current = self._problem.requests[state.request].claim
        for claim, number, concerned in self._constrained(demands, distinct=False):
            index = self._problem.attribute(claim, number)
            seen = state.values[number] if claim == current else None
            viable = 0
            for value in index.groups if seen is None else seen:
                group = index.groups[value]
                if group & ~viable and self._fits_in(concerned, group):
                    viable |= group
            for demand in concerned:
                demand.mask &= viable
                if demand.is_short():
                    return False
        return True

    def _fits_in(self, demands: list[Demand], group: int) -> bool:
        if any((demand.mask & group).bit_count() < demand.need for demand in demands):
            return False
        inside = [Demand(d.claim, d.mask & group, d.need, (), True) for d in demands if d.is_exclusive]
        return len(inside) < 2 or can_meet_all([self._need(demand) for demand in inside])

    def _fit_distincts(self, state: State, demands: list[Demand]) -> bool:
        """A device stands for one of its values: sets without common values have different representatives."""
        current = self._problem.requests[state.request].claim
        for claim, number, concerned in self._constrained(demands, distinct=True):
            index = self._problem.attribute(claim, number)
            seen = state.values[number] if claim == current else None
            forbidden = index.having(seen or ())
            numbers = {value: position for position, value in enumerate(index.groups)}
            representatives = [1 << min(numbers[value] for value in values) if values else 0 for values in index.values]
            needs = []
            for demand in concerned:
                demand.mask &= index.present & ~forbidden
                needs.append((_members(demand.mask, representatives), demand.need))
            if not can_meet_all(needs):
                return False
        return True

    def _fit_counters(self, state: State, demands: list[Demand]) -> bool:
        if not self._problem.layout.metered:
            return True
        for segment, costs in self._all_costs().items():
            budget = state.budgets.get(segment) or self._problem.counters_left(segment)
            if budget is None:
                continue
            for cost in costs:
                left = cost.left(budget.left)
                dear = cost.too_dear(left)
                for demand in demands:
                    demand.mask &= ~dear
                own = [self._without_shares(demand) for demand in demands]
                if sum(map(cost.least, own)) > max(left, 0) or cost.least(_joined(own)) > max(left, 0):
                    return False
        return True

    def _without_shares(self, demand: Demand) -> Demand:
        """What a demand needs besides shares: as many of those as there are may serve it, and others too."""
        shareable = demand.mask & self._problem.layout.shareable
        if not shareable:
            return demand
        shares = sum((shareable & layer).bit_count() for layer in self._layers)
        need = max(demand.need - shares, 0)
        return Demand(demand.claim, demand.mask ^ shareable, need, demand.constraints, demand.is_exclusive)

    def _all_costs(self) -> dict[int, list[Costs]]:
        """By segment. Shareable devices count as free, because a second share costs nothing."""
        if self._costs is None:
            layout = self._problem.layout
            self._costs = {}
            for number, (segment, _) in enumerate(layout.segments):
                table = segment.pool.counters
                budget = self._problem.counters_left(number)
                if table is None or budget is None:
                    continue
                offset = layout.offsets[number]
                positions = [
                    (offset + position, segment.pool_position(position))
                    for position in range(len(segment.devices))
                    if segment.metered & ~segment.shareable & 1 << position
                ]
                weights: list[dict[int, int]] = [{number: 1} for number in range(len(table.sizes))]
                if len(table.sizes) > 1:
                    largest = max(*table.sizes, 1)
                    weights.append({n: _SCALE * largest // max(left, 1) for n, left in enumerate(budget.left)})
                self._costs[number] = [Costs(weight, table, positions) for weight in weights]
        return self._costs


def _joined(demands: list[Demand]) -> Demand:
    """All demands for devices of their own as one: no device serves two of them."""
    own = [demand for demand in demands if demand.is_exclusive]
    mask = 0
    for demand in own:
        mask |= demand.mask
    return Demand(0, mask, sum(demand.need for demand in own), (), True)


def _members(mask: int, representatives: list[int]) -> int:
    found = 0
    while mask:
        low = mask & -mask
        found |= representatives[low.bit_length() - 1]
        mask ^= low
    return found


def blocked_devices(option: Option, state: State, same_claim: bool) -> int:
    """Devices that the search has taken already, as far as they are closed to an option.

    adminAccess may take what another claim takes, but not the same device twice for one claim.
    """
    if option.alternative.admin:
        return state.taken if same_claim else 0
    return state.taken | state.taken_before


def allowed_devices(problem: Problem, claim: int, constraints: Iterable[int], values: tuple[Values, ...] | None) -> int:
    """The devices that the constraints of a claim leave, given what they have seen (nothing without `values`)."""
    allowed = -1
    for number in constraints:
        index = problem.attribute(claim, number)
        seen = values[number] if values is not None else None
        if seen is None:
            allowed &= index.present
        elif problem.claims[claim].constraints[number].distinct:
            allowed &= index.present & ~index.having(seen)
        else:
            allowed &= index.having(seen)
    return allowed
