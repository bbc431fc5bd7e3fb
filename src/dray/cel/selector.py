"""Compiled selectors: the straight line from text to a function that judges devices."""

from __future__ import annotations

from typing import Any, Final

from dray.api.text_memory import LONG, LONGEST, remember_texts
from dray.cel import codegen, types
from dray.cel.allowance import LIGHT_ESTIMATE, More
from dray.cel.ast import Node
from dray.cel.checker import check
from dray.cel.environment import MAX_LENGTH, Mode
from dray.cel.errors import CompileError, EvaluationError, Issue, Postponed, SelectorError, TooComplex, locate
from dray.cel.estimate import estimate_cost
from dray.cel.evaluators import Steps, Whole
from dray.cel.explain import Condition, Term, explain, terms
from dray.cel.long_calls import adds_lists, formats, takes_longer
from dray.cel.outcomes import Outcome, Outcomes
from dray.cel.parser import Parsed, parse
from dray.cel.patterns import patterns_size
from dray.cel.planner import Plan, plan
from dray.cel.reads import Reads, find_reads
from dray.cel.recursion import DEEP, TOO_DEEP, with_deep_stack, with_room
from dray.cel.validators import validate
from dray.cel.values import COST_LIMIT
from dray.cel.view import DeviceView, device_view

__all__ = ["Selector", "compile", "understood"]

_CACHE_ENTRIES: Final = 4_096
_EXPLAINED_ENTRIES: Final = 64
_LARGE_ENTRIES: Final = 64
_SMALL_PATTERNS: Final = 500
"""How large regular expressions may be, together, to be kept in numbers."""


class Selector:
    """A compiled expression. The same for all devices, and immutable but for what it remembers (``outcomes``).

    ``estimated_cost`` is the most that an evaluation can cost if the device keeps to the API's limits; ``reads``
    says which parts of a device the result depends on.

    Most evaluations take a microsecond, and some take minutes within the cost limit. Who has the time calls
    ``matches``. Who others wait for calls ``matches_now``, and leaves what is postponed to somebody who has the time,
    calls ``work_out``, and puts what came out into ``outcomes``, where ``matches_now`` finds it.
    """

    __slots__ = (
        "_evaluate", "_now", "_whole", "estimated_cost", "expression", "has_small_patterns", "is_light", "outcomes",
        "reads",
    )  # fmt: skip

    expression: Final[str]
    estimated_cost: Final[int]
    reads: Final[Reads]
    outcomes: Final[Outcomes]

    def __init__(self, expression: str, parsed: Parsed, planned: Plan, estimated_cost: int) -> None:
        """Internal: use ``compile``."""
        self.expression = expression
        self.estimated_cost = estimated_cost
        self.reads = find_reads(parsed.root)
        root = parsed.root
        is_long = estimated_cost > LIGHT_ESTIMATE or takes_longer(root) or adds_lists(root) or formats(root)
        self.is_light: Final = not is_long
        """Whether it may be tried where others wait: else one call may take long before its cost is known."""
        self.outcomes = Outcomes(self.reads, are_kept=is_long)
        self.has_small_patterns: Final = patterns_size(parsed.root) <= _SMALL_PATTERNS
        is_deep = parsed.height >= DEEP
        code = None if is_deep else codegen.generate(parsed.root)
        steps = Steps(planned, is_deep=is_deep)
        self._whole: Final = Whole(code, steps)
        self._evaluate: Final[codegen.Evaluator] = (
            steps.all if code is None else code.light(steps.all, self._whole.at_once)
        )
        self._now: Final[codegen.Evaluator] = steps.few if code is None else code.light(steps.few, _postpone)

    def evaluate(self, device: Any, driver: str) -> bool:
        """Whether the expression holds for a device of the driver; raises EvaluationError.

        The device is an entry of a ResourceSlice's ``devices``, as a dictionary or as the typed object.
        """
        return self._evaluate(device_view(device, driver))[0]

    def evaluate_with_cost(self, device: Any, driver: str) -> tuple[bool, int]:
        """The same, with what the evaluation cost."""
        return self._evaluate(device_view(device, driver))

    def matches(self, view: DeviceView) -> bool:
        """Whether the expression holds for a prepared device, however long it takes; raises EvaluationError."""
        return self._evaluate(view)[0]

    def matches_with_cost(self, view: DeviceView) -> tuple[bool, int]:
        """The same, with what the evaluation cost."""
        return self._evaluate(view)

    def matches_now(self, view: DeviceView) -> bool:
        """The same in a few milliseconds at most, or from memory.

        Raises EvaluationError, Postponed if ``work_out`` has to be called first, and OutOfTime if it was, in vain.
        """
        if self.outcomes.are_kept:
            known = self.outcomes.get(view)
            if known is None:
                raise Postponed
            if isinstance(known, SelectorError):
                raise known
            return known
        try:
            return self._now(view)[0]
        except Postponed:
            self.outcomes.are_kept = True
            raise

    def work_out(self, view: DeviceView, more: More) -> Outcome:
        """Evaluate, for ``outcomes``, from where ``matches_now`` takes it.

        It asks for ``more`` again and again; whatever is raised there ends the evaluation. Nothing is changed: this may
        be called in a thread of its own.
        """
        try:
            return self._whole.with_more(view, more)[0]
        except EvaluationError as error:
            return error.with_traceback(None)

    def explain(self, view: DeviceView) -> list[Condition]:
        """The outcome of each condition of the expression, and the values of the device that it looked at."""
        return with_deep_stack(explain, with_deep_stack(_terms, self.expression), view)

    def __repr__(self) -> str:
        return f"Selector({self.expression!r})"


