"""The history of the pools over the whole trial. Runs last, when all has happened that may happen."""

from __future__ import annotations

from dray.driver_test.pools import generation_problems, kept_generations
from dray.driver_test.rule import Level, NotApplicable, demand, rule
from dray.driver_test.stage import SliceChange
from dray.driver_test.trial import Trial


@rule("Consumers see the old state of a pool or the new one, never a mix")
async def pool_generations(trial: Trial) -> None:
    """Every change of a slice during the trial is judged (4381-09, 5055-76)."""
    problems = generation_problems(await _history(trial), trial.stage.tampered)
    demand(not problems, "; ".join(problems[:3]))


@rule("Every change of devices gets a new generation of their pool", Level.SHOULD)
async def generation_of_every_change(trial: Trial) -> None:
    """As the API says (4381-09), though a change of one slice alone cannot be misunderstood."""
    problems = kept_generations(await _history(trial), trial.stage.tampered)
    demand(not problems, "; ".join(problems[:3]))


async def _history(trial: Trial) -> list[SliceChange]:
    """The changes of the driver's slices. Raises NotApplicable if there are none."""
    await trial.plugin()
    mine = [
        change
        for change in trial.stage.changes
        if (change.new or change.old) is not None
        and any(it is not None and it.spec.driver == trial.driver for it in change)
    ]
    if not mine:
        raise NotApplicable("the driver has not published anything")
    return mine
