"""The entry point: which devices claims get, on one node or on the first that fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dray.allocator.budget import Budget
from dray.allocator.inventory import Inventory
from dray.allocator.layout import Layout, reorder
from dray.allocator.output import Chosen, build_result
from dray.allocator.problem import Problem
from dray.allocator.results import (
    TIMED_OUT,
    Allocated,
    BudgetExceeded,
    Failed,
    Options,
    Outcome,
    OutOfBudget,
    Refusal,
    StillJudging,
    Undecided,
    Unsatisfiable,
)
from dray.allocator.search import solve
from dray.allocator.shapes import Shape
from dray.allocator.state import State
from dray.api.references import full_name
from dray.api.resource import AllocationResult, DeviceClass, ResourceClaim

_DEFAULTS = Options()


def _any_node(_: str) -> bool:
    return True


def allocate(
    inventory: Inventory,
    classes: Mapping[str, DeviceClass],
    claims: Sequence[ResourceClaim],
    node: str | None = None,
    options: Options = _DEFAULTS,
    *,
    shape: Shape | None = None,
    suits: Callable[[str], bool] = _any_node,
) -> Outcome:
    """Devices for all `claims` together, in that order, or for none of them.

    With `node=None` those that suit are tried by name; the first on which the claims fit, or cannot be judged, decides,
    unless a selector fails on another one (`faults`). A node on which the budget runs out is passed over (4381-108).
    Nothing is changed: to count an allocation as made, give it to `Inventory.hold`. `shape` is the problem that the
    claims pose, if the caller knows it.
    """
    try:
        _require_pending(claims)
        if shape is None:
            shape = inventory.shape(claims, classes)
        fault = inventory.selector_fault()
        if fault is not None:
            return Failed(fault, node)
        if node is None:
            failed = find_fault(inventory, shape, claims, options, suits)
            return failed or _allocate_anywhere(inventory, shape, claims, options, suits)
        found = inventory.nodes.get(node)
        if found is None:
            return Failed(f"node {node} not found", node)
        return _allocate_on(inventory.layout(found), shape, claims, options)
    except Refusal as refusal:
        return Failed(str(refusal), node)


def find_fault(
    inventory: Inventory,
    shape: Shape,
    claims: Sequence[ResourceClaim],
    options: Options = _DEFAULTS,
    suits: Callable[[str], bool] = _any_node,
) -> Failed | None:
    """Whether a selector or capacity of the claims fails on a node that suits: then they get nothing on others either.

    Raises nothing.
    """
    asked = 0
    for name in inventory.suspects(shape, options.devices_judged):
        node = inventory.nodes.get(name) if suits(name) else None
        if node is None:
            continue
        outcome = _allocate_on(inventory.layout(node), shape, claims, options)
        if isinstance(outcome, Failed):
            return outcome
        asked += 1
        if asked == options.suspects_asked:
            break
    return None


def _require_pending(claims: Sequence[ResourceClaim]) -> None:
    for claim in claims:
        if claim.status.allocation is not None:
            raise Refusal(f"claim {full_name(claim)} is allocated already")


def _allocate_anywhere(
    inventory: Inventory,
    shape: Shape,
    claims: Sequence[ResourceClaim],
    options: Options,
    suits: Callable[[str], bool],
) -> Outcome:
    steps = 0
    given_up: BudgetExceeded | Undecided | None = None
    for rank in inventory.candidate_nodes(shape):
        node = inventory.nodes.at(rank)
        if not suits(node.name):
            continue
        outcome = _allocate_on(inventory.layout(node), shape, claims, options)
        if isinstance(outcome, Unsatisfiable):
            steps += outcome.steps
            shape.rule_out(rank)
        elif isinstance(outcome, BudgetExceeded):
            steps += outcome.steps
            given_up = given_up or outcome
        elif isinstance(outcome, Undecided):
            given_up = outcome
        else:
            return outcome
    return given_up or Unsatisfiable(steps=steps)


def _allocate_on(layout: Layout, shape: Shape, claims: Sequence[ResourceClaim], options: Options) -> Outcome:
    """The outcome on one node. Raises nothing."""
    node = layout.node_name
    if options.preference is not None:
        layout = reorder(layout, options.preference)
    budget = Budget(options)
    names = [full_name(claim) for claim in claims]
    try:
        problem = Problem(layout, shape.claims, names)
        state = solve(problem, budget)
        if state is None:
            problems = tuple(pool.problem for pool in layout.problems if pool.problem is not None)
            return Unsatisfiable(problems, node, budget.steps)
        return Allocated(node, _results(problem, state, claims, options), budget.steps)
    except Refusal as refusal:
        return Failed(str(refusal), node)
    except OutOfBudget:
        return BudgetExceeded(f"node {node}: {TIMED_OUT}", node, budget.steps)
    except StillJudging:
        return Undecided(node=node)


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
            problem.names[number], claim, wanted, chosen, picks[number], problem.layout, share_id=options.share_id
        )
    return results
