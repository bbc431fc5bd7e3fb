"""Evaluations that take longer than others can wait for: they go on beside the event loop.

Kubernetes bounds what an expression may cost, and that says little about time. Here a policy that has not made up its
mind after some seconds has failed, which its failure policy decides about.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from dray import cel

__all__ = ["TookTooLong", "within_time"]

MOST_SECONDS: Final = 5.0
STEPS: Final = 2_000
"""How much is done before the time is looked at."""

T = TypeVar("T")


class TookTooLong(Exception):
    """An evaluation was given up."""


def within_time(evaluate: Callable[[cel.Budget], T]) -> T:
    """What an evaluation says, in a thread. Raises TookTooLong."""
    deadline = time.monotonic() + MOST_SECONDS

    def more() -> int:
        if time.monotonic() >= deadline:
            raise cel.OutOfTime
        return STEPS

    try:
        return evaluate(cel.Budget(more))
    except cel.OutOfTime:
        raise TookTooLong(f"its expressions took more than {MOST_SECONDS:g} seconds") from None
