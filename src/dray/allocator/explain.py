"""Why claims fit or not: looks at every device and says which check it fails first.

Nothing here is used by `allocate`, so that explaining costs nothing when it is not asked for. The order of checks is
the one in which people think: what is wanted (selectors), what is allowed (node, capacity, taints), what is free.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from dray.allocator.allocate import allocate
from dray.allocator.budget import Budget
from dray.allocator.device_check import DeviceChecker, Told, value_texts
from dray.allocator.inventory import Inventory
from dray.allocator.layout import Layout
from dray.allocator.problem import Problem
from dray.allocator.reasons import (
    ClaimReport,
    ConstraintConflict,
    DeviceReport,
    Explanation,
    NodeReport,
    NodeVerdict,
    OutOfReach,
    PoolProblem,
    RequestReport,
    SelectorFailed,
    SelectorFalse,
)
from dray.allocator.requests import Alternative, Claim, Request
from dray.allocator.results import (
    Allocated,
    BudgetExceeded,
    Failed,
    Options,
    Outcome,
    OutOfBudget,
    Refusal,
    Undecided,
    Unsatisfiable,
)
from dray.allocator.search import solve
from dray.api.references import full_name
from dray.api.resource import DeviceClass, ResourceClaim

_STATUS = {
    Allocated: "allocated",
    Unsatisfiable: "unsatisfiable",
    Failed: "error",
    BudgetExceeded: "timeout",
    Undecided: "timeout",
}
_QUICK = Options(max_steps=2_000)
"""For the side questions: how many devices are missing, which constraint is in the way."""


def explain(
    inventory: Inventory,
    classes: Mapping[str, DeviceClass],
    claims: Sequence[ResourceClaim],
    nodes: Iterable[str] | None = None,
    options: Options = _QUICK,
) -> Explanation:
    """The reason tree for claims that are to be allocated together, on the given nodes (all by default)."""
    names = list(nodes) if nodes is not None else [node.name for node in inventory.nodes]
    together = tuple(_verdict(node, allocate(inventory, classes, claims, node, options)) for node in names)
    reports = tuple(_explain_claim(inventory, classes, claim, names, options) for claim in claims)
    error = inventory.selector_fault()
    if error is None and len(claims) > 1 and not any(report.error for report in reports):
        error = _error(inventory, classes, claims, names, options)
    return Explanation(nodes=together, claims=reports, error=error)


def _error(
    inventory: Inventory,
    classes: Mapping[str, DeviceClass],
    claims: Sequence[ResourceClaim],
    nodes: Sequence[str],
    options: Options,
) -> str | None:
    """Why the claims cannot be judged, wherever they would fit."""
    outcome = allocate(inventory, classes, claims, None, options, suits=set(nodes).__contains__)
    return outcome.error if isinstance(outcome, Failed) else None


def _verdict(node: str, outcome: Outcome) -> NodeVerdict:
    message = ""
    if isinstance(outcome, Failed):
        message = outcome.error
    elif not isinstance(outcome, Allocated):
        message = outcome.message
    return NodeVerdict(node=node, status=_STATUS[type(outcome)], message=message)


def _explain_claim(
    inventory: Inventory,
    classes: Mapping[str, DeviceClass],
    claim: ResourceClaim,
    nodes: Sequence[str],
    options: Options,
) -> ClaimReport:
    name = full_name(claim)
    try:
        wanted = inventory.shape([claim], classes).claims[0]
    except Refusal as refusal:
        return ClaimReport(claim=name, error=str(refusal), missing_class=refusal.missing_class)
    verdicts = tuple(_verdict(node, allocate(inventory, classes, [claim], node, options)) for node in nodes)
    layouts = [inventory.layout(node) for node in map(inventory.nodes.get, nodes) if node is not None]
    requests = tuple(
        _explain_request(inventory, name, wanted, alternative, layouts, options)
        for request in wanted.requests
        for alternative in request.alternatives
    )
    error = _error(inventory, classes, [claim], nodes, options)
    return ClaimReport(claim=name, nodes=verdicts, requests=requests, error=error)


def _explain_request(
    inventory: Inventory,
    name: str,
    wanted: Claim,
    alternative: Alternative,
    layouts: Sequence[Layout],
    options: Options,
) -> RequestReport:
    constraints = [wanted.constraints[number] for number in alternative.constraints]
    told: Told = {}
    nodes = [
        _NodeExplainer(inventory, name, wanted, alternative, layout, options, told=told).explain() for layout in layouts
    ]
    return RequestReport(
        name=alternative.name,
        device_class=alternative.device_class.metadata.name,
        count=alternative.count,
        admin_access=alternative.admin,
        matching_attributes=tuple(c.attribute for c in constraints if not c.distinct),
        distinct_attributes=tuple(c.attribute for c in constraints if c.distinct),
        nodes=tuple(nodes if alternative.count is None else _with_own_problems(nodes)),
    )


def _with_own_problems(nodes: Sequence[NodeReport]) -> Iterable[NodeReport]:
    """Without problems of pools of other drivers than those whose devices match; of none, if nobody's do."""
    drivers = {device.driver for node in nodes for device in node.devices if _matches(device)}
    for node in nodes:
        own = tuple(one for one in node.problems if not drivers or one.driver in drivers)
        yield node if own == node.problems else msgspec.structs.replace(node, problems=own)


