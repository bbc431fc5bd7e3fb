"""Evaluations that take longer than others can wait for: they go on beside the event loop.

A policy that has not made up its mind after some seconds of processor time has failed, which its failure policy decides
about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from dray import cel
from dray.server.processor_time import MOST_SECONDS, allowance

__all__ = ["TookTooLong", "within_time"]

T = TypeVar("T")


class TookTooLong(Exception):
    """An evaluation was given up."""


def within_time(evaluate: Callable[[cel.Budget], T]) -> T:
    """What an evaluation says, in a thread. Raises TookTooLong."""
    try:
        return evaluate(cel.Budget(allowance()))
    except cel.OutOfTime:
        raise TookTooLong(f"its expressions took more than {MOST_SECONDS:g} seconds of processor time") from None
