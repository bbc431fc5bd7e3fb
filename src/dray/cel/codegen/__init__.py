"""The fast path: a Python function for the shapes that selectors usually have.

The steps of ``dray.cel.planner`` define what an expression means and costs. For expressions built from
attribute lookups, comparisons with constants, logic and quantifiers, this package writes a function that does
the same when all goes well, with the costs mostly added up in advance. Wherever something is unusual (a missing
attribute, a value of another type, a cost beyond the limit) the function hands over to the steps, which start
again from the beginning. ``device.driver == "d" && device.attributes["d"].n > 1`` becomes, in essence:

    def evaluate(view):
        try:
            if view.error is not None: return slow(view)
            t1 = view.driver
            if t1 != "d": return False, 2 + -(-min(len(t1), 1) // 10)
            t2 = view.attributes["d"]["n"]
            if t2.__class__ is not int: return slow(view)
            if not t2 > 1: return False, 8
            return True, 8
        except KeyError:
            return slow(view)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from dray.api.quantity import Quantity
from dray.api.semver import Semver
from dray.cel.ast import Call, Comprehension, Node, is_bind
from dray.cel.call_costs import tenth
from dray.cel.codegen.attributes import Variable
from dray.cel.codegen.expressions import terms
from dray.cel.codegen.loops import LoopWriter
from dray.cel.codegen.writer import Unsupported, Value
from dray.cel.values import MISSING
from dray.cel.view import DeviceView

__all__ = ["Evaluator", "generate"]

Evaluator: TypeAlias = Callable[[DeviceView], tuple[bool, int]]

_NAMES: Final[dict[str, Any]] = {"Semver": Semver, "Quantity": Quantity, "MISSING": MISSING, "EMPTY": {}}


def generate(root: Node, slow: Evaluator) -> Evaluator | None:
    """A function that evaluates the checked expression, or None if its shape is not supported."""
    writer = _FunctionWriter()
    try:
        writer.decide(root)
    except Unsupported:
        return None
    source = (
        "def evaluate(view):\n try:\n  if view.error is not None: return slow(view)\n"
        + "\n".join(writer.lines)
        + "\n except KeyError:\n  return slow(view)\n"
    )
    namespace = {**_NAMES, "slow": slow, **writer.constants}
    exec(compile(source, "<selector>", "exec"), namespace)
    evaluate: Evaluator = namespace["evaluate"]
    return evaluate


class _FunctionWriter(LoopWriter):
    """Writes the outermost level, where the function can return as soon as the result is clear."""

    def decide(self, root: Node) -> None:
        """Write the whole function: return what the expression comes to."""
        while isinstance(root, Comprehension) and is_bind(root):
            self.scopes.append({root.accu_var: Variable(root.accu_init)})
            root = root.result
        for operator, decisive in (("_&&_", False), ("_||_", True)):
            if isinstance(root, Call) and root.function == operator:
                for term in terms(root, operator):
                    self._return_if(term, decisive, decisive)
                self.finish(str(not decisive))
                return
        self._return_if(root, False, False)
        self.finish("True")

    def _return_if(self, node: Node, when: bool, result: bool) -> None:
        """Return the result if the node has the value; go on if it has the opposite one."""
        if isinstance(node, Call) and node.function == "!_":
            self.pending += 1
            self._return_if(node.args[0], not when, result)
            return
        comparison = self.text_comparison(node)
        if comparison is not None:
            value, text, is_equal = comparison
            self._return_if_text(value, text, is_equal == when, result)
            return
        value = self.value(node)
        if value.of is bool:
            self.line(f"if {value.code if when else 'not ' + value.code}:")
        else:
            self.line(f"if {value.code} is not {not when}:")
            self.line(f" if {value.code} is not {when}: return slow(view)")
        self.indent()
        self.finish(str(result))
        self.dedent()

    def _return_if_text(self, value: Value, text: str, when_equal: bool, result: bool) -> None:
        """A comparison with a constant string, whose cost is known in advance only if it is equal."""
        cost_if_equal = tenth(len(text))
        cost_if_not = f"-(-min(len({value.code}), {len(text)}) // 10)"
        self.line(f"if {value.code} {'==' if when_equal else '!='} {text!r}:")
        self.indent()
        if when_equal:
            self.pending += cost_if_equal
            self.finish(str(result))
            self.dedent()
            self.pending -= cost_if_equal
            self.count(cost_if_not)
        else:
            self.finish(str(result), cost_if_not)
            self.dedent()
            self.pending += cost_if_equal
