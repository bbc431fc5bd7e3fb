"""What can go wrong with a selector, as exceptions with a position and a message to act on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = [
    "CompileError", "CostsTooMuch", "EvaluationError", "Issue", "NoSuchOverload", "OutOfTime", "Postponed",
    "SelectorError", "TooComplex", "WrongResult", "caret", "locate",
]  # fmt: skip

_MAX_LINE_SHOWN: Final = 160


@dataclass(frozen=True, slots=True)
class Issue:
    """One finding at a position: line and column count from 1, columns in code points."""

    message: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.message}"


class SelectorError(Exception):
    """Any failure of a selector expression."""


class CompileError(SelectorError):
    """The expression is not valid, or not allowed at API validation.

    ``message``, ``line`` and ``column`` are those of the first finding; ``issues`` has all of them in the
    order of the text.
    """

    def __init__(self, issues: tuple[Issue, ...]) -> None:
        first = issues[0]
        super().__init__(f"{first.line}:{first.column}: {first.message}")
        self.issues: Final = issues
        self.message: Final = first.message
        self.line: Final = first.line
        self.column: Final = first.column

    def render(self, expression: str) -> str:
        """Every finding with its line of the expression and a caret below the position."""
        return "\n".join(f"{issue}\n{caret(expression, issue.line, issue.column)}" for issue in self.issues)


class TooComplex(CompileError):
    """The expression is valid, but may cost more than a new one is allowed to."""


class WrongResult(CompileError):
    """The expression is valid, but not of a type that is wanted here."""


class EvaluationError(SelectorError):
    """The expression has no result for this device; this aborts an allocation, it is not "no match".

    ``cost`` is what the evaluation had used up by then.
    """

    def __init__(self, message: str, cost: int = 0) -> None:
        super().__init__(message)
        self.message: Final = message
        self.cost: Final = cost


class NoSuchOverload(EvaluationError):
    """A function or an operator met values of types that it is not made for."""


class CostsTooMuch(EvaluationError):
    """The evaluation was ended at its cost limit."""


class Postponed(SelectorError):
    """The evaluation takes longer than one that others wait for may take: it is for ``Selector.work_out``."""


class OutOfTime(SelectorError):
    """The evaluation was given up for lack of time. It may be tried again later; there is no result until then."""


def locate(text: str, offset: int) -> tuple[int, int]:
    """Line and column, both from 1, of a code point offset."""
    start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, offset - start + 1


def caret(expression: str, line: int, column: int) -> str:
    """The named line of the expression, cut to a readable width, with a caret below the column."""
    lines = expression.split("\n")
    shown = lines[line - 1] if line <= len(lines) else ""
    cut = max(0, column - _MAX_LINE_SHOWN + 20)
    shown = "".join(char if char.isprintable() else " " for char in shown[cut : cut + _MAX_LINE_SHOWN])
    return f" | {shown}\n | {' ' * (column - 1 - cut)}^"
