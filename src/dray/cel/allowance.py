"""How much an evaluation may do before it has to ask whether it may go on.

Costs are Kubernetes' measure, and they say little about time: ``&&``, constants and ``in`` are free, so that a loop
within the cost limit may take minutes. Work is ours: about one unit per step of an expression, counted once per round
of a loop, since next to nothing but loops takes long. An evaluation gets some work in advance, and asks for more when
it is used up; whoever is asked gives more, or raises, which ends the evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from dray.cel.errors import Postponed

__all__ = ["LIGHT_COST", "LIGHT_ESTIMATE", "LIGHT_STATEMENTS", "LIGHT_STEPS", "More", "endless", "postpone"]

More: TypeAlias = Callable[[], int]
"""Asked for more work. Returns how much; raises OutOfTime or Postponed."""

LIGHT_STATEMENTS: Final = 50_000
"""What a generated function may do at once, in statements: a millisecond or so."""
LIGHT_STEPS: Final = 2_000
LIGHT_COST: Final = 20_000
"""The same where an expression is evaluated by steps, in steps and in costs: a long list costs before it is walked."""

LIGHT_ESTIMATE: Final = 5_000
"""What an expression may be estimated to cost to be tried at once: calls are charged for when they are over."""


def endless() -> int:
    """Whoever asks may go on, for as long as the cost limit allows."""
    return 1 << 62


def postpone() -> int:
    """Nobody may go on here and now."""
    raise Postponed
