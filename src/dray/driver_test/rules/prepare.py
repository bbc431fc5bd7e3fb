"""NodePrepareResources."""

from __future__ import annotations

import asyncio
import contextlib
import uuid

from dray.api.references import ObjectRef
from dray.driver_test.kubelet import CallFailed
from dray.driver_test.rule import Broken, NotApplicable, demand, rule
from dray.driver_test.stage import NAMESPACE, REQUEST
from dray.driver_test.trial import Trial
from dray.plugins import contracts

CALLS = 5
STRANGE_UIDS = ("../../../tmp/x", "a/b", "x" * 500, "\N{SNOWMAN}")


@rule("Prepare answers with the allocated device, for the request that it was allocated for")
async def prepare_allocated_devices(trial: Trial) -> None:
    """The driver fetches the claim and takes its devices from there."""
    await trial.plugin()
    claim = await trial.unallocated_claim()
    allocated = await trial.allocate(claim)
    (answer,) = await trial.prepared(claim)
    devices = [(device.pool, device.device) for device in answer.devices]
    demand(devices == [allocated], f"device {'/'.join(allocated)} was allocated, and the answer has {answer}")
    for device in answer.devices:
        demand(
            not device.requests or REQUEST in device.requests,
            f'the device was allocated for request "{REQUEST}", and the answer says {", ".join(device.requests)}',
        )


@rule("Prepare can be repeated, with the same answer")
async def prepare_is_idempotent(trial: Trial) -> None:
    """A node that restarted simply calls again (4381-163)."""
    claim = await trial.claim()
    (first,) = await trial.prepared(claim)
    (second,) = await trial.prepared(claim)
    demand(first == second, f"the first answer was {first}, the second {second}")


@rule("All versions give the same answer")
async def versions_agree(trial: Trial) -> None:
    """v1 and v1beta1 are identical in content (4381-152)."""
    plugin = await trial.plugin()
    versions = [version for version in plugin.versions if version in contracts.DRA_SERVICES]
    if len(versions) < 2:
        raise NotApplicable("only one version is advertised")
    claim = await trial.claim()
    answers = [(await trial.prepared(claim, version=version))[0] for version in versions]
    demand(answers[0] == answers[1], f"{versions[0]} answers {answers[0]}, {versions[1]} answers {answers[1]}")


@rule("Prepare has an entry for every claim of a call")
async def prepare_answers_every_claim(trial: Trial) -> None:
    """A node calls once for all claims of a pod (4381-167)."""
    one, two = await trial.claim(), await trial.claim()
    plugin = await trial.plugin()
    answers = await plugin.prepare([ObjectRef.of(one), ObjectRef.of(two)])
    wanted = {one.metadata.uid, two.metadata.uid}
    demand(set(answers) == wanted, f"two claims were asked for, and the answer has {len(answers)} entries")
    await trial.prepared(one, two)


@rule("Prepare refuses a claim that does not exist, is not allocated, or is another one of the same name")
async def prepare_refuses_other_claims(trial: Trial) -> None:
    """The driver must look, and compare the uid: nothing may be prepared that was not allocated."""
    missing = ObjectRef(NAMESPACE, "no-such-claim", str(uuid.uuid4()))
    demand(await trial.refused(missing), "a claim that does not exist was prepared")
    unallocated = await trial.unallocated_claim()
    demand(await trial.refused(ObjectRef.of(unallocated)), "a claim that is not allocated was prepared")
    claim = await trial.claim()
    replaced = ObjectRef(claim.metadata.namespace, claim.metadata.name, str(uuid.uuid4()))
    demand(await trial.refused(replaced), "a claim was prepared whose uid is not the one that was asked for")


@rule("Prepare succeeds after it failed, once the reason is gone")
async def prepare_after_failure(trial: Trial) -> None:
    """A node tries again and again (4381-165)."""
    await trial.plugin()
    claim = await trial.unallocated_claim()
    demand(await trial.refused(ObjectRef.of(claim)), "a claim that is not allocated was prepared")
    await trial.allocate(claim)
    try:
        await trial.prepared(claim)
    except Broken as error:
        raise Broken(f"the claim was refused while it was not allocated, and is still refused after: {error}") from None


@rule("Concurrent calls do not disturb each other")
async def prepare_concurrently(trial: Trial) -> None:
    """Several pods start at once; two calls for one claim may overlap after a timeout."""
    claim = await trial.claim()
    claims = [claim] * CALLS
    with contextlib.suppress(NotApplicable):  # one device is enough for calls that overlap
        claims.append(await trial.claim())
    answers = [answer for (answer,) in await asyncio.gather(*(trial.prepared(each) for each in claims))]
    same = answers[:CALLS]
    demand(all(answer == same[0] for answer in same), "concurrent calls for one claim got different answers")


@rule("Strange input is refused and does no harm")
async def strange_claims(trial: Trial) -> None:
    """Names and uids are part of paths in many drivers."""
    for uid in STRANGE_UIDS:
        await trial.refused(ObjectRef(NAMESPACE, "no-such-claim", uid))
    plugin = await trial.plugin()
    try:
        await plugin.prepare([])
    except CallFailed as error:
        why = trial.subject.problem() or str(error)
        raise Broken(f"after calls with strange uids the driver does not answer any more: {why}") from None
