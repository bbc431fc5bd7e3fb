"""Which devices a rule or patch is meant for, ready to be evaluated.

DeviceTaintSelector and DevicePatchFilter have the same five criteria, all of which must hold; they differ only in
what their absence means, which their owners decide (X-02). A CEL error does not abort anything: the device is
skipped, and the error reported (X-05, 5027-33).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from dray import cel
from dray.api.resource import DevicePatchFilter, DeviceSelector, DeviceTaintSelector
from dray.tracker.columns import Values
from dray.tracker.selecting.required_text import RequiredText, required_texts
from dray.tracker.selecting.slice_groups import Group, Row, Signature

RUNTIME_ERROR: Final = "CELRuntimeError"
COMPILE_ERROR: Final = "CELCompileError"
UNSUPPORTED_SELECTOR: Final = "UnsupportedSelector"
TOOK_TOO_LONG: Final = "runtime error: the evaluation was stopped: it took too long; it will be tried again"


class Fault(NamedTuple):
    """A selector that has no answer: not for any device, or not for some."""

    reason: str
    selector: int
    device_class: str | None
    message: str

    @property
    def text(self) -> str:
        """The message with the place of the selector."""
        where = "" if self.device_class is None else f"device class {self.device_class}: "
        return f"{where}selector #{self.selector}: {self.message}"


class Expression(NamedTuple):
    """A compiled selector and where it stands: in the object itself, or in a device class."""

    program: cel.Selector
    selector: int
    device_class: str | None


class Compiled(NamedTuple):
    """Selectors that were compiled one by one. With any fault the list as a whole can never be satisfied."""

    expressions: tuple[Expression, ...] = ()
    faults: tuple[Fault, ...] = ()


class Criteria(NamedTuple):
    """All criteria of one rule or patch. With a fault they hold for no device."""

    driver: str | None
    pool: str | None
    device: str | None
    expressions: tuple[Expression, ...]
    faults: tuple[Fault, ...]
    required: tuple[RequiredText, ...]
    """What the first expression requires; where that is not so, nothing needs to be evaluated."""
    signature: Signature


class Outcome(NamedTuple):
    """What the devices of a slice got: a mask of those selected, and masks of those that a selector failed on.

    `is_complete` is False while selectors are still being evaluated on other devices.
    """

    mask: int
    faults: tuple[tuple[Fault, int], ...] = ()
    is_complete: bool = True


NOTHING: Final = Outcome(0)

Verdict: TypeAlias = bool | Fault | None
"""None if it is not known yet."""
Memo: TypeAlias = dict[tuple[object, Values], Verdict]
"""Verdicts by scope and row. Only valid while the groups that they were made from exist."""


def compile_selectors(selectors: tuple[DeviceSelector, ...], device_class: str | None = None) -> Compiled:
    """Compile the `selectors` of a rule, a patch or a device class."""
    expressions: list[Expression] = []
    faults: list[Fault] = []
    for index, selector in enumerate(selectors):
        if selector.cel is None:
            message = "not a kind of selector that this version supports; only cel is"
            faults.append(Fault(UNSUPPORTED_SELECTOR, index, device_class, message))
            continue
        try:
            program = cel.compile(selector.cel.expression, mode="stored")
        except cel.CompileError as error:
            faults.append(Fault(COMPILE_ERROR, index, device_class, f"compilation failed: {error}"))
        else:
            expressions.append(Expression(program, index, device_class))
    return Compiled(tuple(expressions), tuple(faults))


def criteria_of(selection: DeviceTaintSelector | DevicePatchFilter, classes: Mapping[str, Compiled]) -> Criteria | None:
    """What a given selector or filter asks for; None if it refers to a class that does not exist (5055-69)."""
    of_class = Compiled()
    if selection.device_class_name is not None:
        known = classes.get(selection.device_class_name)
        if known is None:
            return None
        of_class = known
    own = compile_selectors(selection.selectors)
    expressions = of_class.expressions + own.expressions
    return Criteria(
        selection.driver,
        selection.pool,
        selection.device,
        expressions,
        of_class.faults + own.faults,
        required_texts(expressions[0].program.expression) if expressions else (),
        _signature(expressions, names=selection.device is not None),
    )


def evaluate(criteria: Criteria, group: Group, memo: Memo, backlog: cel.Backlog | None) -> Outcome:
    """The outcome for the slices of a group, except for `pool`, which groups do not know.

    With a backlog, what takes long is left to it, and the outcome is not complete until then.
    """
    if criteria.driver is not None and criteria.driver != group.driver:
        return NOTHING
    within = group.mask_of(criteria.device)
    if not within or not criteria.expressions:
        return Outcome(within) if within else NOTHING
    if criteria.required and any(required.excludes(group.sheet) for required in criteria.required):
        return NOTHING
    selected = 0
    faults: dict[Fault, int] = {}
    is_complete = True
    for row in group.rows:
        concerned = row.mask & within
        if not concerned:
            continue
        verdict = memo.get((group.scope, row.values))
        if verdict is None:
            verdict = memo[group.scope, row.values] = _judge(criteria.expressions, group, row, backlog)
        if verdict is None:
            is_complete = False
        elif isinstance(verdict, Fault):
            faults[verdict] = faults.get(verdict, 0) | concerned
        elif verdict:
            selected |= concerned
    if not selected and not faults and is_complete:
        return NOTHING
    return Outcome(selected, tuple(faults.items()), is_complete)


def _judge(expressions: tuple[Expression, ...], group: Group, row: Row, backlog: cel.Backlog | None) -> Verdict:
    if backlog is not None and backlog.is_turn_over():
        return None
    view = group.view(row.position)
    for program, selector, device_class in expressions:
        try:
            if not (program.matches(view) if backlog is None else program.matches_now(view)):
                return False
        except cel.EvaluationError as error:
            return Fault(RUNTIME_ERROR, selector, device_class, f"runtime error: {error}")
        except cel.OutOfTime:
            return Fault(RUNTIME_ERROR, selector, device_class, TOOK_TOO_LONG)
        except cel.Postponed:
            assert backlog is not None
            backlog.note(program, view)
            return None
    return True


def _signature(expressions: tuple[Expression, ...], *, names: bool) -> Signature:
    reads = [expression.program.reads for expression in expressions]
    if any(read.everything for read in reads):
        return Signature(whole=True, names=names)
    values = sorted({value for read in reads for value in read.values})
    return Signature(
        attributes=tuple([(domain, name) for kind, domain, name in values if kind == "attribute"]),
        capacity=tuple([(domain, name) for kind, domain, name in values if kind == "capacity"]),
        names=names,
    )
