"""A ReplicaSet has the pods that it asks for, whatever happens to them."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from controller_world import Manifest, World, controller_world, manifest, pod

TEMPLATE: Manifest = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "image": "busybox"}]},
}


@contextlib.asynccontextmanager
async def replica_set_world() -> AsyncIterator[World]:
    async with controller_world("replicaset-controller") as world:
        yield world


def replica_set(replicas: int = 3, **spec: Any) -> Manifest:
    selector = {"matchLabels": {"app": "web"}}
    return manifest(
        "apps/v1", "ReplicaSet", "rs", spec={"replicas": replicas, "selector": selector, "template": TEMPLATE, **spec}
    )


async def names(world: World) -> list[str]:
    return [one.metadata.name for one in await world.objects("pods")]


async def make_ready(world: World, name: str) -> None:
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": str(world.server.engine.clock())}
    await world.patch("pods", name, {"status": {"phase": "Running", "conditions": [condition]}}, "status")


async def test_pods_are_made_once_each() -> None:
    async with replica_set_world() as world:
        await world.create(replica_set(20))
        await world.settle()
        pods = await world.objects("pods")
        assert len(pods) == 20
        assert all(one.metadata.labels == {"app": "web"} for one in pods)
        assert all(one.metadata.owner_references[0].controller for one in pods)
        stored = await world.get("replicasets", "rs")
        assert (stored.status.replicas, stored.status.fully_labeled_replicas) == (20, 20)
        assert stored.status.observed_generation == stored.metadata.generation


@pytest.mark.parametrize("loss", ["deleted", "failed"])
async def test_a_lost_pod_is_replaced(loss: str) -> None:
    async with replica_set_world() as world:
        await world.create(replica_set(2))
        await world.settle()
        lost, kept = await names(world)
        if loss == "deleted":
            await world.delete("pods", lost)
        else:
            await world.patch("pods", lost, {"status": {"phase": "Failed"}}, "status")
        await world.settle()
        running = [one.metadata.name for one in await world.objects("pods") if one.status.phase != "Failed"]
        assert len(running) == 2
        assert kept in running
        assert lost not in running


async def test_scaling_down_takes_the_least_useful_first() -> None:
    async with replica_set_world() as world:
        await world.create(replica_set(3))
        await world.settle()
        useful = (await names(world))[1]
        await make_ready(world, useful)
        await world.patch("replicasets", "rs", {"spec": {"replicas": 1}})
        await world.settle()
        assert await names(world) == [useful]
        stored = await world.get("replicasets", "rs")
        assert (stored.status.replicas, stored.status.ready_replicas, stored.status.available_replicas) == (1, 1, 1)


async def test_pods_that_are_leaving_are_counted_by_themselves() -> None:
    async with replica_set_world() as world:
        await world.create(replica_set(2))
        await world.settle()
        first = (await names(world))[0]
        await world.patch("pods", first, {"metadata": {"finalizers": ["example.com/slow"]}})
        await world.delete("pods", first)
        await world.settle()
        stored = await world.get("replicasets", "rs")
        assert (stored.status.replicas, stored.status.terminating_replicas) == (2, 1)
        await world.patch("pods", first, {"metadata": {"finalizers": None}})
        await world.settle()
        assert (await world.get("replicasets", "rs")).status.terminating_replicas == 0


async def test_a_pod_becomes_available_with_time() -> None:
    async with replica_set_world() as world:
        await world.create(replica_set(1, minReadySeconds=30))
        await world.settle()
        await make_ready(world, (await names(world))[0])
        await world.settle(10)
        assert (await world.get("replicasets", "rs")).status.available_replicas == 0
        await world.settle(30)
        assert (await world.get("replicasets", "rs")).status.available_replicas == 1


async def test_orphans_are_adopted_and_strangers_released() -> None:
    async with replica_set_world() as world:
        await world.create(pod("orphan", meta={"labels": {"app": "web"}}), replica_set(2))
        await world.settle()
        assert len(await names(world)) == 2
        adopted = await world.get("pods", "orphan")
        assert adopted.metadata.owner_references[0].name == "rs"
        await world.patch("pods", "orphan", {"metadata": {"labels": {"app": "debug"}}})
        await world.settle()
        assert len(await names(world)) == 3
        assert (await world.get("pods", "orphan")).metadata.owner_references == ()


async def test_what_a_quota_forbids_is_told_and_made_later() -> None:
    async with replica_set_world() as world:
        quota = manifest("v1", "ResourceQuota", "q", spec={"hard": {"count/pods": "1"}})
        await world.create(quota)
        status = {"hard": {"count/pods": "1"}, "used": {"count/pods": "0"}}
        await world.patch("resourcequotas", "q", {"status": status}, "status")
        await world.create(replica_set(3))
        await world.settle()
        stored = await world.get("replicasets", "rs")
        assert [one.type for one in stored.status.conditions] == ["ReplicaFailure"]
        assert ("FailedCreate", True) in [
            (reason, "exceeded quota" in text) for reason, text in await world.events("rs")
        ]
        await world.delete("resourcequotas", "q")
        await world.settle(60)
        assert len(await names(world)) == 3
        assert (await world.get("replicasets", "rs")).status.conditions == ()


@pytest.mark.parametrize("also", [(), ("deployment-controller",)])
async def test_pods_that_are_refused_are_tried_less_and_less_often(also: tuple[str, ...]) -> None:
    """The failure names a random pod: told once, it does not wake the controller by its own write."""
    async with controller_world("replicaset-controller", "resourcequota-controller", *also) as world:
        await world.create(manifest("v1", "ResourceQuota", "few", spec={"hard": {"pods": "1"}}))
        await world.settle()
        await world.create(replica_set(5))
        await world.settle(60)
        before = len(await world.objects("events"))
        revision = (await world.get("replicasets", "rs")).metadata.resource_version
        await world.settle(600)
        found = await world.get("replicasets", "rs")
        assert len(await world.objects("pods")) == 1
        assert [one.type for one in found.status.conditions] == ["ReplicaFailure"]
        assert found.metadata.resource_version == revision
        assert len(await world.objects("events")) - before < 20


async def test_a_replication_controller_is_a_replica_set_with_an_older_selector() -> None:
    async with controller_world("replicationcontroller-controller") as world:
        spec = {"replicas": 2, "selector": {"app": "web"}, "template": TEMPLATE}
        await world.create(pod("orphan", meta={"labels": {"app": "web"}}))
        await world.create(manifest("v1", "ReplicationController", "rc", spec=spec))
        await world.settle()
        pods = await world.objects("pods")
        owners = {(one.metadata.owner_references[0].api_version, one.metadata.owner_references[0].kind) for one in pods}
        assert (len(pods), owners) == (2, {("v1", "ReplicationController")})
        await make_ready(world, "orphan")
        await world.settle()
        status = (await world.get("replicationcontrollers", "rc")).status
        assert (status.replicas, status.ready_replicas, status.available_replicas) == (2, 1, 1)
        await world.patch("replicationcontrollers", "rc", {"spec": {"replicas": 1}})
        await world.settle()
        assert await names(world) == ["orphan"]
