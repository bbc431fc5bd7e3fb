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
from dray.tracker.projection import Group, Signature
from dray.tracker.required_text import RequiredText, required_texts

RUNTIME_ERROR: Final = "CELRuntimeError"
COMPILE_ERROR: Final = "CELCompileError"
UNSUPPORTED_SELECTOR: Final = "UnsupportedSelector"


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
    """What the devices of a slice got: a mask of those selected, and masks of those that a selector failed on."""

    mask: int
    faults: tuple[tuple[Fault, int], ...] = ()


NOTHING: Final = Outcome(0)

Verdict: TypeAlias = bool | Fault
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


def evaluate(criteria: Criteria, group: Group, memo: Memo) -> Outcome:
    """The outcome for the slices of a group, except for `pool`, which groups do not know."""
    if criteria.driver is not None and criteria.driver != group.driver:
        return NOTHING
    within = group.mask_of(criteria.device)
    if not within or not criteria.expressions:
        return Outcome(within) if within else NOTHING
    if criteria.required and any(required.excludes(group.sheet) for required in criteria.required):
        return NOTHING
    selected = 0
    faults: dict[Fault, int] = {}
    for row in group.rows:
        concerned = row.mask & within
        if not concerned:
            continue
        verdict = memo.get((group.scope, row.values))
        if verdict is None:
            verdict = memo[group.scope, row.values] = _judge(criteria.expressions, group.view(row.position))
        if isinstance(verdict, Fault):
            faults[verdict] = faults.get(verdict, 0) | concerned
        elif verdict:
            selected |= concerned
    return Outcome(selected, tuple(faults.items())) if selected or faults else NOTHING


def _judge(expressions: tuple[Expression, ...], view: cel.DeviceView) -> Verdict:
    for program, selector, device_class in expressions:
        try:
            if not program.matches(view):
                return False
        except cel.EvaluationError as error:
            return Fault(RUNTIME_ERROR, selector, device_class, f"runtime error: {error}")
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
