"""Writing the statements of a generated function, and keeping count of what they cost."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from dray.cel.values import COST_LIMIT, MISSING

__all__ = ["LIMIT_CHECK", "StatementWriter", "Unsupported", "Value"]

_MAX_STATEMENTS: Final = 400
_MAX_INDENT: Final = 60

LIMIT_CHECK: Final = "#limit"
"""Stands for what is to be done at the end of a round of a loop."""


class Unsupported(Exception):
    """The expression has a shape that is left to the steps."""


class Value(NamedTuple):
    """A computed value: the Python expression for it, and its class if that is certain.

    ``is_attribute`` tells what costs 1 less as the branch of a conditional. ``constant`` is the value itself.
    """

    code: str
    of: type | None
    is_attribute: bool = False
    constant: Any = MISSING


class StatementWriter:
    """Lines of code, and the cost of what was written so far.

    ``pending`` is the part of the cost that is known in advance. It is only added to the function's counter, the
    variable ``c``, where the paths of the function part or join; often there is no counter at all.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {}
        self.pending = 0
        self._names = 0
        self._indent = "  "
        self._has_counter = False

    def line(self, code: str) -> None:
        if len(self.lines) > _MAX_STATEMENTS or len(self._indent) > _MAX_INDENT:
            raise Unsupported
        self.lines.append(self._indent + code)

    def indent(self) -> None:
        self._indent += " "

    def dedent(self, levels: int = 1) -> None:
        self._indent = self._indent[:-levels]

    def name(self, code: str, of: type | None, *, is_attribute: bool = False) -> Value:
        """Give the value of an expression a name."""
        name = self.new_name()
        self.line(f"{name} = {code}")
        return Value(name, of, is_attribute)

    def new_name(self) -> str:
        self._names += 1
        return f"t{self._names}"

    def constant(self, value: Any) -> str:
        """A name for an object that the function uses."""
        name = f"k{len(self.constants)}"
        self.constants[name] = value
        return name

    def require(self, value: Value, of: type) -> None:
        """Hand over to the steps unless the value is of the class."""
        if value.of is of:
            return
        if value.of is not None:
            raise Unsupported
        self.line(f"if {value.code}.__class__ is not {of.__name__}: return slow(view)")

    def use_counter(self) -> None:
        """Make sure that there is a counter for costs that are not known in advance."""
        if not self._has_counter:
            self._has_counter = True
            self.lines.insert(0, "  c = 0")

    def count(self, code: str) -> None:
        """Add a cost that is only known at run time."""
        self.use_counter()
        self.line(f"c += {code}")

    def settle(self) -> None:
        """Add what is known in advance to the counter."""
        if self.pending:
            self.count(str(self.pending))
            self.pending = 0

    def finish(self, value: str, extra: str = "") -> None:
        """Return a result with the cost so far and an extra cost; beyond the limit the steps take over."""
        if not self._has_counter and not extra:
            self.line(f"return {value}, {self.pending}")
            return
        parts = [part for part in (str(self.pending or ""), "c" if self._has_counter else "", extra) if part]
        self.line(f"total = {' + '.join(parts)}")
        self.line(f"return ({value}, total) if total <= {COST_LIMIT} else slow(view)")

    def check_limit(self) -> None:
        """Look whether the function may go on, at the end of a round of a loop."""
        self.line(LIMIT_CHECK)