def _matches(device: DeviceReport) -> bool:
    """Whether the selectors want it."""
    return not isinstance(device.check, SelectorFalse | SelectorFailed | OutOfReach)


class _NodeExplainer:
    """One alternative by itself on one node."""

    def __init__(
        self,
        inventory: Inventory,
        name: str,
        wanted: Claim,
        alternative: Alternative,
        layout: Layout,
        options: Options,
        *,
        told: Told,
    ) -> None:
        self._told = told
        self._options = msgspec.structs.replace(_QUICK, until=options.until)
        self._inventory = inventory
        self._name = name
        self._wanted = wanted
        self._alternative = alternative
        self._layout = layout

    def explain(self) -> NodeReport:
        fits, error = False, None
        try:
            fits = self._fits(self._alternative)
        except Refusal as refusal:
            error = str(refusal)
        devices = self._device_reports()
        free = [report for report in devices if report.check is None]
        needed = self._alternative.count
        missing = 0 if fits or needed is None else self._missing(needed)
        blocking = () if fits else tuple(self._blocking_constraints())
        if blocking and needed is not None and len(free) >= needed:
            devices = [self._with_conflict(report, free, blocking) for report in devices]
        return NodeReport(
            node=self._layout.node_name,
            fits=fits,
            error=error,
            matching=sum(map(_matches, devices)),
            free=len(free),
            missing=missing,
            fits_without=blocking,
            problems=tuple(
                PoolProblem(
                    driver=pool.view.driver,
                    pool=pool.view.name,
                    message=pool.problem or "",
                    incomplete=pool.view.incomplete,
                )
                for pool in self._layout.problems
            ),
            devices=tuple(devices),
        )

    def _device_reports(self) -> list[DeviceReport]:
        checker = DeviceChecker(self._inventory, self._layout, self._wanted, self._alternative, self._told)
        reports = []
        for position, device in enumerate(self._layout.devices):
            values = {
                attribute: value_texts(self._layout.attribute(attribute).values[position])
                for attribute in self._attributes()
            }
            driver, pool, name = device.id
            reports.append(
                DeviceReport(
                    driver=driver,
                    pool=pool,
                    device=name,
                    node=device.access.node_name or "",
                    check=checker.check(position),
                    values={attribute: texts for attribute, texts in values.items() if texts},
                )
            )
        return reports

    def _attributes(self) -> list[str]:
        return [self._wanted.constraints[number].attribute for number in self._alternative.constraints]

    def _fits(self, alternative: Alternative) -> bool:
        """Whether an alternative alone fits. Raises Refusal."""
        request = Request(alternative.name, (alternative,), is_list=False)
        alone = Claim((request,), self._wanted.constraints, self._wanted.classes)
        try:
            return solve(Problem(self._layout, [alone], [self._name]), Budget(self._options)) is not None
        except OutOfBudget:
            return False

    def _fits_quietly(self, **changes: object) -> bool:
        try:
            return self._fits(msgspec.structs.replace(self._alternative, **changes))
        except Refusal:
            return False

    def _missing(self, needed: int) -> int:
        """How many devices too many are asked for: fewer devices fit wherever more do, so halves are tried."""
        fitting, too_many = 0, needed
        while too_many - fitting > 1:
            middle = (fitting + too_many) // 2
            if self._fits_quietly(count=middle):
                fitting = middle
            else:
                too_many = middle
        return needed - fitting

    def _blocking_constraints(self) -> Iterable[str]:
        for number in self._alternative.constraints:
            others = tuple(other for other in self._alternative.constraints if other != number)
            if self._fits_quietly(constraints=others):
                yield self._wanted.constraints[number].attribute

    def _with_conflict(
        self, report: DeviceReport, free: Sequence[DeviceReport], blocking: Sequence[str]
    ) -> DeviceReport:
        """A device that could be taken, but not together with enough others."""
        if report.check is not None:
            return report
        attribute = blocking[0]
        distinct = next(c.distinct for c in self._wanted.constraints if c.attribute == attribute)
        others: dict[str, list[str]] = {}
        for other in free:
            for value in other.values.get(attribute, ()):
                if other is not report:
                    others.setdefault(value, []).append(f"{other.driver}/{other.pool}/{other.device}")
        conflict = ConstraintConflict(
            attribute=attribute,
            distinct=distinct,
            values=report.values.get(attribute, ()),
            others={value: tuple(devices) for value, devices in others.items()},
        )
        return msgspec.structs.replace(report, check=conflict)
