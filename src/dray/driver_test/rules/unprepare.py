"""NodeUnprepareResources."""

from __future__ import annotations

import uuid

from dray.api.references import ObjectRef
from dray.driver_test.kubelet import CallFailed
from dray.driver_test.rule import Broken, demand, rule
from dray.driver_test.stage import NAMESPACE
from dray.driver_test.trial import Trial


@rule("Unprepare can be repeated")
async def unprepare_is_idempotent(trial: Trial) -> None:
    """A node that restarted does not know whether it called (4381-172)."""
    claim = await trial.claim()
    await trial.prepared(claim)
    await trial.unprepared(claim)
    await trial.unprepared(claim)


@rule("Unprepare of a claim that was never prepared succeeds, with an entry for it")
async def unprepare_unknown_claim(trial: Trial) -> None:
    """There is nothing to undo; an error would keep a pod from ending."""
    plugin = await trial.plugin()
    unknown = ObjectRef(NAMESPACE, "never-prepared", str(uuid.uuid4()))
    try:
        answers = await plugin.unprepare([unknown])
    except CallFailed as error:
        raise Broken(f"it failed with {error}") from None
    demand(unknown.uid in answers, "the claim is not in the answer; it must have an entry for every claim")
    demand(not answers[unknown.uid].error, f"it failed: {answers[unknown.uid].error}")


@rule("Unprepare works although the claim is gone from the API server")
async def unprepare_deleted_claim(trial: Trial) -> None:
    """Claims can be removed by force while in use; the driver must remember (4381-132)."""
    claim = await trial.claim()
    await trial.prepared(claim)
    await trial.stage.deallocate(claim)
    await trial.unprepared(claim)


@rule("Unprepare works after prepare failed")
async def unprepare_after_failure(trial: Trial) -> None:
    """A node cleans up after every attempt."""
    claim = await trial.unallocated_claim()
    demand(await trial.refused(ObjectRef.of(claim)), "a claim that is not allocated was prepared")
    await trial.unprepared(claim)


@rule("A claim can be prepared again after unprepare")
async def prepare_again(trial: Trial) -> None:
    """The next pod of a claim comes later."""
    claim = await trial.claim()
    await trial.prepared(claim)
    await trial.unprepared(claim)
    await trial.prepared(claim)


@rule("A device can be given to another claim although unprepare was never called")
async def reuse_without_unprepare(trial: Trial) -> None:
    """After the loss of a node claims are deallocated without it (4381-142)."""
    await trial.plugin()
    first = await trial.unallocated_claim()
    device = await trial.allocate(first)
    await trial.prepared(first)
    await trial.stage.deallocate(first)
    second = await trial.unallocated_claim()
    await trial.stage.allocate(second, trial.driver, [device])
    await trial.prepared(second)
