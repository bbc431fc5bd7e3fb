"""ResourceSlices: published, whole, kept."""

from __future__ import annotations

import asyncio

from dray.api.resource import ResourceSlice
from dray.api.resource.slice import DEVICES_PER_SLICE
from dray.driver_test.pools import incomplete, newest
from dray.driver_test.rule import Broken, Level, NotApplicable, demand, rule
from dray.driver_test.trial import STOP_SECONDS, Trial

IDLE_SECONDS = 2.0


@rule("Slices are published for the node, in pools that are complete and have no device twice")
async def slices_published(trial: Trial) -> None:
    """Publishing does not wait for a pod, nor for registration."""
    await _published(trial)
    for found in trial.stage.slices(trial.driver):
        node = found.spec.node_name
        demand(node == trial.stage.places.node, f"slice {found.metadata.name} is for node {node}, not for the driver's")


@rule("Slices belong to the Node object, so that they go when it goes", Level.SHOULD)
async def slices_owned_by_node(trial: Trial) -> None:
    """An owner reference of kind Node (4381-181)."""
    for found in await _published(trial):
        owners = [owner for owner in found.metadata.owner_references if owner.kind == "Node"]
        demand(owners, f"slice {found.metadata.name} has no owner reference to the node")


@rule("Nothing is written while nothing changes", Level.SHOULD)
async def slices_left_alone(trial: Trial) -> None:
    """No periodic API calls (4381-243)."""
    await _published(trial)
    await asyncio.sleep(min(IDLE_SECONDS, trial.timeout))
    before = len(trial.stage.changes)
    await asyncio.sleep(min(IDLE_SECONDS, trial.timeout))
    written = len(trial.stage.changes) - before
    demand(not written, f"slices were written {written} times in {IDLE_SECONDS:g} s, although nothing had changed")


@rule("Slices that a node wiped at its start come back")
async def slices_after_wipe(trial: Trial) -> None:
    """A node removes all slices of its name when it starts (4381-154)."""
    await _published(trial)
    before = trial.stage.slices(trial.driver)
    for found in before:
        await trial.stage.delete_slice(found)
    wiped = {found.metadata.uid for found in before}

    def is_back() -> bool:
        slices = trial.stage.slices(trial.driver)
        return bool(slices) and not incomplete(slices) and all(it.metadata.uid not in wiped for it in slices)

    await trial.until(is_back, "the slices did not come back")


@rule("A slice that was changed by somebody else is put right", Level.SHOULD)
async def slices_put_right(trial: Trial) -> None:
    """The driver owns its slices; it must watch them."""
    published = await _published(trial)
    victim = next((found for found in published if found.spec.devices), None)
    if victim is None:
        raise NotApplicable("the driver has no devices")
    devices = set(trial.stage.devices(trial.driver))
    tampered = await trial.stage.empty_slice(victim)

    def is_right() -> bool:
        versions = {it.new.metadata.resource_version for it in trial.stage.changes if it.new is not None}
        slices = trial.stage.slices(trial.driver)
        return tampered in versions and set(trial.stage.devices(trial.driver)) == devices and not incomplete(slices)

    await trial.until(is_right, "the devices did not come back")


@rule("More than 128 devices are split over several slices of one pool")
async def many_devices(trial: Trial) -> None:
    """A slice holds at most 128 devices; the API server refuses more."""
    if len(trial.stage.devices((await trial.plugin()).driver)) <= DEVICES_PER_SLICE:
        if not trial.many or not trial.subject.can_restart:
            raise NotApplicable("the driver has at most 128 devices; --many NAME=VALUE would make it publish more")
        await trial.end(lambda: trial.subject.stop(STOP_SECONDS))
        await trial.start(trial.many)
    try:
        await trial.plugin()
        await trial.until(
            lambda: (
                len(trial.stage.devices(trial.driver)) > DEVICES_PER_SLICE
                and not incomplete(trial.stage.slices(trial.driver))
            ),
            "no complete pools with more than 128 devices were published, and no slice can hold more,",
        )
    finally:
        if trial.many and trial.subject.can_restart:
            await trial.end(lambda: trial.subject.stop(STOP_SECONDS))


async def _published(trial: Trial) -> list[ResourceSlice]:
    """The driver's current slices, once its pools are complete. Raises Broken, and NotApplicable from then on."""
    await trial.plugin()

    def is_complete() -> bool:
        slices = trial.stage.slices(trial.driver)
        return bool(slices) and not incomplete(slices)

    if trial.unpublished and not is_complete():
        raise NotApplicable(trial.unpublished)
    try:
        await trial.until(is_complete, "no complete pool was published")
    except Broken as error:
        problems = incomplete(trial.stage.slices(trial.driver))
        trial.unpublished = f"{error}{': ' if problems else ''}{'; '.join(problems)}"
        raise Broken(trial.unpublished) from None
    return newest(trial.stage.slices(trial.driver))
