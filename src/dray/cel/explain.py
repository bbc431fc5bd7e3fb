"""Why an expression holds for a device or not: the outcome of each of its conditions.

A debugging aid. It works from the text of the expression, so that selectors carry nothing for it; what it made of the
latest ones is kept, since one expression is explained for many devices.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dray.cel.ast import Call, Comprehension, Node, is_bind
from dray.cel.errors import locate
from dray.cel.parser import Parsed
from dray.cel.planner import Plan, plan
from dray.cel.reads import Read, find_reads
from dray.cel.values import MISSING, CelError, CostLimitExceeded, InternalError
from dray.cel.view import DeviceView

__all__ = ["Condition", "Term", "explain", "terms"]


@dataclass(frozen=True, slots=True)
class Condition:
    """One of the conditions that an expression joins by ``&&``.

    ``value`` is what it came to, or None if it failed; ``error`` says why it failed. ``seen`` has the values of
    the device that it looked at, None for those that the device does not have.
    """

    text: str
    line: int
    column: int
    value: Any
    error: str | None
    seen: dict[Read, Any]


@dataclass(frozen=True, slots=True)
class Term:
    """A condition, ready to be evaluated for any number of devices."""

    text: str
    line: int
    column: int
    planned: Plan
    reads: tuple[Read, ...]


def terms(expression: str, parsed: Parsed) -> tuple[Term, ...]:
    """The conditions of a checked expression, in the order of the text."""
    return tuple(_term(expression, parsed, *condition) for condition in _conditions(parsed.root))


def explain(terms: Iterable[Term], view: DeviceView) -> list[Condition]:
    """Evaluate every condition by itself."""
    return [_evaluate(term, view) for term in terms]


def _conditions(node: Node, binding: Comprehension | None = None) -> list[tuple[Node, Comprehension | None]]:
    """The terms of the outermost ``&&``, also inside of a binding around it."""
    if isinstance(node, Call) and node.function == "_&&_":
        return [condition for arg in node.args for condition in _conditions(arg, binding)]
    if isinstance(node, Comprehension) and is_bind(node) and binding is None:
        return _conditions(node.result, node)
    return [(node, binding)]


def _term(expression: str, parsed: Parsed, node: Node, binding: Comprehension | None) -> Term:
    start, end = parsed.spans.get(node.id, (0, len(expression)))
    root = node if binding is None else _bound(binding, node)
    reads = tuple(sorted(find_reads(root).values))
    return Term(expression[start:end], *locate(expression, start), plan(root, expression), reads)


def _evaluate(term: Term, view: DeviceView) -> Condition:
    value, error = _outcome(term.planned, view)
    seen = {read: _look_up(view, read) for read in term.reads}
    return Condition(term.text, term.line, term.column, value, error, seen)


def _bound(binding: Comprehension, result: Node) -> Node:
    """The same binding around another result."""
    return Comprehension(
        binding.id,
        binding.offset,
        iter_range=binding.iter_range,
        iter_var=binding.iter_var,
        accu_var=binding.accu_var,
        accu_init=binding.accu_init,
        condition=binding.condition,
        step=binding.step,
        result=result,
    )


def _outcome(planned: Plan, view: DeviceView) -> tuple[Any, str | None]:
    if view.error is not None:
        return None, view.error
    try:
        value = planned.run(planned.start(view.root))
    except CostLimitExceeded:
        return None, "the cost limit is exceeded"
    except InternalError as error:
        return None, str(error)
    return (None, value.message) if isinstance(value, CelError) else (value, None)


def _look_up(view: DeviceView, read: Read) -> Any:
    kind, domain, name = read
    domains = view.attributes if kind == "attribute" else view.capacity
    value = domains.get(domain, {}).get(name, MISSING)
    return None if value is MISSING else value
