"""The history of the pools over the whole trial. Runs last, when all has happened that may happen."""

from __future__ import annotations

from dray.driver_test.pools import generation_problems
from dray.driver_test.rule import NotApplicable, demand, rule
from dray.driver_test.trial import Trial


@rule("Pools change with their generation: consumers see the old state or the new one, never a mix")
async def pool_generations(trial: Trial) -> None:
    """Every change of a slice during the trial is judged (4381-09, 5055-76)."""
    await trial.plugin()
    mine = [
        change
        for change in trial.stage.changes
        if (change.new or change.old) is not None
        and any(it is not None and it.spec.driver == trial.driver for it in change)
    ]
    if not mine:
        raise NotApplicable("the driver has not published anything")
    problems = generation_problems(mine, trial.stage.tampered)
    demand(not problems, "; ".join(problems[:3]))