def _postpone(_view: DeviceView) -> tuple[bool, int]:
    raise Postponed


def compile(expression: str, mode: Mode = "new") -> Selector:
    """Compile an expression; raises CompileError. Results are shared, up to a bounded number.

    ``new`` is what API validation accepts when an expression is first written: limits on its length and on its
    estimated cost apply. ``stored`` expressions stay valid beyond those limits (4381-52).
    """
    if mode not in ("new", "stored"):
        raise ValueError(f"unknown mode {mode!r}")
    if mode == "new" and len(expression.encode(errors="replace")) > MAX_LENGTH:
        raise _failure(f"too long: may not be more than {MAX_LENGTH} bytes")
    compiled = _compile_once(expression)
    if not isinstance(compiled, Selector):
        raise CompileError(compiled)
    if mode == "new" and compiled.estimated_cost > COST_LIMIT:
        why = (
            f"too complex: the estimated cost {compiled.estimated_cost} exceeds the limit {COST_LIMIT}; "
            "shorten lists, avoid nested comprehensions, or compare with constants"
        )
        raise TooComplex((Issue(why, 1, 1),))
    return compiled


def is_compiled(expression: str) -> bool:
    """Whether compiling the expression takes next to no time: it is short, or it was compiled lately."""
    return len(expression) <= LONGEST or expression in _large_ones


def _compile_once(expression: str) -> Selector | tuple[Issue, ...]:
    """The selector, or what is wrong with the expression."""
    known = _large_ones.get(expression)
    if known is None:
        is_short = len(expression) <= LONGEST
        known = _compile_short(expression) if is_short else _compile_now(expression)
        if len(expression) <= LONG and not (is_short and _is_small(known)):
            while len(_large_ones) >= _LARGE_ENTRIES:
                _large_ones.pop(next(iter(tuple(_large_ones)), ""), None)  # other threads compile, too
            _large_ones[expression] = known
    return known


_large_ones: Final[dict[str, Selector | tuple[Issue, ...]]] = {}
"""The latest of more than ``LONGEST`` letters, or with large regular expressions."""


def _is_small(compiled: Selector | tuple[Issue, ...]) -> bool:
    return not isinstance(compiled, Selector) or compiled.has_small_patterns


@remember_texts(_CACHE_ENTRIES, keeps=_is_small)
def _compile_short(expression: str) -> Selector | tuple[Issue, ...]:
    return _compile_now(expression)


def _compile_now(expression: str) -> Selector | tuple[Issue, ...]:
    try:
        return with_room(expression, _compile, expression)
    except CompileError as error:
        return error.issues
    except RecursionError:
        return (Issue(TOO_DEEP, 1, 1),)


def _compile(expression: str) -> Selector:
    parsed = understood(expression)
    _check_result_type(parsed.root)
    planned = plan(parsed.root, expression)
    return Selector(expression, parsed, planned, estimate_cost(parsed.root))


def understood(expression: str) -> Parsed:
    """An expression over `device`, parsed and checked. Raises CompileError, and RecursionError without room for it."""
    if not expression.isascii():
        _check_unicode(expression)
    parsed = parse(expression)
    check(parsed.root, expression)
    validate(parsed.root, expression)
    return parsed


@remember_texts(_EXPLAINED_ENTRIES)
def _terms(expression: str) -> tuple[Term, ...]:
    return terms(expression, understood(expression))


def _check_unicode(expression: str) -> None:
    try:
        expression.encode()
    except UnicodeEncodeError as error:
        issue = Issue("the expression is not valid Unicode", *locate(expression, error.start))
        raise CompileError((issue,)) from None


def _check_result_type(root: Node) -> None:
    if root.type not in (types.BOOL, types.DYN):
        raise _failure(f"must evaluate to bool or the unknown type, not {root.type.text}")


def _failure(message: str) -> CompileError:
    return CompileError((Issue(message, 1, 1),))
