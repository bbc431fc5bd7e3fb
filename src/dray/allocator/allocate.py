"""The entry point: which devices claims get, on one node or on the first that fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Final

from dray.allocator.aside import Verdict
from dray.allocator.budget import Budget, TurnOver
from dray.allocator.inventory import Inventory
from dray.allocator.layout import Layout, reorder
from dray.allocator.output import Chosen, build_result
from dray.allocator.plain import pick
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
from dray.allocator.search import NoWay, Search
from dray.allocator.shapes import Shape
from dray.allocator.state import State
from dray.api.references import full_name
from dray.api.resource import AllocationResult, DeviceClass, ResourceClaim
from dray.tracker.columns import positions

_DEFAULTS = Options()

HEAVY: Final = 20_000
"""The weight of a problem from which on a single step may take milliseconds: about the devices in sight times the
alternatives times the constraints."""
FEW: Final = 16
"""Criteria that are asked about all devices of a node in one go."""


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
    options: Options,
    suits: Callable[[str], bool] = _any_node,
) -> Failed | None:
    """Whether a selector or capacity of the claims fails on a node that suits: then they get nothing on others either.

    Raises nothing.
    """
    asked = 0
    aside = options.aside
    for name in inventory.suspects(shape, options.devices_judged):
        if asked == options.suspects_asked or (asked and aside is not None and aside.is_time_up):
            break
        node = inventory.nodes.get(name) if suits(name) else None
        if node is None:
            continue
        asked += 1
        outcome = _allocate_on(inventory.layout(node), shape, claims, options)
        if isinstance(outcome, Failed):
            return outcome
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
    question = _Question(layout, shape, [full_name(claim) for claim in claims], options)
    try:
        picked = None if shape.only is None else pick(layout, shape.only, options)
        if picked is not None:
            return _picked(question, picked, claims[0])
        verdict = question.answer()
        if verdict is None:
            return Undecided(node, is_searching=True)
        if verdict.is_given_up:
            return BudgetExceeded(f"node {node}: {TIMED_OUT}", node, verdict.steps)
        if verdict.no_way is not None:
            raise verdict.no_way.refusal(question.problem)
        if verdict.state is None:
            return _unsatisfiable(layout, verdict.steps)
        return Allocated(node, _results(question, verdict.state, claims), verdict.steps)
    except Refusal as refusal:
        return Failed(str(refusal), node)
    except OutOfBudget:
        return BudgetExceeded(f"node {node}: {TIMED_OUT}", node)
    except StillJudging:
        return Undecided(node)


def _unsatisfiable(layout: Layout, steps: int) -> Unsatisfiable:
    problems = tuple([pool.problem for pool in layout.problems if pool.problem is not None])
    return Unsatisfiable(problems, layout.node_name, steps)


def _picked(question: _Question, picked: int, claim: ResourceClaim) -> Allocated | Unsatisfiable:
    """What a claim gets that asks for some devices and nothing else. Raises Refusal."""
    layout, shape, only = question.layout, question.shape, question.shape.only
    if not picked:
        return _unsatisfiable(layout, 1)
    assert only is not None
    name, chosen = question.names[0], [(only, position) for position in positions(picked)]
    share_id = question.options.share_id
    result = build_result(name, claim, shape.claims[0], (0,), chosen, layout, share_id=share_id)
    return Allocated(layout.node_name, {name: result}, 1)


class _Question:
    """Whether claims fit on a node."""

    def __init__(self, layout: Layout, shape: Shape, names: Sequence[str], options: Options) -> None:
        self.layout = layout
        self.shape = shape
        self.names = names
        self.options = options
        self._aside = options.aside if options.preference is None else None
        """Orders of preference are for people who ask, and nobody else waits for."""

    @cached_property
    def problem(self) -> Problem:
        """The claims on the node. Raises Refusal, StillJudging."""
        aside, shape = self._aside, self.shape
        find = None if aside is None or len(shape.criteria) <= FEW else aside.look_at(shape, self.layout)
        return Problem(self.layout, shape.claims, self.names, find)

    def answer(self) -> Verdict | None:
        """What comes of a search; None if it goes on beside this. Raises Refusal, StillJudging."""
        aside, shape = self._aside, self.shape
        if aside is not None:
            known = aside.find(shape, self.layout)
            if known is not None and known.no_way is not None and not known.no_way.stands(self.problem):
                aside.drop(shape, self.layout)
                known = None
            if known is not None or aside.is_under_way(shape, self.layout):
                return known
        problem = self.problem
        budget = Budget(self.options, aside.between_steps if aside is not None else None)
        try:
            if aside is not None and problem.weight > HEAVY:
                raise TurnOver
            return Verdict(Search(problem).run(budget), steps=budget.steps)
        except NoWay as end:
            return Verdict(no_way=end, steps=budget.steps)
        except OutOfBudget:
            return Verdict(is_given_up=True, steps=budget.steps)
        except TurnOver:
            assert aside is not None
            aside.put(shape, problem, self.options)
            return None


def _results(question: _Question, state: State, claims: Sequence[ResourceClaim]) -> dict[str, AllocationResult]:
    requests = [(number, one) for number, claim in enumerate(question.shape.claims) for one in claim.requests]
    picks: list[list[Chosen]] = [[] for _ in claims]
    pick = state.last
    while pick is not None:
        number, request = requests[pick.request]
        picks[number].append((request.alternatives[pick.option], pick.position))
        pick = pick.before
    results: dict[str, AllocationResult] = {}
    first = 0
    for number, claim in enumerate(claims):
        wanted, name = question.shape.claims[number], question.names[number]
        chosen = state.options[first : first + len(wanted.requests)]
        first += len(wanted.requests)
        picks[number].reverse()
        results[name] = build_result(
            name, claim, wanted, chosen, picks[number], question.layout, share_id=question.options.share_id
        )
    return results
