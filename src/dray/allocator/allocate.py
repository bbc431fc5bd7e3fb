"""The entry point: which devices claims get, on one node or on the first that fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dray.allocator.budget import Budget
from dray.allocator.inventory import Inventory
from dray.allocator.layout import Layout, reorder
from dray.allocator.output import Chosen, build_result
from dray.allocator.problem import Problem
from dray.allocator.requests import claim_key
from dray.allocator.results import (
    DOES_NOT_FIT,
    TIMED_OUT,
    Allocated,
    BudgetExceeded,
    Failed,
    Options,
    Outcome,
    OutOfBudget,
    Refusal,
    Unsatisfiable,
)
from dray.allocator.search import solve
from dray.allocator.shapes import Shape
from dray.allocator.state import State
from dray.api.resource import AllocationResult, DeviceClass, ResourceClaim

_DEFAULTS = Options()


def allocate(
    inventory: Inventory,
    classes: Mapping[str, DeviceClass],
    claims: Sequence[ResourceClaim],
    node: str | None = None,
    options: Options = _DEFAULTS,
    shape: Shape | None = None,
) -> Outcome:
    """Devices for all `claims` together, in that order, or for none of them.

    With `node=None` nodes are tried by name; the first on which the claims fit, or cannot be judged, decides. A node
    on which the budget runs out is passed over (4381-108). Nothing is changed: to count an allocation as made, give it
    to `Inventory.hold`. `shape` is the problem that the claims pose, if the caller knows it.
    """
    try:
        _require_pending(claims)
        if shape is None:
            shape = inventory.shape(claims, classes)
        fault = inventory.selector_fault()
        if fault is not None:
            return Failed(fault, node)
        if node is None:
            return _allocate_anywhere(inventory, shape, claims, options)
        found = inventory.nodes.get(node)
        if found is None:
            return Failed(f"node {node} not found", node)
        return _allocate_on(inventory.layout(found), shape, claims, options)
    except Refusal as refusal:
        return Failed(str(refusal), node)


def _require_pending(claims: Sequence[ResourceClaim]) -> None:
    for claim in claims:
        if claim.status.allocation is not None:
            raise Refusal(f"claim {claim_key(claim)} is allocated already")


def _allocate_anywhere(
    inventory: Inventory, shape: Shape, claims: Sequence[ResourceClaim], options: Options
) -> Outcome:
    steps = 0
    given_up: BudgetExceeded | None = None
    for rank in inventory.candidate_nodes(shape):
        outcome = _allocate_on(inventory.layout(inventory.nodes.at(rank)), shape, claims, options)
        if isinstance(outcome, Unsatisfiable):
            steps += outcome.steps
            shape.rule_out(rank)
        elif isinstance(outcome, BudgetExceeded):
            steps += outcome.steps
            given_up = given_up or outcome
        else:
            return outcome
    return given_up or Unsatisfiable(steps=steps)


def _allocate_on(layout: Layout, shape: Shape, claims: Sequence[ResourceClaim], options: Options) -> Outcome:
    """The outcome on one node. Raises nothing."""
    node = layout.node_name
    if options.preference is not None:
        layout = reorder(layout, options.preference)
    budget = Budget(options)
    names = [claim_key(claim) for claim in claims]
    try:
        problem = Problem(layout, shape.claims, names)
        state = solve(problem, budget)
        if state is None:
            return Unsatisfiable(_why(layout), node, budget.steps)
        return Allocated(node, _results(problem, state, claims, options), budget.steps)
    except Refusal as refusal:
        return Failed(str(refusal), node)
    except OutOfBudget:
        return BudgetExceeded(f"node {node}: {TIMED_OUT}", node, budget.steps)


def _why(layout: Layout) -> str:
    """The short reason. Devices of unusable pools could have helped, so these are named (SVS-50)."""
    problems = [pool.problem for pool in layout.problems if pool.problem is not None]
    return f"{DOES_NOT_FIT}: {'; '.join(problems)}" if problems else DOES_NOT_FIT


def _results(
    problem: Problem, state: State, claims: Sequence[ResourceClaim], options: Options
) -> dict[str, AllocationResult]:
    picks: list[list[Chosen]] = [[] for _ in claims]
    pick = state.last
    while pick is not None:
        bound = problem.requests[pick.request]
        picks[bound.claim].append((bound.options[pick.option].alternative, pick.position))
        pick = pick.before
    results: dict[str, AllocationResult] = {}
    first = 0
    for number, claim in enumerate(claims):
        wanted = problem.claims[number]
        chosen = state.options[first : first + len(wanted.requests)]
        first += len(wanted.requests)
        picks[number].reverse()
        results[problem.names[number]] = build_result(
            problem.names[number], claim, wanted, chosen, picks[number], problem.layout, options.share_id
        )
    return results
