"""A ReplicaSet has the pods that it asks for, whatever happens to them."""

import asyncio
from typing import Any

import pytest

from controller_world import Manifest, World, controller_world, manifest, pod

TEMPLATE: Manifest = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "image": "busybox"}]},
}


def run(story: Any) -> None:
    async def main() -> None:
        async with controller_world("replicaset-controller") as world:
            await story(world)

    asyncio.run(main())


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


def test_pods_are_made_once_each() -> None:
    async def story(world: World) -> None:
        await world.create(replica_set(20))
        await world.settle()
        pods = await world.objects("pods")
        assert len(pods) == 20
        assert all(one.metadata.labels == {"app": "web"} for one in pods)
        assert all(one.metadata.owner_references[0].controller for one in pods)
        stored = await world.get("replicasets", "rs")
        assert (stored.status.replicas, stored.status.fully_labeled_replicas) == (20, 20)
        assert stored.status.observed_generation == stored.metadata.generation

    run(story)


@pytest.mark.parametrize("loss", ["deleted", "failed"])
def test_a_lost_pod_is_replaced(loss: str) -> None:
    async def story(world: World) -> None:
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

    run(story)


def test_scaling_down_takes_the_least_useful_first() -> None:
    async def story(world: World) -> None:
        await world.create(replica_set(3))
        await world.settle()
        useful = (await names(world))[1]
        await make_ready(world, useful)
        await world.patch("replicasets", "rs", {"spec": {"replicas": 1}})
        await world.settle()
        assert await names(world) == [useful]
        stored = await world.get("replicasets", "rs")
        assert (stored.status.replicas, stored.status.ready_replicas, stored.status.available_replicas) == (1, 1, 1)

    run(story)


def test_pods_that_are_leaving_are_counted_by_themselves() -> None:
    async def story(world: World) -> None:
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

    run(story)


def test_a_pod_becomes_available_with_time() -> None:
    async def story(world: World) -> None:
        await world.create(replica_set(1, minReadySeconds=30))
        await world.settle()
        await make_ready(world, (await names(world))[0])
        await world.settle(10)
        assert (await world.get("replicasets", "rs")).status.available_replicas == 0
        await world.settle(30)
        assert (await world.get("replicasets", "rs")).status.available_replicas == 1

    run(story)


def test_orphans_are_adopted_and_strangers_released() -> None:
    async def story(world: World) -> None:
        await world.create(pod("orphan", meta={"labels": {"app": "web"}}), replica_set(2))
        await world.settle()
        assert len(await names(world)) == 2
        adopted = await world.get("pods", "orphan")
        assert adopted.metadata.owner_references[0].name == "rs"
        await world.patch("pods", "orphan", {"metadata": {"labels": {"app": "debug"}}})
        await world.settle()
        assert len(await names(world)) == 3
        assert (await world.get("pods", "orphan")).metadata.owner_references == ()

    run(story)


def test_what_a_quota_forbids_is_told_and_made_later() -> None:
    async def story(world: World) -> None:
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

    run(story)
