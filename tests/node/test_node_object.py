"""The node registers itself, stays alive in the eyes of others, and does only what a node may."""

from __future__ import annotations

import asyncio

import pytest

from dray.api.generated.coordination import Lease
from dray.api.generated.core import Node
from dray.api.registry import by_kind, kinds
from dray.api.status import ApiError
from dray.node.agent import AgentError
from dray.node.heartbeat import Heartbeat
from dray.reconcile import VirtualClock
from dray.server.security.authorization import Attributes
from local_server import typed
from node_world import CLAIMS, NODE, NodeWorld, local_world

NODES = by_kind("v1", "Node")
RULES = next(kind for kind in kinds() if kind.kind == "DeviceTaintRule")
LEASES = by_kind("coordination.k8s.io/v1", "Lease")


async def node(world: NodeWorld) -> Node:
    found = await world.admin.get(NODES, "", NODE)
    assert isinstance(found, Node)
    return found


async def test_the_node_is_there_and_ready_with_what_it_has() -> None:
    async with local_world() as world:
        found = await node(world)
        conditions = {one.type: one.status for one in found.status.conditions}
        assert conditions == {
            "Ready": "True",
            "MemoryPressure": "False",
            "DiskPressure": "False",
            "PIDPressure": "False",
        }
        assert {"cpu", "memory", "pods", "ephemeral-storage"} <= found.status.allocatable.keys()
        assert found.metadata.labels["kubernetes.io/hostname"] == NODE
        assert [one.address for one in found.status.addresses] == ["10.0.0.1", NODE]


async def test_an_existing_node_keeps_what_others_wrote() -> None:
    async with local_world(started=False) as world:
        meta = {"name": NODE, "labels": {"rack": "7"}, "annotations": {"note": "x"}}
        spec = {"unschedulable": True}
        await world.admin.create(typed({"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec}))
        await world.start()
        found = await node(world)
        assert (found.metadata.labels["rack"], found.metadata.annotations["note"]) == ("7", "x")
        assert found.spec.unschedulable


async def test_a_simulated_node_is_not_taken_over() -> None:
    async with local_world(started=False) as world:
        meta = {"name": NODE, "labels": {"dray.dev/simulated": "true"}}
        await world.admin.create(typed({"apiVersion": "v1", "kind": "Node", "metadata": meta}))
        with pytest.raises(AgentError, match="node node-1 is simulated"):
            await world.start()


async def test_the_lease_is_renewed_and_a_deleted_node_comes_back() -> None:
    async with local_world(started=False) as world:
        clock = VirtualClock()
        heartbeat = Heartbeat(world.node_client, NODE, "10.0.0.1", "none", clock)
        await heartbeat.register()
        task = asyncio.get_running_loop().create_task(heartbeat.run())
        times = []
        for _ in range(3):
            await clock.advance(10)
            lease = await world.admin.get(LEASES, "kube-node-lease", NODE)
            assert isinstance(lease, Lease)
            assert lease.spec.holder_identity == NODE
            times.append(lease.spec.renew_time)
        assert len(set(times)) == 3
        assert [owner.kind for owner in lease.metadata.owner_references] == ["Node"]
        await world.admin.delete(NODES, "", NODE)
        await world.admin.delete(LEASES, "kube-node-lease", NODE)
        await clock.advance(30)
        assert (await node(world)).metadata.name == NODE
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.req("4381-178")
async def test_the_agents_identity_only_reads_claims() -> None:
    async with local_world() as world:
        await world.driver()
        await world.claim("c", "gpu-0")
        await world.pod("p", claims=["c"])
        await world.phase("p", "Running")
        claim = await world.node_client.get(CLAIMS, "default", "c")
        for subresource in ("", "status"):
            with pytest.raises(ApiError) as refused:
                await world.node_client.update(claim, subresource)
            assert refused.value.code == 403
            with pytest.raises(ApiError) as refused:
                await world.node_client.patch(CLAIMS, "default", "c", {"status": {}}, subresource=subresource)
            assert refused.value.code == 403


@pytest.mark.req("5055-140", "5055-53")
async def test_the_agent_has_nothing_to_do_with_device_taints() -> None:
    async with local_world(started=False) as world:
        asked: list[Attributes] = []
        allowed = world.server.roles.allowed

        def note(identity, attributes):  # type: ignore[no-untyped-def]
            asked.append(attributes)
            return allowed(identity, attributes)

        world.server.roles.allowed = note  # type: ignore[method-assign]
        rule = {"deviceSelector": {}, "taint": {"key": "k", "effect": "NoSchedule"}}
        meta = {"name": "all"}
        api = RULES.api_version
        await world.admin.create(typed({"apiVersion": api, "kind": "DeviceTaintRule", "metadata": meta, "spec": rule}))
        asked.clear()
        await world.start()
        await world.driver()
        await world.claim("c", "gpu-0")
        await world.pod("p", claims=["c"])
        await world.phase("p", "Running")  # NoSchedule leaves a pod alone that came without the scheduler
        assert "resourceclaims" in {one.resource for one in asked}
        assert "devicetaintrules" not in {one.resource for one in asked}
