"""The agent with the gate DynamicResourceAllocation off: it has nothing to do with claims, and forgets none."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from dray.node.runtime.none import NoRuntime
from node_world import NodeWorld, local_world


def end_containers(world: NodeWorld) -> None:
    """All containers end as if they had failed."""
    assert isinstance(world.runtime, NoRuntime)
    world.runtime.orders.clear()
    for container in list(world.runtime._exits):
        world.runtime.end(container, 1)


async def restart(world: NodeWorld, *, handle_claims: bool) -> None:
    """Another agent on the same root; containers go on meanwhile."""
    await world.stop()
    world.settings = replace(world.settings, handle_claims=handle_claims)
    await world.start()


@pytest.mark.req("4381-205", "4381-208")
async def test_with_the_gate_off_containers_go_on_and_restart_without_devices() -> None:
    async with local_world() as world:
        driver = await world.driver()
        await world.publish("slice")
        claim = await world.claim("c", "gpu-0")
        pod = await world.pod("p", claims=["c"], restartPolicy="Always")
        await world.phase("p", "Running")
        assert isinstance(world.runtime, NoRuntime)
        runtime = world.runtime
        order = (pod.metadata.uid, "main")
        assert runtime.orders[order].cdi_ids == ("example.com/gpu=gpu-0",)
        runtime.orders.clear()

        await restart(world, handle_claims=False)
        assert runtime.orders == {}  # what runs was not started anew
        assert await world.slices() == ["slice"]
        end_containers(world)
        await world.until(lambda: order in runtime.orders)
        assert runtime.orders[order].cdi_ids == ()
        await world.delete("p")
        await world.gone("p")
        assert driver.unprepared == []
        assert driver.held == {claim.metadata.uid}

        await restart(world, handle_claims=True)
        await world.until(lambda: driver.unprepared == [["c"]])
        await world.until(lambda: len(world.agent.book) == 0)
