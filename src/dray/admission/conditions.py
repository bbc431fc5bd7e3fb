"""Match conditions: expressions that all must hold for a webhook or a policy to be asked at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dray import cel
from dray.admission.environments import Offers
from dray.admission.evaluation import Compiled, Evaluation, ExpressionFailed, Given, OutOfBudget, compile_expression
from dray.api.generated.admissionregistration import MatchCondition
from dray.cel.types import BOOL

__all__ = ["Conditions", "ConditionsFailed"]

COST_BUDGET: Final = 2_500_000
"""What all conditions of a webhook or policy may cost for one request."""


class ConditionsFailed(Exception):
    """Nobody can say whether the conditions hold."""


class Conditions:
    """The conditions of a webhook or a policy, compiled."""

    def __init__(self, conditions: Sequence[MatchCondition], offers: Offers) -> None:
        self._compiled: tuple[Compiled, ...] = tuple(
            compile_expression(condition.expression, offers, {}, BOOL) for condition in conditions
        )

    def __bool__(self) -> bool:
        return bool(self._compiled)

    def hold(self, given: Given, params: object, budget: cel.Budget) -> bool:
        """Whether all hold. One that is false decides, whatever is wrong with the others. Raises ConditionsFailed."""
        evaluation = Evaluation(given, params, budget=budget, cost_budget=COST_BUDGET)
        faults: list[str] = []
        for compiled in self._compiled:
            try:
                if evaluation.run(compiled) is not True:
                    return False
            except ExpressionFailed as error:
                faults.append(str(error))
            except OutOfBudget as error:
                raise ConditionsFailed(str(error)) from None
        if faults:
            raise ConditionsFailed(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")
        return True
