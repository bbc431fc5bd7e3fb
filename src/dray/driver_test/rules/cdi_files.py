"""CDI: what the ids in an answer mean to a container runtime."""

from __future__ import annotations

from dray import cdi
from dray.api.resource import ResourceClaim
from dray.driver_test.kubelet import Answer
from dray.driver_test.rule import Broken, Level, NotApplicable, demand, rule
from dray.driver_test.trial import Trial


@rule("CDI ids are qualified, and their devices are in valid spec files")
async def cdi_ids_are_valid(trial: Trial) -> None:
    """By the rules of the CDI schema (4381-161)."""
    _, answer = await _prepared(trial)
    _edits(trial, _ids(answer))
    demand(not trial.cdi.problems, f"a spec file is not valid: {'; '.join(trial.cdi.problems.values())}")


@rule("Each claim has CDI devices of its own; ending one leaves the other usable")
async def cdi_devices_are_exclusive(trial: Trial) -> None:
    """What one claim may use must not reach the containers of another; what all of them get (libraries) may."""
    one, first = await _prepared(trial)
    _, second = await _prepared(trial)
    shared = set(_ids(first)) & set(_ids(second))
    demand(
        shared < set(_ids(first)) and shared < set(_ids(second)),
        f"of two claims with different devices one got only what the other got, too: {', '.join(sorted(shared))}",
    )
    await trial.unprepared(one)
    try:
        _edits(trial, _ids(second))
    except Broken as error:
        raise Broken(f"after another claim was unprepared: {error}") from None


@rule("CDI devices that were made for a claim are removed with it", Level.SHOULD)
async def cdi_devices_are_removed(trial: Trial) -> None:
    """Spec files must not pile up."""
    before = trial.cdi_files()
    claim, _ = await _prepared(trial)
    await trial.unprepared(claim)
    left = trial.cdi_files() - before
    demand(not left, f"{', '.join(sorted(left))} stayed behind")


async def _prepared(trial: Trial) -> tuple[ResourceClaim, Answer]:
    """A prepared claim with CDI ids. Raises NotApplicable if the driver gives none."""
    claim = await trial.claim()
    (answer,) = await trial.prepared(claim)
    if not _ids(answer):
        raise NotApplicable("the driver answers without CDI ids")
    return claim, answer


def _ids(answer: Answer) -> list[str]:
    return [text for device in answer.devices for text in device.cdi_ids]


def _edits(trial: Trial, ids: list[str]) -> cdi.ContainerEdits:
    try:
        return trial.cdi.edits(ids)
    except cdi.CdiError as error:
        raise Broken(str(error)) from None
