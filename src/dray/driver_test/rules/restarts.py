"""Restarts: a driver that crashes, and one that is told to stop."""

from __future__ import annotations

from dray import cdi
from dray.driver_test.kubelet import find_sockets
from dray.driver_test.rule import Broken, Level, NotApplicable, demand, rule
from dray.driver_test.trial import STOP_SECONDS, Trial


@rule("A driver that was killed comes back and knows what it had prepared")
async def restart_with_prepared_claims(trial: Trial) -> None:
    """Sockets of the dead process are still there; claims are in use."""
    _must_restart(trial)
    claim = await trial.claim()
    (before,) = await trial.prepared(claim)
    await trial.end(trial.subject.kill)
    for socket in find_sockets(trial.stage.places.registry):
        socket.unlink()  # a node ignores what nobody listens on; here the new one is to be waited for
    await trial.start()
    (after,) = await trial.prepared(claim)
    demand(before == after, f"before the restart the answer was {before}, after it {after}")
    try:
        trial.cdi.edits(text for device in after.devices for text in device.cdi_ids)
    except cdi.CdiError as error:
        raise Broken(f"after the restart: {error}") from None
    await trial.unprepared(claim)


@rule("A claim that was prepared before a crash can be unprepared after it")
async def unprepare_after_restart(trial: Trial) -> None:
    """Nothing that a driver made may be left for good."""
    _must_restart(trial)
    before = trial.cdi_files()
    claim = await trial.claim()
    await trial.prepared(claim)
    await trial.end(trial.subject.kill)
    await trial.stage.deallocate(claim)
    for socket in find_sockets(trial.stage.places.registry):
        socket.unlink()
    await trial.start()
    await trial.unprepared(claim)
    left = trial.cdi_files() - before
    demand(not left, f"{', '.join(sorted(left))} stayed behind in the CDI directory")


@rule("A driver that is told to stop ends soon and removes its sockets", Level.SHOULD)
async def clean_stop(trial: Trial) -> None:
    """SIGTERM is how pods end."""
    _must_restart(trial)
    plugin = await trial.plugin()
    endpoint = plugin.endpoint
    await trial.settled()
    demand(
        await trial.end(lambda: trial.subject.stop(STOP_SECONDS)),
        f"the driver had not ended {STOP_SECONDS:g} s after SIGTERM",
    )
    left = [*find_sockets(trial.stage.places.registry), *([endpoint] if endpoint.exists() else [])]
    for socket in left:
        socket.unlink()
    demand(not left, f"{', '.join(socket.name for socket in left)} stayed behind")


def _must_restart(trial: Trial) -> None:
    if not trial.subject.can_restart:
        raise NotApplicable("the kit cannot restart a driver that it did not start; use --command")
