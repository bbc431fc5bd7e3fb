"""What came out: one result per rule."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec


class Outcome(StrEnum):
    """What became of a rule. Advice that was not followed is no failure."""

    PASSED = "passed"
    FAILED = "failed"
    ADVICE = "advice"
    SKIPPED = "skipped"


class Result(msgspec.Struct, frozen=True):
    """One rule and its outcome, with the reason unless it passed."""

    rule: str
    title: str
    outcome: Outcome
    message: str = ""
    seconds: float = 0.0

    @property
    def is_broken(self) -> bool:
        """Whether the driver breaks it."""
        return self.outcome is Outcome.FAILED


class DriverReport(msgspec.Struct, frozen=True):
    """All results for one driver."""

    driver: str
    results: tuple[Result, ...]
    cause: str = ""
    """How the driver ended by itself, which explains everything else; empty if it did not."""
    output: tuple[str, ...] = ()
    """The last lines that it said then, or else when it broke the first rule."""

    @property
    def was_tried(self) -> bool:
        """Whether any rule was."""
        return any(result.outcome is not Outcome.SKIPPED for result in self.results)

    @property
    def passed(self) -> bool:
        """Whether no rule was broken."""
        return not any(result.is_broken for result in self.results)

    def count(self, outcome: Outcome) -> int:
        """How many rules ended so."""
        return sum(result.outcome is outcome for result in self.results)

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            "driver": self.driver,
            "passed": self.passed,
            **({"cause": self.cause} if self.cause else {}),
            **({"output": list(self.output)} if self.output else {}),
            "counts": {outcome.value: self.count(outcome) for outcome in Outcome},
            "results": [msgspec.to_builtins(result) for result in self.results],
        }
