"""Why an expression holds for a device or not: the outcome of each of its conditions.

A debugging aid. It works from the text of the expression, so that selectors carry nothing for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dray.cel.ast import Call, Comprehension, Node, is_bind
from dray.cel.errors import locate
from dray.cel.parser import Parsed
from dray.cel.planner import plan
from dray.cel.reads import Read, find_reads
from dray.cel.values import MISSING, CelError, CostLimitExceeded, InternalError
from dray.cel.view import DeviceView

__all__ = ["Condition", "explain"]


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


def explain(expression: str, parsed: Parsed, view: DeviceView) -> list[Condition]:
    """Evaluate every condition of a checked expression by itself, in the order of the text."""
    return [_evaluate(expression, parsed, *condition, view) for condition in _conditions(parsed.root)]


def _conditions(node: Node, binding: Comprehension | None = None) -> list[tuple[Node, Comprehension | None]]:
    """The terms of the outermost ``&&``, also inside of a binding around it."""
    if isinstance(node, Call) and node.function == "_&&_":
        return [condition for arg in node.args for condition in _conditions(arg, binding)]
    if isinstance(node, Comprehension) and is_bind(node) and binding is None:
        return _conditions(node.result, node)
    return [(node, binding)]


def _evaluate(
    expression: str, parsed: Parsed, term: Node, binding: Comprehension | None, view: DeviceView
) -> Condition:
    start, end = parsed.spans.get(term.id, (0, len(expression)))
    root = term if binding is None else _bound(binding, term)
    value, error = _outcome(root, expression, view)
    seen = {read: _look_up(view, read) for read in sorted(find_reads(root).values)}
    return Condition(expression[start:end], *locate(expression, start), value, error, seen)


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


def _outcome(root: Node, expression: str, view: DeviceView) -> tuple[Any, str | None]:
    if view.error is not None:
        return None, view.error
    planned = plan(root, expression)
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
