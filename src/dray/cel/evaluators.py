"""How a selector is evaluated: by code that was written for it, which hands what is unusual or long to its steps.

    Selector ──▶ generated function ──▶ Whole ──▶ Steps

Nothing knows what stands to the left of it: what knows itself stays for ever once it is forgotten (`process.garbage`).
"""

from __future__ import annotations

from dray.cel import codegen
from dray.cel.allowance import LIGHT_COST, LIGHT_STEPS, More, endless, postpone
from dray.cel.errors import EvaluationError, Postponed
from dray.cel.planner import Plan
from dray.cel.values import COST_LIMIT, CelError, CostLimitExceeded, Optional, type_name
from dray.cel.view import DeviceView


class Steps:
    """Evaluates step by step, whatever the expression is."""

    __slots__ = ("_is_deep", "_plan")

    def __init__(self, planned: Plan, *, is_deep: bool) -> None:
        self._plan = planned
        self._is_deep = is_deep

    def all(self, view: DeviceView, more: More = endless) -> tuple[bool, int]:
        """To the end, as long as there is more to spend; raises EvaluationError."""
        return self._run(view, more, 0, COST_LIMIT)

    def few(self, view: DeviceView) -> tuple[bool, int]:
        """To the end if it is near; raises EvaluationError or Postponed."""
        return self._run(view, postpone, LIGHT_STEPS, LIGHT_COST)

    def _run(self, view: DeviceView, more: More, work: int, cost_limit: int) -> tuple[bool, int]:
        if view.error is not None:
            raise EvaluationError(view.error)
        frame = self._plan.start(view.root, more=more, work=work, cost_limit=cost_limit)
        try:
            value = self._plan.finish(frame, is_deep=self._is_deep)
        except CostLimitExceeded:
            if cost_limit < COST_LIMIT:
                raise Postponed from None
            message = f"the evaluation was stopped: it costs more than {COST_LIMIT}"
            raise EvaluationError(message, frame.ledger.cost) from None
        cost = frame.ledger.cost
        while isinstance(value, Optional) and value.has_value:
            value = value.value
        if isinstance(value, CelError):
            raise EvaluationError(value.message, cost)
        if value.__class__ is not bool:
            raise EvaluationError(f"the result is of type {type_name(value)}, not bool", cost)
        return value, cost


class Whole:
    """Evaluates to the end, by generated code if there is some. That is made when it is needed, for it hardly is."""

    __slots__ = ("_code", "_made", "_steps")

    def __init__(self, code: codegen.Generated | None, steps: Steps) -> None:
        self._code = code
        self._steps = steps
        self._made: codegen.WholeEvaluator | None = None

    def with_more(self, view: DeviceView, more: More) -> tuple[bool, int]:
        """It asks for ``more`` again and again; raises EvaluationError."""
        if self._made is None:
            self._made = self._steps.all if self._code is None else self._code.whole(self._steps.all)
        return self._made(view, more)

    def at_once(self, view: DeviceView) -> tuple[bool, int]:
        """However long it takes; raises EvaluationError."""
        return self.with_more(view, endless)
