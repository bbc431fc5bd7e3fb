"""Removing a driver without surprises: its devices are tainted, pods move away, and when nothing uses it, it goes."""

import asyncio
import contextlib

import pytest

from dray.controllers import Manager
from dray.reconcile import RealClock
from local_server import typed
from node_world import DRIVER, LocalWorld, local_world

RULE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceTaintRule",
    "metadata": {"name": "remove-driver"},
    "spec": {"deviceSelector": {"driver": DRIVER}, "taint": {"key": "example.com/leaving", "effect": "NoExecute"}},
}


def in_use(world: LocalWorld) -> float:
    """How many claims of the driver are in use on the node."""
    return sum(
        sample.value
        for family in world.agent.metrics.families()
        if family.name == "dra_resource_claims_in_use"
        for sample in family.samples
        if sample.labels == {"driver_name": DRIVER}
    )


@pytest.mark.req("X-12", "4381-226", "5055-55", "5055-84")
async def test_taint_the_devices_wait_until_none_is_in_use_and_remove_the_driver() -> None:
    async with local_world() as world:
        driver = await world.driver()
        for number in range(3):
            await world.claim(f"c{number}", f"gpu-{number}")
            await world.pod(f"p{number}", claims=[f"c{number}"], terminationGracePeriodSeconds=1)
        for number in range(3):
            await world.phase(f"p{number}", "Running")
        await world.until(lambda: in_use(world) == 3)
        watcher = world.server.component("kube-controller-manager")
        wanted = ("device-taint-eviction-controller", "resourceclaim-controller")
        manager = Manager(watcher, RealClock(), wanted=wanted, client_for=world.server.component)
        running = asyncio.get_running_loop().create_task(manager.run())
        try:
            await world.admin.create(typed(RULE))
            for number in range(3):
                await world.gone(f"p{number}")
            await world.until(lambda: in_use(world) == 0)
            await driver.stop()
            assert not driver.held
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
